"""Figures of the inputs of an analysis.

In: histograms of a variable for all processes and sources, or correlations of features. Out: Matplotlib figures.
"""

from qbdt.report.figures.inputs.shapes import SourceShape, feature_correlation, source_shapes
from qbdt.report.figures.inputs.stacked_variables import stacked_variable

__all__ = ["SourceShape", "feature_correlation", "source_shapes", "stacked_variable"]
