"""Fits of several signal strengths in cells of several scores.

In: a dataset whose features are scores, and which signal processes each strength multiplies. Out: a `FitResult`.
"""

from qbdt.inference.strengths.cell_fit import fit_strengths

__all__ = ["fit_strengths"]
