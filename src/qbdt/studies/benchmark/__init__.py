"""The physics benchmark: in, problems and contestants; out, the sensitivity of their scores on the same folds.

`run_physics` trains, tunes and fits; `make_physics_tables` and `format_markdown` show the results, `check_criteria`
compares the profiled method with the best peer.
"""

from qbdt.studies.benchmark.benchmark_tables import format_markdown, make_physics_tables
from qbdt.studies.benchmark.criteria import check_criteria
from qbdt.studies.benchmark.physics import CHECKS, BenchmarkOptions, run_physics
from qbdt.studies.benchmark.problems import EventFolders
from qbdt.studies.benchmark.results import PhysicsResults

__all__ = [
    "CHECKS",
    "BenchmarkOptions",
    "EventFolders",
    "PhysicsResults",
    "check_criteria",
    "format_markdown",
    "make_physics_tables",
    "run_physics",
]
