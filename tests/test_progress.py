"""Progress in logs."""

import pytest

from qbdt.cli.app import _say_how_to_go_on
from qbdt.progress import lines, visible


def test_a_log_says_how_far_a_stage_is(capsys):
    with lines(every=0.0)("training", 200) as advance:
        advance(50)
        advance(100)
    shown = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in shown] == ["training: 50 of 200 (25%)", "training: 150 of 200 (75%)"]


def test_a_short_stage_says_nothing_but_its_end(capsys):
    for last in (False, True):
        with lines(last=last)("reading", None) as advance:
            advance(7)
    assert capsys.readouterr().err == "reading: 7, 0 s\n"


def test_without_a_terminal_there_are_lines(capsys):
    with visible(last=True)("training", 1) as advance:
        advance(1)
    assert capsys.readouterr().err.startswith("training: 1 of 1 (100%)")


@pytest.mark.parametrize(
    ("command", "said"), [("run", "the same command goes on"), ("train", "--resume"), ("ntuples", "")]
)
def test_an_interrupted_command_says_how_to_go_on(command, said):
    assert said in _say_how_to_go_on([command])
    assert bool(said) == bool(_say_how_to_go_on([command]))
