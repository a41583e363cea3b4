"""Figures of classifiers and studies, and the test behind one of them."""

import numpy as np
import pytest

from qbdt.report.figures.classifiers import (
    compatibility,
    roc_curves,
    train_and_test,
    training_curves,
    tree_weights,
    variable,
)
from qbdt.report.labels import Labels
from qbdt.report.style import save
from qbdt.statistics import significance
from qbdt.studies.paper.figures import naive_significance, plot_significance, plot_spread


def histogram(rng, n, weight, shift=0.0):
    values, edges = rng.normal(shift, 1, n), np.linspace(-4, 4, 21)
    return np.histogram(values, edges, weights=np.full(n, weight))[0], np.histogram(values, edges)[0] * weight**2


def test_weighted_histograms_of_one_distribution_give_uniform_p_values():
    rng = np.random.default_rng(1)
    found = [compatibility(*histogram(rng, 3000, 0.5), *histogram(rng, 1000, 7.0)).p for _ in range(300)]
    # Standard deviation of a mean of 300 uniform numbers: 0.017; of a share of 5 %: 0.013. Four of them.
    assert np.mean(found) == pytest.approx(0.5, abs=0.07)
    assert np.mean(np.array(found) < 0.05) < 0.1


def test_a_shift_and_a_scale_are_told_apart():
    rng = np.random.default_rng(2)
    content, variance = histogram(rng, 5000, 1.0)
    assert compatibility(content, variance, 3 * content, 9 * variance).p == pytest.approx(1.0)
    assert compatibility(content, variance, *histogram(rng, 5000, 1.0, shift=0.3)).p < 1e-6


def test_naive_formula_agrees_where_it_can_and_exceeds_the_limit_where_it_cannot():
    s, b = 0.10029, 0.014408
    assert naive_significance(s, b, 1e-3) == pytest.approx(significance(s, b, 1e-3), rel=1e-9)
    assert naive_significance(s, b, 1e-20) == pytest.approx(0.4759, abs=1e-4)
    assert float(significance(s, b, 1e-20)) == pytest.approx(0.2753, abs=1e-4)


def test_the_line_above_is_that_of_the_analysis():
    known = Labels(experiment="EXP", status="Simulation", energy=13.6)
    half: dict[str, list[float]] = {"edges": [0.0, 1.0]}
    half |= {f"{role}{kind}": [9.0] for role in ("signal", "background") for kind in ("", "_variance")}
    roc = roc_curves({"a": ([0.0, 1.0], [1.0, 0.0])}, "a", known).axes[0]
    scores = train_and_test("a method", half, half, labels=known).axes[0]
    for axes in (roc, scores):
        assert {"EXP", "Simulation"} <= {text.get_text() for text in axes.texts}
        assert (axes.get_title("right"), axes.get_title("left")) == ("13.6 TeV", "")
    assert train_and_test("a method", half, half).axes[0].get_title("left") == "a method"


def test_figures_are_drawn(tmp_path):
    rng = np.random.default_rng(3)
    half: dict[str, list[float]] = {"edges": np.linspace(-1, 1, 21).tolist()}
    for role in ("signal", "background"):
        content, variance = histogram(rng, 2000, 1.0)
        half |= {role: content.tolist(), f"{role}_variance": variance.tolist()}
    shape = (np.full(10, 0.1), np.full(10, 0.01))
    curve = {"trees": [1.0, 2.0, 3.0], "train": [1.0, 2.0, 3.0], "test": [1.0, 1.5, 1.4]}
    rates = np.linspace(0, 1, 11)
    figures = {
        "variable": variable("$m_{vis}$ (GeV)", np.linspace(0, 100, 11), shape, shape),
        "roc": roc_curves({name: (rates.tolist(), (1 - rates**n).tolist()) for name, n in (("a", 2), ("b", 3))}, "a"),
        "scores": train_and_test("a method", half, half),
        "curves": training_curves({"QBDT0": curve, "QBDT7": curve}),
        "weights": tree_weights({"fold 0": [1.0, 0.5], "fold 1": [1.1, 0.4]}),
        "spread": plot_spread({"a": [1.0, 1.1], "b": []}, "Z", {"a": 1.2}, {"b": 1.0}),
        "formula": plot_significance()[0],
    }
    for name, drawn in figures.items():
        assert save(drawn, tmp_path / f"{name}.png").stat().st_size > 5000
