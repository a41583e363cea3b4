"""What drives a source: exact shifts, errors that know of copies, significances that are right without a source."""

import numpy as np
import pytest
from scipy import stats

from qbdt.analysis.diagnosis.sensitivity import compute_template_sensitivity
from qbdt.analysis.diagnosis.sources import describe_sources, measure_feature
from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.folds import ModuloFolds
from qbdt.data.systematic import Systematic
from qbdt.inference.construction import build_templates


def background(rng, n=4000):
    return Events({"x": rng.normal(size=n), "z": rng.normal(size=n)}, rng.exponential(1.0, n), {"event": np.arange(n)})


def one_process(events, source):
    signal = Sample("s", Role.SIGNAL, Events({"x": [0.0], "z": [0.0]}, [1.0], {"event": [0]}))
    return Dataset([signal, Sample("b", Role.BACKGROUND, events)], [source], ModuloFolds(2, "event"))


def effect_of(events, source, feature):
    data = one_process(events, source)
    return measure_feature(data, data.systematics[0], Role.BACKGROUND, feature)


def test_a_source_that_scales_everything_has_no_shape():
    events = background(np.random.default_rng(1))
    for source in (
        Systematic.norm("xs", 0.07, processes=["b"]),
        Systematic.weight("sf", {"b": 1.07 * events.weight}, {"b": 0.93 * events.weight}),
    ):
        found = effect_of(events, source, "x")
        assert found.shift == pytest.approx([0.07] * 8, rel=1e-12)
        assert found.shape < 1e-8
        assert found.significance == 0.0


def test_the_region_that_is_moved_is_named():
    events = background(np.random.default_rng(2))
    edge = np.quantile(events.column("x"), 7 / 8)
    factor = np.where(events.column("x") >= edge, 1.2, 1.0)
    found = effect_of(events, Systematic.weight("sf", {"b": factor * events.weight}), "x")
    assert found.shift == pytest.approx([0.0] * 7 + [0.2], abs=1e-12)
    assert found.strongest == 7
    assert found.region == f"x > {edge:.4g}"
    assert found.significance > 10
    other = effect_of(events, Systematic.weight("sf", {"b": factor * events.weight}), "z")
    assert abs(other.significance) < 4
    assert other.shape < 0.1 * found.shape


def test_errors_know_that_copies_are_the_same_events():
    rng = np.random.default_rng(3)
    events = background(rng)
    moved = Events(
        {"x": events.column("x") + 0.01, "z": events.column("z")}, events.weight, {"event": np.arange(events.n_rows)}
    )
    found = effect_of(events, Systematic.shape("scale", {"b": moved}), "x")
    independent = np.sqrt(2 * np.square(events.weight).sum() / 8) / (events.total / 8)
    assert max(found.error) < 0.25 * independent
    untouched = effect_of(events, Systematic.shape("scale", {"b": moved}), "z")
    assert (untouched.shift, untouched.error, untouched.significance) == ((0.0,) * 8, (0.0,) * 8, 0.0)


def test_significance_of_pure_noise():
    """Weights that change at random give significances of a unit Gaussian: none is claimed where nothing is."""
    found = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        events = background(rng, 600)
        noise = events.weight * (1 + 0.1 * rng.normal(size=600))
        found.append(effect_of(events, Systematic.weight("noise", {"b": noise}), "x").significance)
    assert stats.kstest(found, "norm").pvalue > 0.01


def test_costs_are_those_of_fits_without(dataset, models, fit):
    scored = dataset.transform(lambda events: {"score": models.score(events, 1)})
    templates = build_templates(scored, fit).templates
    effects = describe_sources(dataset, templates, fit)
    full = compute_template_sensitivity(templates).sigma_full
    assert {effect.source for effect in effects} == {"r", "rate", "norm"}
    assert [e.cost for e in effects] == sorted((e.cost for e in effects), reverse=True)
    for effect in effects:
        others = [name for name in templates.sources if name != effect.source]
        assert effect.without == compute_template_sensitivity(templates.with_sources(others)).sigma_full
        assert effect.cost == pytest.approx(np.sqrt(full**2 - effect.without**2))
    drivers = {effect.source: effect.features[0].feature for effect in effects}
    assert (drivers["r"], drivers["rate"]) == ("x0", "x2")
    norm = next(effect for effect in effects if effect.source == "norm")
    assert norm.bins == pytest.approx([0.1] * len(norm.bins))
    assert norm.total == pytest.approx(0.1)
