"""Where all inner folds end together: by what all found so far, whichever was ahead."""

from itertools import permutations
from typing import Any

import pytest

from qbdt.training.monitor import Monitor
from qbdt.training.profile.combination import JOINT_PATIENCE, BestNumber
from qbdt.training.profile.inner_folds import N_FOLDS
from qbdt.training.profile.joint_end import JointEnd
from qbdt.training.profile.ratio import FittedRatio, choose_size, end_together
from qbdt.training.profile.turns import Turns
from qbdt.training.settings import Settings
from tests.training.profile.test_combination import ONE_STRENGTH, fold
from tests.training.profile.test_training import assert_same, folds_of, problem, trained_on

LOSING = (1.0, 1.1, 1.2, 1.3, 0.5)
"""σ_μ of looks, the last of which comes too late."""


def test_the_end_is_that_of_what_all_folds_found():
    asked: list[Any] = []

    def is_end(found, number):
        asked.append((list(found), number))
        return number >= 4

    joint = JointEnd(3, is_end, {2: "an earlier training's"})
    joint.report(0, "a", 1)
    assert not asked  # nothing is known of the second
    joint.report(1, "b", 9)
    joint.report(0, "aa", 3)
    assert not joint.is_over
    joint.report(0, "aaa")  # grows no more
    assert joint.is_over
    assert asked == [([a, "b", "an earlier training's"], n) for a, n in (("a", 1), ("aa", 3), ("aaa", 9))]


def test_folds_that_are_done_need_no_end():
    joint: JointEnd[str] = JointEnd(2, lambda found, number: True)
    for number in range(2):
        joint.report(number, "all")
    assert not joint.is_over


def test_ratios_end_after_two_looks_that_are_worse():
    folds = folds_of(*(LOSING,) * N_FOLDS)
    assert [max(one.looks) for one in end_together(folds)] == [30] * N_FOLDS
    assert choose_size(folds) == 10
    assert choose_size(folds[1:]) == 50  # four folds know too little of the error
    assert choose_size(folds_of((2.0, *LOSING[1:]), *(LOSING,) * (N_FOLDS - 1))) == 50  # an error of more than 2 %


def test_an_end_does_not_depend_on_later_looks():
    short = folds_of(*(LOSING[:3],) * 2, *(LOSING,) * 3)
    assert [one.looks for one in end_together(short)] == [one.looks for one in folds_of(*(LOSING[:3],) * N_FOLDS)]
    odd = [FittedRatio((), {10: 1.0, 13: 1.1, 20: 1.2}), FittedRatio((), {10: 1.0, 20: 1.2})]
    assert [one.at(13) for one in odd] == [1.1, 1.0]
    assert [one.at(5) for one in odd] == [1.0, 1.0]


def test_shifts_end_where_none_was_better_for_some_time():
    folds = [fold([5.0, 1.0, *([2.0] * JOINT_PATIENCE), 0.5]).integrals, fold([1.0]).integrals]
    best = BestNumber(ONE_STRENGTH)
    ends = [best.is_end(folds, number) for number in range(JOINT_PATIENCE + 3)]
    assert ends.index(True) == JOINT_PATIENCE + 1
    assert best.number == 1
    at_once = BestNumber(ONE_STRENGTH)
    assert at_once.is_end(folds, JOINT_PATIENCE + 2)
    assert at_once.number == 1


@pytest.fixture
def hasty(monkeypatch):
    """Let folds end together soon."""
    monkeypatch.setattr("qbdt.training.profile.ratio.LOOKS", 1)
    monkeypatch.setattr("qbdt.training.profile.ratio.CERTAIN", 1.0)
    monkeypatch.setattr("qbdt.training.profile.combination.JOINT_PATIENCE", 3)


@pytest.mark.usefixtures("hasty")
def test_results_are_the_same_however_folds_grow():
    dataset, settings = problem(seed=3), Settings(method="profile", n_trees=48, n_leaves=4)
    in_order = trained_on(dataset, settings, monitor=Monitor(callbacks=(lambda report: False,)))
    kept: list[Any] = []
    grown = sum(len(part["looks"][0]) for part in in_order.data["parts"])
    assert grown < N_FOLDS * 17  # looks: all ended before the last
    for n_threads in (1, 2, N_FOLDS):
        found = trained_on(dataset, settings, n_threads=n_threads, checkpoint=kept.append)
        assert_same(in_order, found)
        assert found.data == in_order.data
    for one in (kept[0], kept[3], kept[7]):
        assert_same(in_order, trained_on(dataset, settings, n_threads=1, resume=one))


@pytest.mark.usefixtures("hasty")
def test_fewer_trees_are_grown_side_by_side(monkeypatch):
    noted: list[Any] = []
    note_tree = Turns.note_tree

    def count(self):
        noted.append(1)
        note_tree(self)

    monkeypatch.setattr(Turns, "note_tree", count)
    dataset, settings = problem(seed=3), Settings(method="profile", n_trees=48, n_leaves=4)
    trained_on(dataset, settings, monitor=Monitor(callbacks=(lambda report: False,)))
    in_order = len(noted)
    trained_on(dataset, settings, n_threads=1)
    assert len(noted) - in_order < in_order


def test_the_order_of_reports_does_not_matter():
    looks = [one.looks for one in folds_of(*((1.0, 1.1, 1.2),) * 3)]
    for order in permutations([(i, n) for i in range(2) for n in (10, 20)]):
        joint = JointEnd(3, lambda found, number: number >= 20, {2: looks[2]})
        reached = [0, 0]
        for i, number in order:
            reached[i] = max(reached[i], number)
            joint.report(i, looks[i], reached[i])
        assert joint.is_over
