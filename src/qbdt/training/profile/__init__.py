"""The profiled method: the score t* that keeps all information of a fit with profiled nuisance parameters.

In: events, divided into inner folds (`profiled_events`, `inner_folds`), and the `parameters` of the measurement. Out: a
`ProfiledEnsemble` of two sums of trees, the ratio of densities F (`ratio`, on `ratio_rows`) and the shifts Δ_k/n of all
sources (`shifts`, on `shift_rows`), joined by the combination that is best on held-out events (`integrals`,
`combination`); for other parameters than one strength `EfficientScores`. `method` is the loop over folds.
"""

from qbdt.training.profile.efficient_scores import EfficientScores
from qbdt.training.profile.inner_folds import N_FOLDS, count_together
from qbdt.training.profile.score import ProfiledEnsemble

__all__ = ["N_FOLDS", "EfficientScores", "ProfiledEnsemble", "count_together"]
