"""Faults of input files that can be seen in the events. In: a `Dataset`. Out: `Finding`s, questions to the user."""

from qbdt.data.checks.findings import Finding, find_faults

__all__ = ["Finding", "find_faults"]
