"""Training and scoring on a Dask cluster: partitions of events stay on the workers, the driver grows the trees.

Flows in: parts of events (`qbdt.boosting.Part`) and a Dask client. Flows out: what `qbdt.training.train` trains on, and
sums over parts. Models are those of one machine, bit for bit, however many workers and partitions there are.
"""

from qbdt.dask.cluster import connected
from qbdt.dask.collections import collection_parts
from qbdt.dask.folding import over_parts
from qbdt.dask.hosts import OnCluster
from qbdt.dask.traffic import Traffic

__all__ = ["OnCluster", "Traffic", "collection_parts", "connected", "over_parts"]
