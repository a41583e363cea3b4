"""What more simulated events would give: extrapolations of curves that are known."""

from dataclasses import replace

import numpy as np
import pytest

from qbdt.analysis.diagnosis.curves import LearningCurve
from qbdt.analysis.diagnosis.sensitivity import compute_template_sensitivity
from qbdt.analysis.diagnosis.simulation import describe_statistics, expect_more, extrapolate, simulation_tables
from qbdt.data import Role
from qbdt.inference.templates import ProcessTemplates, TemplateSet

AT = (0.125, 0.25, 0.5, 1.0)


def curve(values, spread=0.01):
    spreads = tuple(np.broadcast_to(spread, 4))
    return LearningCurve("share of the training events", AT, tuple(values), spreads, tuple(values), spreads)


def templates():
    signal = ProcessTemplates("s", Role.SIGNAL, np.array([1.0, 6.0]), np.array([0.1, 0.1]))
    thin = ProcessTemplates("thin", Role.BACKGROUND, np.array([50.0, 4.0]), np.array([100.0, 8.0]))
    thick = ProcessTemplates("thick", Role.BACKGROUND, np.array([50.0, 4.0]), np.array([0.5, 0.04]))
    return TemplateSet("score", np.array([0.0, 0.5, 1.0]), (signal, thin, thick))


@pytest.mark.parametrize("exponent", [0.5, 1.0])
@pytest.mark.parametrize("factor", [2.0, 10.0, None])
def test_predictions_are_right_within_their_errors(exponent, factor):
    rng, pulls, repeats = np.random.default_rng(3), [], 3
    truth = 1 + 0.05 * (0.0 if factor is None else factor**-exponent)
    x = np.array(AT)
    for _ in range(100):
        found = 1 + 0.05 * x**-exponent + rng.normal(0, 0.005 / np.sqrt(x), (repeats, len(x)))
        values, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
        values[-1], spread[-1] = found[0, -1], 0.0
        ratio, error = extrapolate(curve(values, spread), repeats, factor)
        pulls.append((ratio * values[-1] - truth) / (error * values[-1]))
    assert np.mean(np.abs(pulls) < 1) > 0.55
    assert np.mean(np.abs(pulls) < 2) > 0.85


def test_equal_repeats_by_chance_are_no_small_error():
    luck = curve([1.2, 1.1, 1.05, 1.03], [0.03, 0.02, 0.0001, 0.0])
    assert extrapolate(luck, 3, 10.0)[1] > 0.007


def test_a_curve_that_rises_is_flat():
    values = [1.0, 1.01, 1.02, 1.03]
    found = {extrapolate(curve(values), 3, factor)[0] * values[-1] for factor in (2.0, 10.0, None)}
    assert max(found) == pytest.approx(min(found))
    assert 1.0 < max(found) < 1.03


def test_statistics_of_templates_are_those_of_the_thin_process():
    found = describe_statistics(templates())
    assert [one.process for one in found] == ["thin", "thick"]
    assert found[0].share > 10 * found[1].share > 0
    now = compute_template_sensitivity(templates()).sigma_full
    assert now > found[0].doubled > found[0].tenfold


def test_more_events_are_those_of_training_and_of_templates():
    exact = curve([1.0] * 4, 0.0)
    more = expect_more(exact, templates(), 3)
    assert [one.factor for one in more] == [2.0, 10.0, None]
    assert all(one.sigma == pytest.approx(one.in_templates) for one in more)
    limit = compute_template_sensitivity(templates(), mc_stat=False).sigma_full
    assert more[-1].in_templates == pytest.approx(limit)
    rising = replace(exact, full=(1.4, 1.2, 1.1, 1.05), full_spread=(0.05, 0.04, 0.03, 0.0))
    for one in expect_more(rising, templates(), 3):
        ratio, error = extrapolate(rising, 3, one.factor)
        assert one.error / one.sigma == pytest.approx(error / ratio)
    alone = expect_more(replace(exact, full=(1.4, 1.2, 1.1, 1.05)), templates(), 3, mc_stat=False)
    assert alone[0].in_templates == pytest.approx(limit)
    assert alone[2].sigma < alone[1].sigma < alone[0].sigma < limit
    text = "\n".join(str(table) for table in simulation_tables(limit, more, describe_statistics(templates())))
    assert "∞" in text
    assert "thin" in text
