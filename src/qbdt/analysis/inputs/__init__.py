"""Looking at what an analysis reads, before anything is trained.

In: an analysis and its files. Out: tables of yields, sources and what looks wrong (`inspect_inputs`).
"""

from qbdt.analysis.inputs.inspection import Inspection, inspect_inputs

__all__ = ["Inspection", "inspect_inputs"]
