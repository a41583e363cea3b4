"""The seeds and the first changed inputs of every target; `make fuzz` goes on for hours."""

import random
import subprocess
import sys
import time

import pytest

from tests.fuzz import runner
from tests.fuzz.runner import try_input
from tests.fuzz.targets import TARGETS, Target

SECONDS = 0.2
"""For each target, after its seeds."""


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_end_well_or_in_an_error_of_qbdt(name):
    end, number, n_seeds = time.process_time() + SECONDS, 0, len(TARGETS[name].seeds)
    while number < n_seeds + 3 or time.process_time() < end:
        assert try_input(name, number) is None
        number += 1


def change_nothing(content: object, _: random.Random) -> object:
    return content


def test_an_input_that_waits_for_ever_is_found(monkeypatch):
    monkeypatch.setattr(runner, "HANGS_AFTER", 1)
    monkeypatch.setitem(TARGETS, "waiting", Target((None,), change_nothing, lambda *_: time.sleep(60)))
    finding = try_input("waiting", 0)
    assert finding is not None
    assert "Hanging" in finding.reason


def test_time_of_other_processes_counts(monkeypatch):
    monkeypatch.setattr(runner, "MOST_SECONDS", 0.2)
    command = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"]
    use = Target((None,), change_nothing, lambda *_: subprocess.run(command, check=True))
    monkeypatch.setitem(TARGETS, "busy", use)
    finding = try_input("busy", 0)
    assert finding is not None
    assert "took" in finding.reason
