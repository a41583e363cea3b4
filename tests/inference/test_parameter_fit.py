"""Fits of parameters without a constraint, and of several strengths, in cells."""

import numpy as np
import pytest

from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.folds import ModuloFolds
from qbdt.data.systematic import Systematic
from qbdt.errors import FitError
from qbdt.inference.settings import FitSettings
from qbdt.inference.strengths.cell_fit import fit_strengths
from qbdt.inference.strengths.parameter_fit import fit_parameters
from qbdt.inference.templates.cells import CellTarget, choose_cells
from qbdt.inference.templates.score_histograms import fill

N = 3000


def peak(recorded=None, seed=1):
    """Return a peak over a wide background, with a mass of interest and a scale; data with the mass moved."""
    rng = np.random.default_rng(seed)
    x, b = rng.normal(125, 2, N), rng.normal(120, 20, N)

    def events(values, total):
        return Events({"m": values}, np.full(len(values), total / len(values)), {"event": np.arange(len(values))})

    samples = [Sample("s", Role.SIGNAL, events(x, 400.0)), Sample("b", Role.BACKGROUND, events(b, 2000.0))]
    if recorded is not None:
        data = np.concatenate([rng.normal(125 + recorded, 2, 400), rng.normal(120, 20, 2000)])
        samples.append(Sample("data", Role.DATA, events(data, len(data))))
    sources = [
        Systematic.shape("mass", {"s": events(x + 1, 400.0)}, {"s": events(x - 1, 400.0)}),
        Systematic.norm("xs", 0.1, processes=["s"]),
    ]
    return Dataset(samples, sources, ModuloFolds(2, "event"))


def test_a_mass_is_measured_where_it_is():
    nominal, moved = (fit_parameters(peak(shift), ["mass"], free=["b"]) for shift in (None, 0.5))
    assert nominal.names == ("mu", "mass", "xs", "norm_b")
    assert nominal.values == pytest.approx([1.0, 0.0, 0.0, 1.0], abs=1e-9)
    # 400 events of width 2: 2/√400 = 0.1 without a background; the mass itself is no score trained for it
    assert 0.1 < nominal.sigma("mass") < 0.25
    assert abs(moved.value("mass") - 0.5) < 3 * moved.sigma("mass")
    assert moved.value("mass") > 0.2
    assert abs(nominal.correlation("mu", "xs")) > 0.1
    assert str(nominal.tables()[0]).splitlines()[2].startswith("mass")


def test_a_parameter_without_effect_is_named():
    dataset = peak()
    same = Systematic.norm("idle", 0.1, processes=["s"])
    with pytest.raises(FitError, match="mu and idle cannot be told apart"):
        fit_parameters(Dataset(dataset.samples, [same], dataset.folds), ["idle"])
    with pytest.raises(FitError, match="of_interest: no strength or source width; there are: mu, mass, xs"):
        fit_parameters(dataset, ["width"])


def two(n=4000, seed=2):
    """Return two scores of two signals and a background."""
    rng = np.random.default_rng(seed)

    def sample(name, role, at, total):
        scores = {"a": rng.normal(at[0], 1, n), "b": rng.normal(at[1], 1, n)}
        return Sample(name, role, Events(scores, np.full(n, total / n), {"event": np.arange(n)}))

    samples = [sample("x", Role.SIGNAL, (2, 0), 80.0), sample("y", Role.SIGNAL, (0, 2), 80.0)]
    return Dataset([*samples, sample("b", Role.BACKGROUND, (0, 0), 900.0)], (), ModuloFolds(2, "event"))


STRENGTHS = {"mu_x": ("x",), "mu_y": ("y",)}


def test_cells_keep_what_they_are_asked_to_keep():
    choose, test = two(), two(15_000, seed=3)
    found = {}
    for figure in ("determinant", "sum", "mu_x"):
        cells = choose_cells(choose, 10, CellTarget(STRENGTHS, figure=figure))
        found[figure] = np.sqrt(np.diag(CellTarget(STRENGTHS).covariance(fill(test, cells))))
        assert cells.n_bins <= 10
    fine = np.sqrt(
        np.diag(CellTarget(STRENGTHS).covariance(fill(test, choose_cells(choose, 60, CellTarget(STRENGTHS)))))
    )
    assert found["mu_x"][0] == min(sigmas[0] for sigmas in found.values())
    for sigmas in found.values():
        assert np.all(sigmas > 0.97 * fine)
    assert np.all(found["determinant"] < 1.2 * fine)


def test_cells_have_enough_simulated_events():
    cells = choose_cells(two(), 40, CellTarget(STRENGTHS), min_entries=100.0, by_folds=True)
    templates = fill(two(), cells)
    assert templates.effective_background.min() > 60  # chosen on half of the events each
    assert 2 < cells.n_bins < 40


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fit_strengths(two(), {}), "at least one signal strength is needed"),
        (
            lambda: fit_strengths(two(), STRENGTHS, figure="area"),
            "figure='area': must be one of determinant, sum, mu_x",
        ),
        (lambda: fit_strengths(two().with_folds(None), STRENGTHS), "cells must be chosen on other events"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(FitError, match=message):
        make()


def test_two_strengths_are_fitted():
    result = fit_strengths(two(), STRENGTHS, FitSettings(bins=12, scan=False))
    assert [one.name for one in result.expected.strengths] == ["mu_x", "mu_y"]
