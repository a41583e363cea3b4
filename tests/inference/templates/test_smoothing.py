"""Statistical errors of shifts, smoothing by them, symmetrisation, and constraints that noise makes."""

from dataclasses import replace

import numpy as np
import pytest

from qbdt.data import Dataset, Events, Role, Sample, Systematic
from qbdt.inference.construction import build_templates
from qbdt.inference.fit import run_fit
from qbdt.inference.settings import FitSettings
from qbdt.inference.templates.score_bins import ScoreBins
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.smoothing import smooth_shifts, smooth_values, symmetrise_shifts

BINS = ScoreBins.of(np.linspace(0, 1, 11))


def scored(n, rng, ids=True, order=None, effect=0.0, shared=1):
    """Background whose shape source smears the score: pure noise, and a true tilt of the given size."""
    x = rng.random(n)
    moved = np.clip(x + rng.normal(0, 0.02, n), 0, 1)
    names = {"event": np.arange(n) % (n // shared)} if ids else {}
    background = Events({"score": x}, np.full(n, 2000 / n), names)
    shifted = Events({"score": moved}, (2000 / n) * (1 + effect * (x - 0.5)), names)
    shifted = shifted if order is None else shifted[order]
    signal = Sample("s", Role.SIGNAL, Events({"score": rng.random(500)}, np.full(500, 0.1)))
    source = Systematic.shape("scale", {"b": shifted})
    return Dataset([signal, Sample("b", Role.BACKGROUND, background)], [source])


def variance_of(process):
    found = process.shifts["scale"].variance
    assert found is not None
    return found


def variance(dataset):
    return variance_of(fill(dataset, BINS, errors=True).process("b"))


def test_paired_events_have_smaller_errors_in_any_order():
    rng = np.random.default_rng(1)
    paired = variance(scored(2000, np.random.default_rng(2)))
    mixed = variance(scored(2000, np.random.default_rng(2), order=rng.permutation(2000)))
    independent = variance(scored(2000, np.random.default_rng(2), ids=False))
    assert mixed == pytest.approx(paired)
    assert np.all(paired < 0.8 * independent)
    # Event numbers that start again in every file hold an event and its copy together all the same.
    repeated = variance(scored(2000, np.random.default_rng(2), order=rng.permutation(2000), shared=5))
    assert repeated.sum() == pytest.approx(paired.sum(), rel=0.1)
    coarse = variance(scored(2000, np.random.default_rng(2), order=rng.permutation(2000), shared=500))
    assert coarse == pytest.approx(independent)  # identifiers of runs or folds tell nothing


def test_the_variance_is_that_of_repeated_samples():
    found, shifts = [], []
    for seed in range(200):
        shift = fill(scored(500, np.random.default_rng(seed)), BINS, errors=True).process("b")
        found.append(variance_of(shift))
        shifts.append(shift.linear_shift("scale") / shift.nominal * 200)
    assert np.mean(found, axis=0) == pytest.approx(np.var(shifts, axis=0), rel=0.35)  # 200 samples know it to 10 %


def test_weights_and_norms():
    dataset = scored(100, np.random.default_rng(1))
    events = dataset.sample("b").events
    up = np.where(np.arange(100) % 2, 1.2, 1.0) * events.weight
    sources = [
        Systematic.weight("tag", {"b": up}),
        Systematic.weight("all", {"b": 1.1 * events.weight}),
        Systematic.norm("xs", 0.1, processes=["b"]),
    ]
    process = fill(Dataset(dataset.samples, sources), BINS, errors=True).process("b")
    shifts, place = process.shifts, BINS.index(events, "")
    ratio = process.linear_shift("tag") / process.nominal
    terms = up - events.weight - ratio[place] * events.weight
    assert shifts["tag"].variance == pytest.approx(np.bincount(place, terms**2, 10))
    assert shifts["all"].variance == pytest.approx(np.zeros(10), abs=1e-12)  # what scales all events has no noise
    assert shifts["xs"].variance is None


def test_noise_is_smoothed_away_and_a_strong_effect_stays():
    rng = np.random.default_rng(1)
    errors = np.full(20, 0.01)
    line = np.linspace(-0.1, 0.1, 20)
    assert np.std(smooth_values(rng.normal(0, errors), errors)[0]) < 0.005
    smooth, _ = smooth_values(line + rng.normal(0, errors), errors)
    assert np.sqrt(np.mean((smooth - line) ** 2)) < 0.008
    jump = np.where(np.arange(20) < 10, 0.0, 0.5)
    kept, _ = smooth_values(jump + rng.normal(0, errors), errors)
    assert kept == pytest.approx(jump, abs=0.04)


def test_smoothing_keeps_the_yield_and_is_noted():
    templates = fill(scored(3000, np.random.default_rng(3), effect=0.1), BINS, errors=True)
    smooth = smooth_shifts(templates)
    one, two = templates.process("b").shifts["scale"], smooth.process("b").shifts["scale"]
    assert two.up.sum() == pytest.approx(one.up.sum())
    assert "degrees of freedom are left" in str(smooth.notes[0])
    untouched = smooth_shifts(templates, sources=[])
    assert untouched.process("b").shifts["scale"] is one


def test_symmetrised_shifts():
    templates = fill(scored(1000, np.random.default_rng(3)), BINS)
    process = templates.process("b")
    shift = replace(process.shifts["scale"], up=1.2 * process.nominal, down=0.9 * process.nominal)
    asymmetric = replace(templates, processes=(templates.process("s"), replace(process, shifts={"scale": shift})))
    average = symmetrise_shifts(asymmetric, "average").process("b").shifts["scale"]
    largest = symmetrise_shifts(asymmetric, "largest").process("b").shifts["scale"]
    assert average.up == pytest.approx(1.15 * process.nominal)
    assert largest.down == pytest.approx(0.8 * process.nominal)


def test_a_constraint_from_noise_is_reported_with_a_number():
    settings = FitSettings(transform="none", binning="uniform", bins=10, scan=False)
    noisy = run_fit(scored(300, np.random.default_rng(1)), settings)
    (found,) = noisy.noise
    assert found.source == "scale"
    assert found.noise < 0.9
    assert found.fitted == noisy.expected.parameter("scale").error
    assert "Constraints that noise of the templates may make" in str(noisy)
    assert noisy.to_dict()["noise"][0]["source"] == "scale"
    smooth = run_fit(scored(300, np.random.default_rng(1)), settings.model_copy(update={"smooth": "auto"}))
    assert smooth.expected.parameter("scale").error > noisy.expected.parameter("scale").error
    assert not run_fit(scored(200_000, np.random.default_rng(1)), settings).noise


def test_templates_with_variances_are_read_back():
    built = build_templates(scored(300, np.random.default_rng(1)), FitSettings(transform="none")).templates
    again = type(built).from_dict(built.to_dict())
    assert again.to_dict() == built.to_dict()
    twice = built.scaled(2.0).process("b")
    assert variance_of(twice) == pytest.approx(4 * variance_of(built.process("b")))
