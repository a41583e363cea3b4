"""Finds or starts a cluster, and says in one message when it is lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from qbdt.errors import ClusterError, require
from qbdt.threads import count_cores
from qbdt.trees.device import open_device

LOCAL = "local"
"""Address that stands for a cluster on this machine."""

TIMEOUT = "20s"
"""How long a scheduler may take to answer: starting Python on a busy machine takes some seconds."""


@contextmanager
def connect(address: str = LOCAL, n_workers: int | None = None) -> Iterator[Any]:
    """Yield a client of a cluster.

    Parameters
    ----------
    address
        "local" starts a cluster on this machine, one process per core; an address (tcp://host:8786) or a scheduler
        file joins one that runs; MODULE:CLASS starts one of another package with what Dask's configuration holds for
        it, for example dask_jobqueue:SLURMCluster or dask_kubernetes.operator:KubeCluster.
    n_workers
        Workers to start; for a cluster on this machine one per core by default.
    """
    distributed = require("distributed", "training on a cluster")
    if address == LOCAL:
        with (
            distributed.LocalCluster(
                n_workers=n_workers or count_cores(),
                threads_per_worker=1,
                dashboard_address=":0",
                silence_logs=logging.ERROR,
            ) as cluster,
            distributed.Client(cluster, direct_to_workers=True) as client,
        ):
            yield client
    elif ":" in address and "//" not in address and not address.rpartition(":")[2].isdigit():
        with _start(address) as cluster, distributed.Client(cluster) as client:
            cluster.scale(n_workers or 1)
            yield client
    else:
        with _join(distributed, address) as client:
            yield client


def _join(distributed: Any, address: str) -> Any:
    try:
        if address.endswith(".json"):
            return distributed.Client(scheduler_file=address, timeout=TIMEOUT)
        return distributed.Client(address, timeout=TIMEOUT)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address} ({str(error) or 'no answer'}); is it running?"
        ) from error


def _start(name: str) -> Any:
    module, _, kind = name.partition(":")
    found = getattr(require(module, f"the cluster {name}"), kind, None)
    if found is None:
        raise ClusterError(f"address={name!r}: {module} has no {kind}")
    return found()


@contextmanager
def explain_losses(client: Any) -> Iterator[None]:
    """Turn what Dask raises when the scheduler is gone into one message."""
    distributed = require("distributed", "training on a cluster")
    closed = require("distributed.comm.core", "training on a cluster").CommClosedError
    try:
        yield
    except distributed.KilledWorker as error:
        raise ClusterError(f"several workers died one after the other at the same work: {error}") from error
    except (closed, CancelledError) as error:
        raise ClusterError(describe_loss(client)) from error


def describe_loss(client: Any) -> str:
    """Say that the scheduler is lost."""
    return (
        f"the Dask scheduler at {client.scheduler.address if client.scheduler else 'its address'} is gone; start a "
        "cluster and run again: training goes on from the last checkpoint, with the same result"
    )


def require_device(client: Any, device: str | None) -> None:
    """Refuse a device that one of the workers does not have."""
    if device is not None:
        client.run(_open, device)


def _open(device: str) -> None:
    open_device(device)
