"""One small cluster for all tests of this folder; starting one takes seconds."""

from contextlib import suppress

import dask
import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="package")
def client():
    """Four worker processes of one thread; killed ones are started again.

    15 s after a worker was lost, a cluster closes its place for good if no worker of its name is there. Tests that kill
    the same worker twice may have it gone at that very moment.
    """
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}):
        cluster = LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
        client = Client(cluster, direct_to_workers=True)
        yield client
        with suppress(TimeoutError):  # on a busy machine a worker may take long to end; it ends with this process
            client.close()
            cluster.close()
