"""Front door of training.partitions."""

from qbdt.training.partitions.disk import OutOfCore
from qbdt.training.partitions.partition import EventsInParts, rows_of

__all__ = ["EventsInParts", "OutOfCore", "rows_of"]
