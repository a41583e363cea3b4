"""Some faults at some operations of a run; `make faults` tries all of them, of every command."""

import pytest

from tests.faults.runner import build_shim, find_compiler, run_case

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine, or no Linux")


def test_a_run_survives_faults_and_ends_with_the_same_bytes(tmp_path):
    operations, trials = run_case(build_shim(tmp_path), "run, paper", every=60)
    assert {"open", "write", "fsync", "rename"} <= set(operations)
    assert len(trials) >= 5
    assert {trial["exit"] for trial in trials} <= {-9, 0, 2}
    assert [trial for trial in trials if trial["wrong"]] == []
