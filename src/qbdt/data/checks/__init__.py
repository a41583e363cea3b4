"""Front door of data.checks."""

from qbdt.data.checks.findings import Finding, find_faults

__all__ = ["Finding", "find_faults"]
