"""Front door of studies.benchmark."""

from qbdt.studies.benchmark.benchmark_tables import physics_markdown, physics_tables
from qbdt.studies.benchmark.marks import marks
from qbdt.studies.benchmark.physics import CHECKS, Options, run_physics
from qbdt.studies.benchmark.problems import Places

__all__ = ["CHECKS", "Options", "Places", "marks", "physics_markdown", "physics_tables", "run_physics"]
