"""Memory and time of a training, estimated before it begins.

In: an analysis and its files, of which the first rows are read, and the memory that may be used. Out: a `ResourcePlan`,
which estimates memory and time, and divides the events into partitions where they do not fit.
"""

from qbdt.analysis.resources.machine import format_size, read_size
from qbdt.analysis.resources.resource_plan import ResourcePlan

__all__ = ["ResourcePlan", "format_size", "read_size"]
