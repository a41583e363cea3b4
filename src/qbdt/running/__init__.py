"""A whole analysis in one call, and the files that it leaves between its steps."""

from qbdt.running.distributed import ClusterRun
from qbdt.running.run import Run, run_analysis, training_settings
from qbdt.running.scored import write_scored
from qbdt.running.steps import events_to_score, load_for_training, scored_tables

__all__ = [
    "ClusterRun",
    "Run",
    "events_to_score",
    "load_for_training",
    "run_analysis",
    "scored_tables",
    "training_settings",
    "write_scored",
]
