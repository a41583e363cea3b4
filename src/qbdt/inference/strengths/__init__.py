"""Fits of several signal strengths, and of other parameters, in cells of the scores trained for them.

In: a dataset whose features are scores, and which parameters are measured. Out: a `FitResult`.
"""

from qbdt.inference.strengths.cell_fit import fit_strengths

__all__ = ["fit_strengths"]
