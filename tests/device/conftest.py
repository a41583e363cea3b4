import shutil
import sys

import pytest

from qbdt.training.paper import boosting
from qbdt.training.profile import method
from tests.device.host import HostDevice


@pytest.fixture
def host_device(monkeypatch):
    """The device "cuda" is one in ordinary memory."""
    if sys.platform != "linux" or shutil.which("g++") is None:
        pytest.skip("kernels are compiled by g++ on Linux; the job there runs this")
    device = HostDevice()
    for module in (boosting, method):
        monkeypatch.setattr(module, "open_device", lambda name: None if name is None else device)
    return device
