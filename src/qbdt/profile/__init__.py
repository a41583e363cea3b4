"""The profiled method: trees that learn t*, the best single number for a fit that profiles systematic uncertainties.

Flows in: a `Dataset` with true yields and sources, and `Settings`. Flows out: a `Training` whose ensemble is a
`ProfiledEnsemble`. `docs/profiled-method.md` has the claim and its proof.
"""

from qbdt.profile.training import train_profiled

__all__ = ["train_profiled"]
