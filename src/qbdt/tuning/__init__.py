"""The search for training settings, judged by the fit: σ_μ with all uncertainties, out of fold, nested.

Flows in: a dataset with folds, an analysis and a number of trials. Flows out: a `Tuning` with the best settings, the
trials behind them, and an estimate of σ_μ on events that took no part in the choice.
"""

from qbdt.tuning.judging import Judge
from qbdt.tuning.result import Tuning, TuningTrial
from qbdt.tuning.search import tune
from qbdt.tuning.space import SPACES, Dimension
from qbdt.tuning.writing import best_section, write_tuning

__all__ = ["SPACES", "Dimension", "Judge", "Tuning", "TuningTrial", "best_section", "tune", "write_tuning"]
