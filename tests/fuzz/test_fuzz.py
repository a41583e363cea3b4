"""The seeds and the first changed inputs of every target; `make fuzz` goes on for hours."""

import time

import pytest

from tests.fuzz.runner import try_input
from tests.fuzz.targets import TARGETS

SECONDS = 0.2
"""For each target, after its seeds."""


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_end_well_or_in_an_error_of_qbdt(name):
    end, number, n_seeds = time.process_time() + SECONDS, 0, len(TARGETS[name].seeds)
    while number < n_seeds + 3 or time.process_time() < end:
        assert try_input(name, number) is None
        number += 1
