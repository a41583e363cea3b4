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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let one worker do all tests that share a fixture of their module or folder, so that it is made once."""
    for item in items:
        group = item.get_closest_marker("xdist_group")
        place = group.args[0] if group else _shared_fixture(item)
        if place and not group:
            item.add_marker(pytest.mark.xdist_group(place))
        if place and config.getoption("loadgroup", False) and hasattr(item, "_id"):
            # pytest-xdist 3.8 reads the group at the end of the name, and cannot write it there since pytest 9.2.
            assert item.parent is not None
            item._id = item.parent.id.child(f"{item.name}@{place}")


def _shared_fixture(item: pytest.Item) -> str:
    """Folder or module of the widest fixture that a test shares with others; empty where there is none."""
    used = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
    shared = [one[-1].baseid for one in used if one[-1].scope != "function"]
    return min((place for place in shared if place not in ("", "tests")), key=len, default="")
