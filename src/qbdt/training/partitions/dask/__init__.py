"""Partitions on a Dask cluster. In: a client (`connect`) and partitions of events; out: `OnCluster`, to train on."""

from qbdt.training.partitions.dask.cluster import connect, require_device
from qbdt.training.partitions.dask.collections import collection_partitions
from qbdt.training.partitions.dask.map_reduce import map_reduce
from qbdt.training.partitions.dask.partitions import OnCluster, Traffic

__all__ = ["OnCluster", "Traffic", "collection_partitions", "connect", "map_reduce", "require_device"]
