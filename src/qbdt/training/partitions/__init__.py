"""Where the rows of a training live.

In: events in partitions, read one at a time. Out: `Partitions`, through which both methods call their rows and get
exact sums back: the same bits in memory, on disk (`OutOfCore`) and on a Dask cluster (`qbdt.training.partitions.dask`).
"""

from qbdt.training.partitions.disk import OutOfCore
from qbdt.training.partitions.events import PartitionedEvents, copy_rows, divide_dataset

__all__ = ["OutOfCore", "PartitionedEvents", "copy_rows", "divide_dataset"]
