"""Data that several tests use."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

EXAMPLES = int(os.environ.get("QBDT_EXAMPLES", "50"))
"""Examples of a property that does not say how many; `make nightly` tries more."""

settings.register_profile("qbdt", deadline=None, max_examples=EXAMPLES)  # compiling takes time, which is no test
settings.load_profile("qbdt")

SHARED = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def paper_files() -> Path:
    """Folder with the paper's own events; tests that need it are skipped where it is absent."""
    folder = SHARED / "tautaugamma"
    if not folder.is_dir():
        pytest.skip(f"the paper's events are not in {folder}")
    return folder
