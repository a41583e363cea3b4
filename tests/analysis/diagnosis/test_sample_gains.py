"""More events of one sample: which there are, what thinning one leaves, and predictions of known gains."""

import numpy as np
import pytest

from qbdt.analysis.diagnosis.curves import Draws, LearningCurve
from qbdt.analysis.diagnosis.sample_gains import (
    SHARE,
    gain_table,
    list_samples,
    measure_gains,
    predict_gain,
    thin_process,
    thin_source,
)
from qbdt.analysis.diagnosis.simulation import ProcessStatistics
from qbdt.data import Dataset, Events, Role, Sample, Systematic

AT = (0.125, 0.25, 0.5, 1.0)


def events(n, first=0):
    return Events({"x": np.arange(n, dtype=float)}, np.ones(n), {"event": np.arange(first, first + n)})


@pytest.fixture
def data():
    samples = [
        Sample("h", Role.SIGNAL, events(400)),
        Sample("b", Role.BACKGROUND, events(1000)),
        Sample("rare", Role.BACKGROUND, events(20)),
        Sample("data", Role.DATA, events(500)),
    ]
    both, one = {"b": events(1000), "h": events(400)}, {"b": events(1000)}
    sources = [
        Systematic.shape("copies", both, both),
        Systematic.shape("one_side", one),
        Systematic.shape("others", {"b": events(1000, first=5000)}),
        Systematic.weight("weights", {"b": np.full(1000, 1.1)}),
        Systematic.norm("size", 0.1, processes=["b"]),
    ]
    return Dataset(samples, sources)


def count(dataset, source="", direction="up"):
    found = dataset.varied(source, direction) if source else {s.name: s.events for s in dataset.samples}
    return {name: own.n_rows for name, own in found.items()}


def test_samples_that_may_be_generated(data):
    """Not few events, recorded ones, weights, or copies to one side, which come with the nominal events."""
    assert list_samples(data) == [("h", False), ("b", False), ("copies", True), ("others", True)]


def test_a_process_is_thinned_with_its_variations(data):
    thin = thin_process(data, "b", 0.25, seed=2)
    kept = thin.sample("b").events.n_rows
    assert 200 < kept < 300
    assert count(thin) == {"h": 400, "b": kept, "rare": 20, "data": 500}
    assert thin.sample("b").events.total == pytest.approx(4 * kept)
    assert count(thin, "copies") == count(thin, "copies", "down") == {"b": kept, "h": 400}
    assert count(thin, "weights")["b"] == count(thin, "size")["b"] == kept


def test_the_events_of_a_source_are_thinned_alone(data):
    thin = thin_source(data, "copies", 0.25, seed=2)
    assert count(thin) == count(data)
    up, down = (thin.varied("copies", side)["b"] for side in ("up", "down"))
    assert up.identifier("event").tolist() == down.identifier("event").tolist()
    assert 200 < up.n_rows < 300
    assert up.total == pytest.approx(4 * up.n_rows)
    assert count(thin, "one_side") == count(data, "one_side")


@pytest.mark.parametrize("exponent", [0.5, 1.0])
@pytest.mark.parametrize(("factor", "tenfold"), [(2.0, False), (10.0, True)])
def test_predictions_are_right_within_their_errors(exponent, factor, tenfold):
    """σ_μ = 1 + 0.03 x^−γ of this sample + 0.02 of others, seen with the spread of trainings."""
    rng, pulls, repeats, x = np.random.default_rng(4), [], 3, np.array(AT)
    now = 1.05
    truth = (1.02 + 0.03 * factor**-exponent) / now - 1
    for _ in range(200):
        all_thin = 1 + 0.05 * x**-exponent + rng.normal(0, 0.003 / np.sqrt(x), (repeats, 4))
        values, spread = all_thin.mean(axis=0), all_thin.std(axis=0, ddof=1)
        values[-1], spread[-1] = all_thin[0, -1], 0.0
        curve = LearningCurve("share", AT, *(2 * (tuple(values), tuple(spread))))
        one_thin = 1.02 + 0.03 * SHARE**-exponent + rng.normal(0, 0.003 / SHARE**0.5, repeats)
        found = predict_gain("b", False, one_thin.tolist(), curve, None)
        change, error = (found.tenfold, found.tenfold_error) if tenfold else (found.doubled, found.doubled_error)
        pulls.append((change - truth) / error)
    assert np.mean(np.abs(pulls) < 1) > 0.55
    assert np.mean(np.abs(pulls) < 2) > 0.8


def test_what_seems_to_get_better_with_fewer_events_is_noise():
    values = (1.4, 1.2, 1.1, 1.05)
    curve = LearningCurve("share", AT, values, (0.01,) * 4, values, (0.01,) * 4)
    found = predict_gain("b", False, [1.02, 1.03], curve, ProcessStatistics("b", 0.1, 1.029, 1.008))
    assert (found.doubled, found.tenfold) == (0.0, 0.0)
    assert found.tenfold_error > 0.001
    assert gain_table([found]).rows[0][:3] == ("b", "-2.0 ± 0.1", "-4.0 ± 0.2")


def test_every_sample_is_thinned_in_turn(dataset, trainer, fit):
    values = (0.5, 0.4, 0.35, 0.32)
    curve = LearningCurve("share", AT, values, (0.01,) * 4, values, (0.01,) * 4)
    gains = measure_gains(Draws(dataset, trainer, fit, repeats=1, n_threads=1), curve)
    assert {one.sample for one in gains} == {"signal", "background", "r", "rate"}
    assert [one.tenfold for one in gains] == sorted(one.tenfold for one in gains)
    assert all(one.doubled_error > 0 for one in gains)


def test_samples_whose_quarter_cannot_be_trained_on_are_left_out(dataset, trainer, fit):
    """A quarter of this background may have no yield."""
    n = 300
    weight = np.where(np.arange(n) < 2, 40.0, 0.0)  # one event in each fold
    few = Events({name: np.zeros(n) for name in dataset.features}, weight, {"event_number": np.arange(n)})
    both = Dataset([*dataset.samples, Sample("few", Role.BACKGROUND, few)], folds=dataset.folds)
    values = (0.5, 0.4, 0.35, 0.32)
    curve = LearningCurve("share", AT, values, (0.01,) * 4, values, (0.01,) * 4)
    assert ("few", False) in list_samples(both)
    gains = measure_gains(Draws(both, trainer, fit, repeats=2, n_threads=1), curve)
    assert {one.sample for one in gains} == {"signal", "background"}
