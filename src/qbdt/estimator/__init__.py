"""The scikit-learn face of training and scoring.

In: arrays and tables of the caller. Out: fitted estimators, `QBDTClassifier` and, for folds, `CrossTrainedClassifier`;
`QBDTRegressor` for a target.
Thin: they check and name what the caller has, make a `Dataset` and call `qbdt.training`.
"""

from qbdt.estimator.classifier import QBDTClassifier
from qbdt.estimator.cross_trained import CrossTrainedClassifier
from qbdt.estimator.regressor import QBDTRegressor

__all__ = ["CrossTrainedClassifier", "QBDTClassifier", "QBDTRegressor"]
