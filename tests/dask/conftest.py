"""One small cluster for all tests of this folder; starting one takes seconds."""

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="package")
def client():
    """Four worker processes of one thread; killed ones are started again."""
    with (
        LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster, direct_to_workers=True) as client,
    ):
        yield client
