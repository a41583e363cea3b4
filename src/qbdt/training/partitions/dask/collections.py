"""Dask collections as partitions of events: dask.dataframe, dask-awkward, or anything else that has partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from qbdt.data import Dataset
from qbdt.errors import DataError, require


@dataclass(frozen=True, eq=False)
class CollectionPartition:
    """One partition of every collection; called, it computes them where it is and makes a dataset of them."""

    partitions: Mapping[str, Any]
    make: Callable[[Mapping[str, Any]], Dataset]

    def __call__(self) -> Dataset:
        """Return its events."""
        dask = require("dask", "a Dask collection")
        # The function, not its name: by name Dask warns where a client is active, and that is where this runs.
        tables = dask.compute(*self.partitions.values(), scheduler=dask.get)
        return self.make(dict(zip(self.partitions, tables, strict=True)))


def collection_partitions(
    collections: Mapping[str, Any], make: Callable[[Mapping[str, Any]], Dataset]
) -> list[CollectionPartition]:
    """Partitions of events from Dask collections; nothing is computed yet.

    Parameters
    ----------
    collections
        Collections by name (samples, shifted samples), all with the same number of partitions. They are computed on the
        workers, each partition anew whenever it is read, so they should read files rather than be persisted.
    make
        Makes a `Dataset` of one partition of each: a mapping from name to pandas or awkward table. It is a function of
        a module, or one that cloudpickle can send.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> from qbdt.data import Role, Sample
    >>> from qbdt.data.readers import read_events
    >>> def make(tables):
    ...     roles = {"higgs": Role.SIGNAL, "ttbar": Role.BACKGROUND}
    ...     return Dataset([Sample(name, role, read_events(tables[name], ["m"])) for name, role in roles.items()])
    >>> table = pd.DataFrame({"m": [125.0, 124.0, 80.0, 90.0]})
    >>> collections = {name: dd.from_pandas(table, npartitions=2) for name in ("higgs", "ttbar")}
    >>> partitions = collection_partitions(collections, make)
    >>> [read().sample("higgs").events.n_rows for read in partitions]
    [2, 2]
    """
    dask = require("dask", "a Dask collection")
    delayed = {name: collection.to_delayed() for name, collection in collections.items()}
    counts = {name: len(partitions) for name, partitions in delayed.items()}
    if len(set(counts.values())) != 1:
        described = ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
        raise DataError(f"collections must have the same number of partitions ({described}); use repartition")
    culled = {name: dask.optimize(*partitions) for name, partitions in delayed.items()}
    rows = zip(*culled.values(), strict=True)
    return [CollectionPartition(dict(zip(culled, row, strict=True)), make) for row in rows]
