import pytest

from qbdt.training.paper import boosting
from qbdt.training.profile import method
from tests.device.host import HostDevice


@pytest.fixture
def host_device(monkeypatch):
    """The device "cuda" is one in ordinary memory."""
    device = HostDevice()
    for module in (boosting, method):
        monkeypatch.setattr(module, "open_device", lambda name: None if name is None else device)
    return device
