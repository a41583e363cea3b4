"""Data that several tests use."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("qbdt", deadline=None)  # compiling and busy machines take their time; timings are not tests
settings.load_profile("qbdt")

SHARED = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def paper_files() -> Path:
    """Folder with the paper's own events; tests that need it are skipped where it is absent."""
    folder = SHARED / "tautaugamma"
    if not folder.is_dir():
        pytest.skip(f"the paper's events are not in {folder}")
    return folder
