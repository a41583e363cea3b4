"""Problems that are drawn at random: the same ones in every run, with the yields and sources that they say."""

import numpy as np
import pytest
from validation.random_problems import Outcome, draw_problem, make_tables

from qbdt.statistics import Sensitivity


@pytest.mark.parametrize("number", range(1, 13))
def test_a_problem_is_what_its_number_says(number):
    problem, again = draw_problem(number), draw_problem(number)
    data, same = problem.make_dataset(300, 1, problem.scatter), again.make_dataset(300, 1, problem.scatter)
    yields = {sample.name: sample.events.total for sample in data.samples}
    assert yields["s"] == pytest.approx(problem.signal)
    assert [yields[name] for name in ("b1", "b2", "b3")] == pytest.approx(problem.backgrounds)
    assert len(data.systematics) == len(problem.scales) + len(problem.tilts) + len(problem.norms)
    for one, other in zip(data.samples, same.samples, strict=True):
        np.testing.assert_array_equal(one.events.matrix(), other.events.matrix())
        np.testing.assert_array_equal(one.events.weight, other.events.weight)


def test_ratios_are_to_the_best_peer_of_each_fit():
    peers = (Sensitivity(0.5, 1.0), Sensitivity(0.6, 0.8))
    outcome = Outcome(Sensitivity(0.55, 0.4), Sensitivity(0.45, 0.9), peers)
    assert outcome.ratios == pytest.approx((0.5, 0.9))
    table = make_tables({(1, 300): outcome, (2, 300): outcome}, {n: draw_problem(n) for n in (1, 2)})[1]
    assert "0.500 ± 0.000" in str(table)
    assert "0 of 2" in str(table)
