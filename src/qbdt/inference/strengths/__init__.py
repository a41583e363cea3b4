"""Fits of several signal strengths, and of other parameters, in cells of the scores trained for them.

In: a dataset whose features are scores, and which parameters are measured. Out: a `FitResult`, or a
`ParameterFit` where a source is measured.
"""

from qbdt.inference.strengths.cell_fit import fit_strengths
from qbdt.inference.strengths.parameter_fit import ParameterFit, fit_parameters

__all__ = ["ParameterFit", "fit_parameters", "fit_strengths"]
