"""A whole analysis in one call, and the files that it leaves between its steps."""

from qbdt.running.diagnosing import Diagnosed, diagnose_run
from qbdt.running.distributed import ClusterRun
from qbdt.running.run import Run, run_analysis, training_settings
from qbdt.running.scored import write_scored
from qbdt.running.steps import events_to_score, load_for_training, scored_tables, seen_samples

__all__ = [
    "ClusterRun",
    "Diagnosed",
    "Run",
    "diagnose_run",
    "events_to_score",
    "load_for_training",
    "run_analysis",
    "scored_tables",
    "seen_samples",
    "training_settings",
    "write_scored",
]
