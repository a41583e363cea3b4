"""Pieces of the reproduction: the paper's numbers, smoothing, paired differences, verdicts, cells."""

import math

import numpy as np
import pytest

from qbdt.data import Role
from qbdt.errors import ConfigError
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.report.document import Verdict
from qbdt.studies.paper import numbers as paper
from qbdt.studies.paper.measurement import measure_templates, score_dataset, smooth
from qbdt.studies.paper.paper_methods import METHODS, get_method
from qbdt.studies.paper.paper_tables import format_cell
from qbdt.studies.paper.random_halves import Difference, compare_pairs, standard_deviations
from qbdt.studies.paper.statements import judge
from tests.studies.paper.events import imitation


def test_the_papers_tables_are_consistent():
    for grad, qbdt, ratio in paper.DELTA_MU.values():
        # Printed to two digits each.
        assert qbdt / grad == pytest.approx(ratio, abs=0.02)
    for (case, _), values in paper.SIGMA_THETA.items():
        assert len(values) == paper.CASES[case]
    assert {source for source, _ in paper.SOURCE_SIGNIFICANCE} == set(paper.SOURCES)
    assert set(paper.SIGMA_B) == set(paper.SIGNIFICANCE) == set(paper.SIGMA_THETA)


def test_methods_have_names_and_files_of_their_own():
    assert len({m.key for m in METHODS}) == len({m.name for m in METHODS}) == len(METHODS)
    assert {m.stands_for for m in METHODS} >= {"GradBDT", "QBDT0", "QBDT1", "QBDT3", "QBDT7"}
    with pytest.raises(ConfigError, match="no method Grad"):
        get_method("Grad")


def templates(up, nominal=None, variance=None):
    nominal = np.full(len(up), 1000.0) if nominal is None else nominal
    variance = nominal if variance is None else variance
    signal = ProcessTemplates("s", Role.SIGNAL, np.full(len(up), 5.0), np.full(len(up), 0.01))
    shift = Shift(up, 2 * nominal - up, mirrored=True)
    background = ProcessTemplates("b", Role.BACKGROUND, nominal, variance, {"k": shift})
    return TemplateSet("score", np.linspace(-1, 1, len(up) + 1), (signal, background), ("k",))


def ratio_of(found):
    process = found.process("b")
    return process.shifts["k"].up / process.nominal


def test_smoothing_leaves_normalisations_and_slopes_alone():
    for ratio in (np.full(10, 1.05), np.linspace(0.9, 1.1, 10), 1.1 - np.linspace(-0.3, 0.3, 10) ** 2):
        assert ratio_of(smooth(templates(1000 * ratio))) == pytest.approx(ratio, rel=1e-12)


def test_smoothing_keeps_the_yield_and_removes_noise():
    noisy = 1000 * (1 + 0.03 * np.random.default_rng(1).normal(size=20))
    found = smooth(templates(noisy))
    ratio = ratio_of(found)
    assert found.process("b").shifts["k"].up.sum() == pytest.approx(noisy.sum(), rel=1e-12)
    turns = np.count_nonzero(np.diff(np.sign(np.diff(ratio)[np.abs(np.diff(ratio)) > 1e-6])))
    assert turns <= 1
    assert np.std(ratio) < np.std(noisy / 1000)
    assert found.process("b").shifts["k"].down == pytest.approx(2 * 1000 - found.process("b").shifts["k"].up)


def test_smoothing_joins_bins_until_they_are_known_to_five_per_cent():
    nominal = np.array([1000.0, 1000.0, 100.0, 100.0])
    up = nominal * np.array([1.0, 1.0, 1.2, 1.4])
    ratio = ratio_of(smooth(templates(up, nominal)))
    assert ratio[2] == pytest.approx(ratio[3])


def test_measure_with_and_without_noise_differs_only_with_systematics():
    noisy = 1000 * (1 + 0.03 * np.random.default_rng(2).normal(size=20))
    numbers = measure_templates(templates(noisy))
    assert numbers["z_full"] < numbers["z_stat"]
    assert numbers["delta_mu"] == pytest.approx(math.sqrt(numbers["sigma_full"] ** 2 - numbers["sigma_stat"] ** 2))
    assert numbers["z_full_smooth"] != numbers["z_full"]


def test_rows_that_a_source_only_reweights_are_scored_once():
    calls = []

    def score(events):
        calls.append(events.n_rows)
        return np.asarray(events.column("pt_tau"), dtype=float)

    data = imitation(50, 100)
    scored = score_dataset(score, data)
    assert len(calls) == 2 + 4  # signal, background, four sources that move events
    assert scored.varied("tauid", "up")["background"].total > scored.sample("background").events.total


def test_differences_are_paired_and_swaps_count_once():
    rng = np.random.default_rng(3)
    common = rng.normal(0, 1, 40)
    first = {i: [common[i] + 0.1 + 0.01 * rng.normal(), common[i] + 0.1] for i in range(40)}
    second = {i: [common[i], common[i]] for i in range(40)}
    found = compare_pairs(first, second)
    assert found.n == 40
    assert found.mean == pytest.approx(0.1, abs=0.005)
    assert found.error < 0.01
    assert math.isnan(compare_pairs({0: [1.0]}, {0: [0.5]}).error)


def test_few_halves_are_not_sure_of_anything():
    assert standard_deviations(10.0, 1.0, 2) < 2
    assert standard_deviations(-4.0, 1.0, 10**6) == pytest.approx(-4.0, abs=1e-3)
    assert math.isnan(standard_deviations(1.0, 0.0, 10))


@pytest.mark.parametrize(
    ("mean", "error", "claimed", "verdict"),
    [
        (0.15, 0.02, 0.15, Verdict.HOLDS),
        (-0.15, 0.02, 0.15, Verdict.FAILS),
        (0.00, 0.02, 0.15, Verdict.FAILS),
        (0.05, 0.05, 0.15, Verdict.OPEN),
        (0.00, 0.02, 0.00, Verdict.OPEN),
        (0.10, math.nan, 0.15, Verdict.OPEN),
    ],
)
def test_verdicts(mean, error, claimed, verdict):
    difference = Difference(mean, error, standard_deviations(mean, error, 20), 20)
    assert judge(difference, claimed) == verdict


def test_cells_hold_our_number_the_papers_and_the_difference():
    assert format_cell(0.93, 0.90) == "0.93 / 0.90 / +0.03"
    assert format_cell(0.89, 0.90) == "0.89 / 0.90 / −0.01"
    assert format_cell(0.9001, 0.9) == "0.90 / 0.90 / +0.00"
    assert format_cell(0.93) == "0.93"
    assert format_cell(None, 0.9) == "– / 0.90"
    assert format_cell(None) == "–"
