"""Front door of analysis."""

from qbdt.analysis.cluster_run import ClusterRun
from qbdt.analysis.loading import load, load_parts
from qbdt.analysis.page import run_document
from qbdt.analysis.reading import json_schema, parse_analysis, read_analysis
from qbdt.analysis.run import run_analysis, training_settings
from qbdt.analysis.run_diagnosis import diagnose_run
from qbdt.analysis.steps import events_to_score, load_for_training, scored_tables, seen_samples

__all__ = [
    "ClusterRun",
    "diagnose_run",
    "events_to_score",
    "json_schema",
    "load",
    "load_for_training",
    "load_parts",
    "parse_analysis",
    "read_analysis",
    "run_analysis",
    "run_document",
    "scored_tables",
    "seen_samples",
    "training_settings",
]
