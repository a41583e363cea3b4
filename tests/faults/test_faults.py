"""Some faults at some operations of a run; `make faults` tries all of them, of every command."""

import re
from pathlib import Path

import pytest

from tests.faults.runner import build_shim, find_compiler, run_case

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine, or no Linux")

ROOT = Path(__file__).parents[2]


def test_the_page_on_faults_names_tests_that_exist():
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")))
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    there = {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    assert len(named) > 40
    assert named <= there


def test_a_run_survives_faults_and_ends_with_the_same_bytes(tmp_path):
    operations, trials = run_case(build_shim(tmp_path), "run, paper", every=60)
    assert {"open", "write", "fsync", "rename"} <= set(operations)
    assert len(trials) >= 5
    assert {trial["exit"] for trial in trials} <= {-9, 0, 2}
    assert [trial for trial in trials if trial["wrong"]] == []
