"""Results of a measurement beyond its fit: limits, contours, goodness of fit and yields.

In: the free fit (`BestFit`) of an `AnalyticLikelihood`. Out: frozen results with tables and plain data. One
minimisation serves all of them.
"""

from qbdt.inference.answers.collection import Answers, collect_answers
from qbdt.inference.answers.goodness import GoodnessOfFit, measure_goodness
from qbdt.inference.answers.limits import UpperLimit, find_limit, find_limit_with_toys
from qbdt.inference.answers.scans import LEVELS, PairScan, scan_pair
from qbdt.inference.answers.yields import Yield, Yields, measure_yields, predict

__all__ = [
    "LEVELS",
    "Answers",
    "GoodnessOfFit",
    "PairScan",
    "UpperLimit",
    "Yield",
    "Yields",
    "collect_answers",
    "find_limit",
    "find_limit_with_toys",
    "measure_goodness",
    "measure_yields",
    "predict",
    "scan_pair",
]
