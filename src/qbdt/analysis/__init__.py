"""One analysis from a YAML file to an answer.

In: an analysis file (`read_analysis`) and the events it names (`load`). Out: a folder with models, scores, a fit and a
report (`run_analysis`, `diagnose_run`, `run_document`), or the single steps: events to train on, tables of scores.
"""

from qbdt.analysis.analysis_file import parse_analysis, read_analysis
from qbdt.analysis.fit_folder import fit_scored
from qbdt.analysis.loader import load, load_for_training, load_partitions, training_settings
from qbdt.analysis.partitioned_run import ClusterRun
from qbdt.analysis.run import Run, run_analysis
from qbdt.analysis.run_diagnosis import diagnose_run
from qbdt.analysis.run_page import run_document
from qbdt.analysis.schema import Analysis
from qbdt.analysis.score_tables import load_named_events, score_tables, training_samples

__all__ = [
    "Analysis",
    "ClusterRun",
    "Run",
    "diagnose_run",
    "fit_scored",
    "load",
    "load_for_training",
    "load_named_events",
    "load_partitions",
    "parse_analysis",
    "read_analysis",
    "run_analysis",
    "run_document",
    "score_tables",
    "training_samples",
    "training_settings",
]
