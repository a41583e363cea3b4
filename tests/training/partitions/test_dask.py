"""Training on a cluster: the model of one machine, bit for bit, whatever happens to workers."""

import os
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qbdt.errors import ConfigError, DeviceError, MissingDependencyError
from qbdt.models.model_file import write_model
from qbdt.training.methods import train
from qbdt.training.monitor import Monitor
from qbdt.training.partitions.dask import partitions
from qbdt.training.partitions.dask.partitions import OnCluster
from qbdt.training.partitions.events import divide_dataset
from qbdt.training.settings import Settings
from tests.device.host import HostDevice
from tests.training.partitions.events import small_dataset

pytestmark = pytest.mark.xdist_group("dask")

SETTINGS = Settings(method="paper", n_trees=3, n_leaves=5, mc_stat=True, row_fraction=0.7, min_leaf_entries=5.0)
PROFILED = Settings(method="profile", n_trees=2, n_leaves=3, row_fraction=0.7)


@pytest.fixture(scope="module")
def dataset():
    return small_dataset()


@pytest.fixture(scope="module")
def expected(dataset, tmp_path_factory):
    return model_bytes(train(dataset, SETTINGS, n_threads=1), tmp_path_factory.mktemp("local"))


def model_bytes(training, folder):
    write_model(folder / "model.qbdt", training)
    return (folder / "model.qbdt").read_bytes()


class Some:
    """A client that sees only some of the workers."""

    def __init__(self, client, n_workers):
        self._client, self._n_workers = client, n_workers

    def nthreads(self):
        return dict(sorted(self._client.nthreads().items())[: self._n_workers])

    def __getattr__(self, name):
        return getattr(self._client, name)


@pytest.mark.parametrize(("n_workers", "n_parts"), [(1, 7), (2, 16), (4, 3), (4, 16)])
def test_model_files_are_identical(client, dataset, expected, tmp_path, n_workers, n_parts):
    rows = OnCluster(divide_dataset(dataset, n_parts), client=Some(client, n_workers), fan_in=2)
    assert model_bytes(train(rows, SETTINGS, n_threads=1), tmp_path) == expected
    assert rows.traffic.trees == 3 + 2  # two processes have negative weights: one tree for the regions of each
    assert rows.traffic.rebuilt == 0
    assert rows.traffic.received > 0


@pytest.fixture(scope="module")
def profiled(dataset, tmp_path_factory):
    return model_bytes(train(dataset, PROFILED, n_threads=1), tmp_path_factory.mktemp("profiled"))


@pytest.mark.parametrize(("n_workers", "n_parts"), [(1, 3), (4, 7)])
def test_profiled_model_files_are_identical(client, dataset, profiled, tmp_path, n_workers, n_parts):
    rows = OnCluster(divide_dataset(dataset, n_parts), client=Some(client, n_workers), fan_in=2)
    assert model_bytes(train(rows, PROFILED, n_threads=1), tmp_path) == profiled
    assert rows.traffic.rebuilt == 0


@pytest.mark.parametrize("method", ["paper", "profile"])
def test_categories_and_constraints_travel(method, client, dataset, tmp_path):
    def coarse(events):
        kept = {name: np.array(events.column(name)) for name in ("x0", "x1")}
        return {**kept, "x2": np.floor(np.abs(3 * np.array(events.column("x2"))))}

    rows = dataset.transform(coarse)
    base = SETTINGS if method == "paper" else PROFILED
    settings = replace(base, categorical_features=["x2"], monotonic_constraints={"x0": 1})
    local = train(rows, settings, n_threads=1)
    assert any(tree.is_set.any() for tree in local.ensemble.trees)
    spread = train(OnCluster(divide_dataset(rows, 5), client=client, fan_in=2), settings, n_threads=1)
    assert model_bytes(spread, tmp_path) == model_bytes(local, tmp_path)


@pytest.fixture
def device_workers(client):
    """Two workers of the cluster, each with the device "cuda", which is one in ordinary memory."""
    if sys.platform != "linux" or shutil.which("g++") is None:
        pytest.skip("kernels are compiled by g++ on Linux; the job there runs this")
    client.run(put_device, True)
    yield Some(client, 2)
    client.run(put_device, False)


def put_device(is_there):
    from qbdt.training.partitions.dask import actor, cluster
    from qbdt.trees.device import open_device
    from tests.device.host import HostDevice

    for module in (actor, cluster):
        vars(module)["open_device"] = (lambda name: name and HostDevice()) if is_there else open_device


@pytest.mark.parametrize(("settings", "model"), [(SETTINGS, "expected"), (PROFILED, "profiled")])
def test_workers_with_a_device_train_the_same_model(device_workers, dataset, settings, model, tmp_path, request):
    rows = OnCluster(divide_dataset(dataset, 2), client=device_workers, device="cuda")
    assert model_bytes(train(rows, settings, n_threads=1), tmp_path) == request.getfixturevalue(model)


def test_a_device_that_workers_do_not_have_is_named(client, dataset):
    """Before any partition is read."""
    with pytest.raises((MissingDependencyError, DeviceError), match="device='cuda"):
        train(OnCluster([lambda: pytest.fail("read")], client=client, device="cuda"), SETTINGS)


def test_the_device_of_a_cluster_is_given_with_the_events(dataset, monkeypatch):
    monkeypatch.setattr("qbdt.training.paper.boosting.open_device", lambda name: HostDevice())
    with pytest.raises(ConfigError, match=r"give OnCluster\(..., device='cuda'\)"):
        train(OnCluster(divide_dataset(dataset, 2)), SETTINGS, device="cuda")


