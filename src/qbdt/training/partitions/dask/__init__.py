"""Front door of training.partitions.dask."""

from qbdt.training.partitions.dask.cluster import connected
from qbdt.training.partitions.dask.collections import collection_parts
from qbdt.training.partitions.dask.hosts import OnCluster
from qbdt.training.partitions.dask.merging import over_parts
from qbdt.training.partitions.dask.traffic import Traffic

__all__ = ["OnCluster", "Traffic", "collection_parts", "connected", "over_parts"]
