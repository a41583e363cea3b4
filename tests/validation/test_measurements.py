"""Measurements with known densities, small: the limits themselves, and that training comes near them."""

import numpy as np
import pytest
from validation.known_densities import PROBLEMS, through_file
from validation.measurements import check, run, tabulate

from qbdt.training.partner import Partner

N, TREES = 2000, 30


@pytest.fixture(scope="module")
def outcomes():
    return run(["control", "alone", "two", "mass", "moved", "nominal"], N, 1, 1, n_trees=TREES, n_leaves=6)


def test_limits_of_the_inferno_problem():
    """B4 of INFERNO has σ(s) = 16.89 for 50 events; a source that is known better makes it smaller."""
    problem = PROBLEMS["alone"]()
    _, rows, density = problem.densities()
    constrained = np.linalg.inv((rows / density) @ rows.T + np.diag([0.0, 1.0, 1.0, 1.0]))
    assert 50 * np.sqrt(constrained[0, 0]) == pytest.approx(16.89, rel=0.005)
    assert problem.limit()[0, 0] < constrained[0, 0]


@pytest.mark.parametrize(("name", "most"), [("control", 1.2), ("two", 1.3), ("mass", 1.6), ("moved", 1.15)])
def test_few_events_come_near_the_limit(outcomes, name, most):
    """Of 2 000 events each; `make measurements` has 100 000 and the criteria themselves."""
    assert 0.95 < max(outcomes[name].ratios.values()) < most
    assert outcomes[name].n_cells <= outcomes[name].problem.cells


def test_means_of_several_fits(outcomes):
    (row,) = tabulate([outcomes["mass"], outcomes["mass"]])
    assert row[:3] == ("a mass", "mass", str(outcomes["mass"].n_cells))
    assert row[-1].endswith("± 0.0 %")


def test_a_file_is_as_good_as_the_numbers():
    assert through_file().about(["mu", "r"]) == pytest.approx(Partner(("r",), ((15.0,),)).about(["mu", "r"]))


def test_a_partner_is_worth_knowing(outcomes):
    assert outcomes["control"].expected[0] < outcomes["alone"].expected[0]
    assert len(check(outcomes)) == 6


def test_a_working_point_is_worth_knowing(outcomes):
    assert outcomes["moved"].covariance[0, 0] < 0.95 * outcomes["nominal"].covariance[0, 0]
