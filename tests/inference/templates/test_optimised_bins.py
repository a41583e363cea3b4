"""Optimised binning: the rank-one formula against brute force, the floor, and edges never chosen on themselves."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbdt import Dataset, Events, Sample, Systematic
from qbdt.data import Role
from qbdt.data.folds import HashFolds, ModuloFolds, SplitFolds
from qbdt.errors import FitError
from qbdt.inference.asimov import fit_asimov
from qbdt.inference.construction import build_templates
from qbdt.inference.settings import FitSettings
from qbdt.inference.templates.cells import CellTarget, choose_cells
from qbdt.inference.templates.optimised_bins import merge_by_information, optimise_bins, optimise_edges
from qbdt.inference.templates.score_bins import ScoreBins, equal_yield_edges
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.statistics import profiled_information


def random_templates(seed, n_bins=12, n_sources=3):
    rng = np.random.default_rng(seed)
    b = rng.uniform(20, 200, n_bins)
    shifts = {
        f"k{i}": Shift(b * (1 + d), b * (1 - d), mirrored=True)
        for i, d in enumerate(rng.normal(0, 0.1, (n_sources, n_bins)))
    }
    return TemplateSet(
        "score",
        np.arange(n_bins + 1.0),
        (
            ProcessTemplates("s", Role.SIGNAL, rng.uniform(0.5, 5, n_bins), np.zeros(n_bins)),
            ProcessTemplates("b", Role.BACKGROUND, b, rng.uniform(0.1, 2, n_bins) * b, shifts),
        ),
        tuple(shifts),
    )


def information(templates):
    m = templates.arrays()
    return float(profiled_information(m.signal, m.shifts, m.signal + m.background + m.mc_variance))


@given(st.integers(0, 5000))
def test_every_greedy_step_is_the_best_one(seed):
    """Naive twin: try all merges of neighbours and compute the profiled information of each."""
    templates = random_templates(seed, n_bins=7)
    starts = list(range(7))
    while len(starts) > 2:
        candidates = [starts[:i] + starts[i + 1 :] for i in range(1, len(starts))]
        starts = max(candidates, key=lambda c: information(templates.merged(c)))
        assert merge_by_information(templates, len(starts), 0.0) == starts


def test_the_floor_holds():
    templates = random_templates(3)
    merged = templates.merged(merge_by_information(templates, 12, 150.0))
    assert np.all(merged.effective_background >= 150)


def test_a_bin_without_background_is_merged_whatever_it_costs():
    templates = random_templates(5)
    b = templates.process("b")
    b.nominal[-1] = b.variance[-1] = 0.0
    assert merge_by_information(templates, 12, 0.0) == list(range(11))


def problem(n, seed):
    """Score that separates signal, and a source that moves background towards it."""
    rng = np.random.default_rng(seed)
    ids = {"event": np.arange(n)}
    s = Sample("s", Role.SIGNAL, Events({"score": rng.normal(1.5, 1, n)}, np.full(n, 100 / n), ids))
    x = rng.normal(0, 1, n)
    b = Sample("b", Role.BACKGROUND, Events({"score": x}, np.full(n, 5000 / n), ids))
    up = Events({"score": x + 0.1}, np.full(n, 5000 / n), ids)
    down = Events({"score": x - 0.1}, np.full(n, 5000 / n), ids)
    sources = [Systematic.shape("shift", {"b": up}, {"b": down}), Systematic.norm("xs", 0.1, processes=["b"])]
    return Dataset([s, b], sources, ModuloFolds(2, "event"))


def test_optimised_edges_beat_equal_signal_on_other_events():
    choose, use = problem(20_000, 1), problem(20_000, 2)
    sigma = {}
    for name, edges in (("optimised", optimise_edges(choose, 5)), ("equal", equal_yield_edges(choose, 5, "signal"))):
        sigma[name] = float(fit_asimov(fill(use, ScoreBins.of(edges)).arrays()).sigma_mu)
    assert sigma["optimised"] < 0.97 * sigma["equal"]


@pytest.mark.parametrize(("n_rows", "most"), [(4_000, 40), (80_000, 100), (400_000, 200)])
def test_fine_bins_hold_enough_simulated_events(n_rows, most, monkeypatch):
    started = []

    def merged(templates, n_bins, min_entries, others=()):
        started.append(templates.n_bins)
        return [0]

    monkeypatch.setattr("qbdt.inference.templates.optimised_bins.merge_by_information", merged)
    rng = np.random.default_rng(1)
    samples = [
        Sample(role.value, role, Events({"score": rng.random(n)}, np.full(n, 0.1)))
        for role, n in ((Role.SIGNAL, 2_000), (Role.BACKGROUND, n_rows))
    ]
    optimise_edges(Dataset(samples), 20)
    assert 0.9 * most <= started[0] <= most


def test_folds_choose_on_each_other():
    scored = problem(4000, 3)
    binning = optimise_bins(scored, 6)
    assert len(binning.edges) == 2
    for fold in (0, 1):
        alone = optimise_edges(scored.without_fold(fold), binning.n_bins, 10.0, 2.0)
        assert binning.edges[fold] == pytest.approx(alone)
    templates = fill(scored, binning)
    assert templates.signal.sum() == pytest.approx(100)
    assert all(low < high for low, high in pairwise(binning.edges[0]))


def test_without_folds_there_is_nothing_to_choose_on():
    with pytest.raises(FitError, match="chosen on other events than those fitted"):
        optimise_bins(problem(100, 1).with_folds(None), 5)


def test_edges_of_folds_agree():
    scored = problem(4000, 5).with_folds(HashFolds(5, ("event",)))
    rests = [scored.without_fold(fold) for fold in range(5)]
    averaged, plain = (
        np.array([optimise_edges(rest, 6, 0.0) for rest in choose])
        for choose in (rests, [rest.with_folds(None) for rest in rests])
    )
    assert averaged.shape == plain.shape == (5, 7)
    assert averaged.std(axis=0).mean() < 0.7 * plain.std(axis=0).mean()


def test_few_values_of_the_identifier_are_enough():
    scored = problem(3000, 6)
    halves = [Sample(s.name, s.role, _with_split(s.events)) for s in scored.samples]
    split = Dataset(halves, [Systematic.norm("xs", 0.1, processes=["b"])], SplitFolds(2, "half"))
    edges = optimise_edges(split.without_fold(0), 5)
    assert np.array_equal(edges, optimise_edges(split.without_fold(0).with_folds(None), 5))


@pytest.mark.parametrize("seed", range(5))
def test_replicas_without_signal_are_left_out(seed):
    scored = problem(400, seed).select(lambda events: (events.weight > 1) | (events.identifier("event") < 6))
    assert scored.sample("s").events.n_rows == 6
    binning = optimise_bins(scored, 4)
    assert binning.n_bins >= 1


def test_no_signal_to_choose_by_is_said():
    scored = problem(40, 1).select(lambda events: (events.weight > 100) | (events.identifier("event") % 2 == 0))
    with pytest.raises(FitError, match="no signal events: more events"):
        optimise_bins(scored, 4)


def test_no_background_to_choose_by_is_said():
    scored = problem(400, 1)
    kept = [
        s.events[s.events.identifier("event") % 2 == 0] if s.role is Role.BACKGROUND else s.events
        for s in scored.samples
    ]
    samples = [Sample(s.name, s.role, own) for s, own in zip(scored.samples, kept, strict=True)]
    alone = Dataset(samples, (), ModuloFolds(2, "event"))
    with pytest.raises(FitError, match=r"fold 0 .* yield of 0: it must be positive"):
        optimise_bins(alone, 4)
    with pytest.raises(FitError, match=r"fold 0 .* yield of 0: it must be positive"):
        choose_cells(alone, 4, CellTarget({"mu": ("s",)}), by_folds=True)
    settings = FitSettings(transform="none", binning="optimised", bins=4)
    with pytest.raises(FitError, match="yield of 0: it must be positive"):
        build_templates(alone, settings, alone.without_fold(0))


def _with_split(events):
    half = {"half": np.arange(events.n_rows) % 2}
    return Events({"score": events.column("score")}, events.weight, half)
