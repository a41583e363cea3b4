"""What a training leaves: sums of trees, and scores from them.

Flows in: trees and the features they cut on. Flows out: scores, staged scores and leaves of events. `Ensemble` is the
paper's score, `ProfiledEnsemble` that of the profiled method, `FoldedEnsemble` one of either kind per fold.
"""

from qbdt.ensemble.folded import FoldedEnsemble
from qbdt.ensemble.profiled import ProfiledEnsemble
from qbdt.ensemble.trees import Ensemble

__all__ = ["Ensemble", "FoldedEnsemble", "ProfiledEnsemble"]
