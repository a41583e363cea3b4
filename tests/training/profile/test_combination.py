"""What the folds of a training choose together."""

import numpy as np
import pytest

from qbdt.arrays import NODE
from qbdt.training.profile.combination import best_number
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.parameters import Parameters
from qbdt.training.profile.shifts import FittedShifts

ONE_STRENGTH = Parameters(("mu",), (("s",),), (), (0,), np.zeros((1, 1)), (False,))


def fold(variances, n_trees=None):
    """Return a fold without sources whose r₀ has these variances after 0, 1, 2 … trees of the shifts, or the last."""
    n_trees = len(variances) - 1 if n_trees is None else n_trees
    integrals = tuple(
        Integrals(np.array([1.0, 0.0]), np.diag([variance, 1.0]), np.zeros((0, 2))) for variance in variances
    )
    trees = tuple(np.zeros(1, dtype=NODE) for _ in range(n_trees))
    return FittedShifts(trees, tuple(np.zeros((1, 0)) for _ in trees), integrals)


def test_the_number_of_trees_is_best_for_all_parts_together():
    assert best_number([fold([5.0, 1.0, 4.0, 4.0]), fold([5.0, 6.0, 2.0, 4.0])], ONE_STRENGTH) == 2


def test_a_part_with_fewer_trees_counts_with_all_of_them():
    assert best_number([fold([5.0, 1.0]), fold([5.0, 4.0, 3.0, 2.0])], ONE_STRENGTH) == 3


def test_a_finished_part_knows_only_its_last_number():
    finished = [fold([2.0], n_trees=3), fold([9.0], n_trees=3)]
    assert best_number(finished, ONE_STRENGTH) == 3
    assert finished[0].cut(3).trees == finished[0].trees


@pytest.mark.parametrize(("number", "kept"), [(0, 0), (1, 1), (3, 3), (7, 3)])
def test_cutting_keeps_the_integrals_of_what_is_left(number, kept):
    cut = fold([5.0, 4.0, 3.0, 2.0]).cut(number)
    assert len(cut.trees) == len(cut.values) == kept
    assert [one.gram[0, 0] for one in cut.integrals] == [5.0 - kept]
