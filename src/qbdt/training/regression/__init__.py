"""Regression: a prediction whose mean the systematic sources move little.

In: events with a target (`qbdt.data.from_target`), settings and a `Loss`. Out: a `TrainedRegression`, whose trees are
two sums: the prediction of the smallest loss (`mean_trees`, on `target_rows`) and the relative shifts of all sources
(`shift_trees`, on the rows of the profiled method), joined as is best for held-out events (`profiling`).
"""

from qbdt.training.regression.losses import LOSSES, Loss
from qbdt.training.regression.regression_method import train_regression
from qbdt.training.regression.trained_regression import RegressionExpectation, SourceShift, TrainedRegression

__all__ = ["LOSSES", "Loss", "RegressionExpectation", "SourceShift", "TrainedRegression", "train_regression"]
