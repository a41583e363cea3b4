"""Limits of a result. In: events, models by fold and settings of the fit. Out: a `Diagnosis`.

Over-training, features, sources, and learning curves; all are measured by σ_μ of out-of-fold scores.
"""

from qbdt.analysis.diagnosis.curves import LearningCurve, thin_events
from qbdt.analysis.diagnosis.diagnosis import DIAGNOSIS_FILE, Diagnosis, diagnose, read_diagnosis
from qbdt.analysis.diagnosis.figures import diagnosis_blocks, diagnosis_figures
from qbdt.analysis.diagnosis.overtraining import OverTraining, check_over_training
from qbdt.analysis.diagnosis.sensitivity import compute_sensitivity

__all__ = [
    "DIAGNOSIS_FILE",
    "Diagnosis",
    "LearningCurve",
    "OverTraining",
    "check_over_training",
    "compute_sensitivity",
    "diagnose",
    "diagnosis_blocks",
    "diagnosis_figures",
    "read_diagnosis",
    "thin_events",
]
