"""What a training is worth and why: over-training, features, sources, learning curves, all judged by the fit.

Flows in: a dataset with folds and one trained model per fold. Flows out: a `Diagnosis`, tables and plain data. Every
event is scored by the model that did not see it; only the test of over-training looks at trained-on events too.
"""

from qbdt.diagnosis.curves import LearningCurve, sizes_curve, trees_curve
from qbdt.diagnosis.diagnose import Diagnosis, diagnose
from qbdt.diagnosis.features import FeatureRank, rank_features, scrambled
from qbdt.diagnosis.overtraining import OverTraining, over_training
from qbdt.diagnosis.sources import FeatureEffect, SourceEffect, source_effects
from qbdt.diagnosis.strength import Strength, strength_of

__all__ = [
    "Diagnosis",
    "FeatureEffect",
    "FeatureRank",
    "LearningCurve",
    "OverTraining",
    "SourceEffect",
    "Strength",
    "diagnose",
    "over_training",
    "rank_features",
    "scrambled",
    "sizes_curve",
    "source_effects",
    "strength_of",
    "trees_curve",
]
