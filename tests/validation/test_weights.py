"""Weights: results do not depend on their unit, and negative ones are used as they are, from training to the fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from validation.weights import crowded, everywhere, ratios_table, reweighted, signed, study, table, thinned

from qbdt.analysis.diagnosis.sensitivity import compute_sensitivity
from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.folds import ModuloFolds
from qbdt.data.samples.inferno import inferno
from qbdt.data.systematic import Systematic
from qbdt.inference.asimov import fit_asimov
from qbdt.inference.construction import build_templates
from qbdt.inference.fit import run_fit
from qbdt.inference.settings import FitSettings
from qbdt.inference.templates.score_bins import ScoreBins
from qbdt.inference.templates.score_histograms import fill
from qbdt.training.ensembles import FoldedEnsemble
from qbdt.training.methods import train
from qbdt.training.settings import Settings

BINNINGS = st.sampled_from(["uniform", "equal_signal", "equal_background"])


def scored(seed=0, n=800, negative=0.15):
    """Scored events with weights of both signs and sources of all kinds."""
    rng = np.random.default_rng(seed)

    def events(centre, weight):
        signs = np.where(rng.random(n) < negative, -1.0, 1.0)
        return Events({"score": rng.normal(centre, 1, n)}, weight * rng.exponential(1, n) * signs, {"i": np.arange(n)})

    s, b = events(1.0, 0.02), events(-0.5, 0.5)
    up = Events({"score": b.column("score") + 0.1}, b.weight, {"i": np.arange(n)})
    sources = [
        Systematic.shape("shape", {"b": up}),
        Systematic.weight("tilt", {"b": b.weight * (1 + 0.05 * np.tanh(b.column("score")))}),
        Systematic.norm("xs", 0.1, processes=["b"]),
    ]
    samples = [Sample("s", Role.SIGNAL, s), Sample("b", Role.BACKGROUND, b)]
    return Dataset(samples, sources, ModuloFolds(2, "i"))


@given(seed=st.integers(0, 1000), exponent=st.integers(-40, 40), binning=BINNINGS)
@settings(max_examples=25)
def test_a_power_of_two_scales_templates_exactly(seed, exponent, binning):
    """Other units of the weights give the same choices and, undone by `scale`, the same templates to the last bit."""
    factor = 2.0**exponent
    base = scored(seed)
    plain = build_templates(base, FitSettings(binning=binning, bins=8))
    other = build_templates(base.scaled(factor), FitSettings(binning=binning, bins=8, scale=1 / factor))
    assert (other.c, other.bins) == (plain.c, plain.bins)
    assert other.templates.to_dict() == plain.templates.to_dict()
    one, two = fit_asimov(plain.templates.arrays()), fit_asimov(other.templates.arrays())
    assert (one.z, one.sigma_mu) == (two.z, two.sigma_mu)


@given(seed=st.integers(0, 1000), factor=st.floats(1e-6, 1e6), binning=BINNINGS)
@settings(max_examples=25)
def test_any_factor_changes_rounding_only(seed, factor, binning):
    base = scored(seed)
    plain = compute_sensitivity(base, FitSettings(binning=binning, bins=8))
    other = compute_sensitivity(base.scaled(factor), FitSettings(binning=binning, bins=8, scale=1 / factor))
    assert other.sigma_full == pytest.approx(plain.sigma_full, rel=1e-9)  # sums of 800 rounded products
    assert other.sigma_stat == pytest.approx(plain.sigma_stat, rel=1e-9)


def test_a_whole_fit_does_not_depend_on_the_unit():
    base, options = scored(3), {"bins": 6, "scan": False}
    plain = run_fit(base, FitSettings(**options))
    other = run_fit(base.scaled(2.0**-12), FitSettings(**options, scale=2.0**12))
    assert other.expected.to_dict() == plain.expected.to_dict()


def test_from_training_to_the_fit():
    """Models trained on weights in another unit are the same, so everything after them is."""
    dataset, options = inferno(400), {"bins": 5, "min_entries": 0}

    def found(data, scale):
        models = FoldedEnsemble(
            tuple(
                train(data.without_fold(i), Settings(method="paper", n_trees=4), n_threads=1).ensemble for i in range(2)
            ),
            data.folds,
        )
        return compute_sensitivity(
            data.transform(lambda e: {"score": models.score(e, 1)}), FitSettings(**options, scale=scale)
        )

    assert found(dataset, 1.0) == found(dataset.scaled(2.0**20), 2.0**-20)


def test_templates_sum_signed_weights():
    base = scored(5)
    templates = fill(base, ScoreBins.of(np.linspace(-3, 3, 7)))
    events = base.sample("b").events
    place = np.clip(np.searchsorted(np.linspace(-3, 3, 7), events.column("score"), side="right") - 1, 0, 5)
    for i in range(6):
        inside = events.weight[place == i]
        assert templates.background[i] == pytest.approx(inside.sum(), rel=1e-12)
        assert templates.process("b").variance[i] == pytest.approx((inside**2).sum(), rel=1e-12)
    assert (events.weight < 0).mean() > 0.1


def crowded_where_signal_is(events):
    """Chance of a negative weight: large where signal and background are hard to tell apart."""
    return 0.4 * np.exp(-0.5 * (np.asarray(events.column("x0"), dtype=float) ** 2) / 0.7)


def test_signs_leave_expectations():
    data = inferno(20_000)
    for chance in (everywhere(0.2), crowded_where_signal_is):
        other = signed(data, chance, 1)
        before, after = (d.sample("background").events for d in (data, other))
        assert 0.05 < np.mean(after.weight < 0) < 0.25
        error = np.sqrt(np.square(after.weight).sum())
        assert abs(after.total - before.total) < 4 * error
        middle = np.abs(np.asarray(before.column("x0"))) < 0.5
        assert abs(after.weight[middle].sum() - before.weight[middle].sum()) < 4 * error
        varied = other.varied("rate", "up")["background"]
        assert np.array_equal(np.sign(varied.weight), np.sign(after.weight))  # "rate" leaves x0, which decides
    untouched = other.sample("signal").events
    assert np.array_equal(untouched.weight, data.sample("signal").events.weight)


def test_a_small_study():
    """Signs cost statistics in training with raw weights, and none where these are smoothed."""
    data = inferno(1500).with_systematics([])
    fit = FitSettings(binning="equal_signal", transform="none", bins=8)
    found = study([data], {"even": everywhere(0.2)}, Settings(method="paper", n_trees=10), fit)
    best, treated = found["none"]["–"][0].sigma_stat, {name: one.sigma_stat for name, (one,) in found["even"].items()}
    assert list(treated) == ["smooth", "raw", "dropped", "absolute values", "as few positive"]
    assert treated["smooth"] == pytest.approx(best, rel=1e-3)  # one region, so the same shape, in other units
    assert treated["absolute values"] == pytest.approx(best)
    assert treated["raw"] > 1.05 * best
    assert len(table("small", found).rows) == len(ratios_table("small", found).rows) == 1


def test_negative_weights_crowd_as_often_as_asked():
    data = inferno(4000)
    for share in (0.05, 0.2, 0.4):
        chances = crowded(data, share, "x0", -2.0, 4.0)(data.sample("background").events)
        assert chances.mean() == pytest.approx(share, rel=0.01)
        assert (chances.min(), chances.max() <= 0.45) == (0.0, True)


def test_a_thinned_sample_has_as_many_effective_events():
    data = inferno(4000)
    other = signed(data, everywhere(0.3), 0)
    few = thinned(data, other, 0)
    wanted, kept = (one.sample("background").events.effective_entries for one in (other, few))
    assert kept == pytest.approx(wanted, rel=0.2)  # 640 of them, drawn at random
    assert few.total(Role.BACKGROUND) == pytest.approx(data.total(Role.BACKGROUND), rel=0.2)


def test_treatments_change_weights_only_of_the_background():
    data = scored(1)
    halved = reweighted(data, lambda _, weight: weight / 2)
    assert halved.total(Role.SIGNAL) == data.total(Role.SIGNAL)
    assert halved.varied("shape", "up")["b"].total == pytest.approx(data.varied("shape", "up")["b"].total / 2)
    assert halved.varied("tilt", "up")["b"].total == pytest.approx(data.varied("tilt", "up")["b"].total / 2)
