"""What others know of the parameters of a training: private parameters are profiled, bad input is named."""

from typing import Any

import numpy as np
import pytest

from qbdt.errors import ConfigError
from qbdt.training.partner import Partner
from qbdt.training.settings import Settings

wrong: Any = Partner
"""Untyped, for what the types forbid."""


def test_private_parameters_are_profiled_with_their_constraints():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(4, 30))
    matrix = rows @ rows.T
    partner = Partner(("mu", "a", "b", "free"), matrix.tolist(), (0.0, 1.0, 1.0, 0.0))
    # the covariance of all, in which only private parameters have constraints, restricted to the shared ones
    full = matrix + np.diag([0.0, 0.0, 1.0, 0.0])
    expected = np.linalg.inv(np.linalg.inv(full)[:2, :2])
    assert partner.about(["a", "unknown", "mu"])[np.ix_([2, 0], [2, 0])] == pytest.approx(expected)
    assert not partner.about(["a", "unknown", "mu"])[1].any()


def test_a_parameter_without_effect_changes_nothing():
    partner = Partner(("a", "idle"), ((2.0, 0.0), (0.0, 0.0)), (1.0, 0.0))
    assert partner.about(["a"]).tolist() == [[2.0]]


def test_settings_keep_it_in_plain_values():
    settings = Settings(partner=Partner(("r",), ((15.0,),)), free=["ttbar"])
    plain = settings.to_dict()
    assert plain["partner"] == {"names": ("r",), "information": ((15.0,),), "priors": (1.0,)}
    assert Settings.from_dict(plain) == settings
    assert "partner" not in Settings().to_dict()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wrong("r", ((1.0,),)), "partner: names='r': a list of names"),
        (lambda: wrong(("r", "r"), np.eye(2)), "partner: names: r is given twice"),
        (lambda: wrong(("r",), np.eye(2)), r"partner: information has shape \(2, 2\): .* \(1, 1\)"),
        (lambda: wrong(("r", "s"), ((1.0, 2.0), (0.0, 1.0))), "partner: information is not symmetric"),
        (lambda: wrong(("r", "s"), ((1.0, 2.0), (2.0, 1.0))), "partner: information has the negative eigenvalue -1"),
        (lambda: wrong(("r",), ((1.0,),), (-1.0,)), "a precision is not negative"),
        (lambda: wrong(("r",), ((10**400,),)), "partner: information=.*: numbers are needed"),
        (lambda: Settings.from_dict({"partner": 3}), "partner=3: a Partner is needed"),
        (lambda: Settings(method="paper", free=["b"]), "free: a setting of method='profile'"),
        (lambda: Settings(strengths={"mu_a": []}), "strengths: mu_a: .*names of signal processes are needed"),
        (lambda: Settings.from_dict({"strengths": {"mu_a": 1.5}}), "strengths: mu_a: 1.5: names of signal processes"),
        (lambda: Settings.from_dict({"strengths": ["a"]}), r"strengths=\['a'\]: must say for each strength"),
        (lambda: Settings(of_interest="mass"), "of_interest='mass': must be names of strengths or sources"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
