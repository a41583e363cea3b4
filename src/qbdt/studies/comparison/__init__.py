"""Methods compared on the same events: in, a `Plan` (an analysis, contestants, divisions); out, a `Comparison`.

`compare_methods` tunes, trains, scores and fits; `run_comparison` also fits with the scores of the best and writes a
folder with results and report. The physics benchmark uses the same contestants, nested folds and measure.
"""

from qbdt.studies.comparison.comparison import Comparison, Entry, compare_methods
from qbdt.studies.comparison.comparison_page import (
    draw_comparison,
    make_comparison_tables,
    make_sentence,
    run_comparison,
)
from qbdt.studies.comparison.plan import STANDARD, Plan

__all__ = [
    "STANDARD",
    "Comparison",
    "Entry",
    "Plan",
    "compare_methods",
    "draw_comparison",
    "make_comparison_tables",
    "make_sentence",
    "run_comparison",
]
