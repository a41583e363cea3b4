"""Studies made with the package. In: an analysis, files, or nothing but a seed. Out: tables, figures and pages.

`comparison` of methods on the same events, the physics `benchmark`, the `paper` reproduced, and the `generator` of its
events.
"""

__all__: list[str] = []
