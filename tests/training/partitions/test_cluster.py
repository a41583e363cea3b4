"""Clusters that are found, not found, and lost."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from qbdt.errors import ClusterError
from qbdt.models.cross_training import train_into
from qbdt.training.partitions.dask.cluster import connect
from qbdt.training.partitions.dask.partitions import OnCluster
from qbdt.training.partitions.events import divide_dataset
from qbdt.training.settings import Settings
from tests.training.partitions.events import small_dataset

pytestmark = pytest.mark.xdist_group("dask")


@contextmanager
def processes(folder):
    """A scheduler and a worker of their own."""
    where = ["--scheduler-file", str(folder / "scheduler.json")]
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", *where],
        stderr=subprocess.DEVNULL,
    )
    worker = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            "--no-nanny",
            "--no-dashboard",
            "--nthreads",
            "1",
            *where,
        ],
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        yield scheduler
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


METHODS = {
    "paper": (Settings(method="paper", n_trees=14, n_leaves=3), 12),  # written every ten trees
    "profile": (Settings(method="profile", n_trees=1, n_leaves=3), 3),  # written after each of five folds
}


@pytest.mark.parametrize("method", METHODS)
def test_a_lost_scheduler_is_said_and_the_checkpoint_goes_on(method, tmp_path):
    dataset, (settings, last) = small_dataset(), METHODS[method]
    path = tmp_path / "model.qbdt"

    @contextmanager
    def killing(description, total=None):
        done: list[None] = []

        def advance(n):
            done.extend([None] * n)
            if len(done) >= last:
                scheduler.kill()

        yield advance

    with processes(tmp_path) as scheduler, connect(str(tmp_path / "scheduler.json")) as client:
        rows = OnCluster(divide_dataset(dataset, 2), client=client)
        with pytest.raises(ClusterError, match=r"the Dask scheduler at tcp://.* is gone; start a cluster and"):
            train_into(path, rows, settings, n_threads=1, progress=killing)
    assert path.exists()
    train_into(path, dataset, settings, n_threads=1, resume=True)
    whole = tmp_path / "whole.qbdt"
    train_into(whole, dataset, settings, n_threads=1)
    assert path.read_bytes() == whole.read_bytes()


def test_no_scheduler_at_an_address(monkeypatch):
    monkeypatch.setattr("qbdt.training.partitions.dask.cluster.TIMEOUT", "200ms")
    with (
        pytest.raises(ClusterError, match="no Dask scheduler answers at tcp"),
        connect("tcp://127.0.0.1:1"),
    ):
        pass


def test_a_cluster_of_another_package_must_exist():
    with pytest.raises(ClusterError, match=r"address=.json:Cluster.: json has no Cluster"), connect("json:Cluster"):
        pass