def test_trees_are_seen_as_tasks_and_events(client, dataset):
    before = len(client.get_events("qbdt"))
    train(OnCluster(divide_dataset(dataset, 2), client=client), SETTINGS, n_threads=1)
    trees: set[int] = set()
    for _ in range(100):  # nobody waits for these tasks: they may come late, and those of the last trees not at all
        trees = {told["tree"] for _, told in client.get_events("qbdt")[before:]}
        if trees:
            break
        time.sleep(0.1)
    assert trees
    assert trees <= {1, 2, 3, 4, 5}  # two of them divide processes with negative weights into regions


@pytest.mark.parametrize(("settings", "model", "last"), [(SETTINGS, "expected", 1), (PROFILED, "profiled", 2)])
def test_a_killed_worker_changes_nothing(client, dataset, settings, model, last, tmp_path, request):
    """A worker dies in the middle of a tree, after its rows have been divided; of a profiled one, of its shifts."""
    rows = OnCluster(divide_dataset(dataset, 7), client=client, fan_in=2)
    killed = []

    def kill(report):
        if report.index == last:
            address = sorted(client.nthreads())[-1]
            killed.append(client.run(os.getpid, workers=[address])[address])
            client.run(die_at_split, workers=[address])

    training = train(rows, settings, n_threads=1, monitor=Monitor(callbacks=(kill,)))
    client.wait_for_workers(4, timeout=300)  # a cluster does not close well while it starts a worker
    assert killed
    assert rows.traffic.rebuilt > 0
    assert model_bytes(training, tmp_path) == request.getfixturevalue(model)


def die_at_split():
    """Have this worker kill itself when a node is divided next."""
    from qbdt.training.partitions.rows import PartitionRows

    def split(self, *arguments):
        os.kill(os.getpid(), signal.SIGKILL)

    PartitionRows.split = split  # type: ignore[method-assign]


def test_a_stopped_worker_is_waited_for(client, dataset, expected, tmp_path):
    """A worker that hangs for longer than the driver waits before it looks around answers late, and nothing changes."""
    rows = OnCluster(divide_dataset(dataset, 7), client=client, fan_in=2)
    watchers: list[threading.Thread] = []

    def stop(report):
        if report.index == 1:
            address = sorted(client.nthreads())[-1]
            process = client.run(os.getpid, workers=[address])[address]
            client.run(stop_at_split, workers=[address])
            watchers.append(threading.Thread(target=release, args=(process,)))
            watchers[-1].start()

    training = train(rows, SETTINGS, n_threads=1, monitor=Monitor(callbacks=(stop,)))
    watchers[0].join()
    assert rows.traffic.rebuilt == 0
    assert model_bytes(training, tmp_path) == expected


def test_a_worker_that_is_stopped_for_good_is_given_up(client, dataset, expected, tmp_path):
    """The scheduler gives a silent worker up (`worker-ttl`); its partitions are built elsewhere, for the same model."""
    rows = OnCluster(divide_dataset(dataset, 7), client=client, fan_in=2)
    stopped, watchers = [], []

    def stop(report):
        if report.index == 1:
            address = sorted(client.nthreads())[-1]
            stopped.append(client.run(os.getpid, workers=[address])[address])
            client.run(stop_at_split, workers=[address])
            watchers.append(threading.Thread(target=give_up, args=(client, address)))
            watchers[-1].start()

    try:
        training = train(rows, SETTINGS, n_threads=1, monitor=Monitor(callbacks=(stop,)))
        watchers[0].join()
    finally:
        with suppress(ProcessLookupError):  # its nanny ends it as well
            os.kill(stopped[0], signal.SIGKILL)
    client.wait_for_workers(4, timeout=300)
    assert rows.traffic.rebuilt > 0
    assert model_bytes(training, tmp_path) == expected


def give_up(client, address):
    """Have the scheduler look for silent workers as it does by itself, with a shorter patience, until one is gone."""

    async def look(dask_scheduler):
        usual, dask_scheduler.worker_ttl = dask_scheduler.worker_ttl, 5.0
        try:
            await dask_scheduler.check_worker_ttl()
        finally:
            dask_scheduler.worker_ttl = usual

    while address in client.nthreads():
        time.sleep(0.5)
        client.run_on_scheduler(look)


def release(process):
    """Wait until a worker has stopped, and let it go on after a while."""
    state = ""
    while state != "T":
        time.sleep(0.1)
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    time.sleep(1.5)  # longer than the driver waits before it looks around
    os.kill(process, signal.SIGCONT)


def stop_at_split():
    """Have this worker stop when a node is divided next, once."""
    from qbdt.training.partitions.rows import PartitionRows

    whole = PartitionRows.split

    def split(self, *arguments):
        PartitionRows.split = whole  # type: ignore[method-assign]
        os.kill(os.getpid(), signal.SIGSTOP)
        return whole(self, *arguments)

    PartitionRows.split = split  # type: ignore[method-assign]


def test_workers_that_answer_twice_change_nothing(client, dataset, expected, tmp_path, monkeypatch):
    """Every step is sent again, as after a lost answer: rows have made it already, and only repeat their results."""
    once = partitions._DaskPartitions._send

    def send_twice(self, calls):
        once(self, calls)
        return once(self, calls)

    monkeypatch.setattr(partitions._DaskPartitions, "_send", send_twice)
    rows = OnCluster(divide_dataset(dataset, 5), client=client, fan_in=2)
    assert model_bytes(train(rows, SETTINGS, n_threads=1), tmp_path) == expected
