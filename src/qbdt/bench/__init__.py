"""Benchmarks of physics: what a fit quotes, for this package and for its peers, on the same events and folds."""

from qbdt.bench.physics import Options, run_physics
from qbdt.bench.records import PhysicsBench

__all__ = ["Options", "PhysicsBench", "run_physics"]
