"""The paper's figures from a study, each with the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from qbdt.data import Dataset, Role
from qbdt.inference import FitSummary
from qbdt.inference.templates import TemplateSet
from qbdt.models import read_model
from qbdt.report import Figure
from qbdt.report.figures import correlation, draw_tree, envelope, roc_curves, train_and_test, training_curves, variable
from qbdt.report.style import COLOURS, SIGNAL, figure, styled
from qbdt.statistics import significance
from qbdt.studies.paper.numbers import CASES, DELTA_MU, SIGNIFICANCE, SOURCES
from qbdt.studies.paper.paper_methods import BINNING, PROFILED, PaperMethod
from qbdt.studies.paper.study import Study

LABELS = {
    "pt_lep": r"$p_T(\ell)$ (GeV)",
    "pt_tau": r"$p_T(\tau_{had})$ (GeV)",
    "pt_pho": r"$p_T(\gamma)$ (GeV)",
    "pt_met": r"$E_T^{miss}$ (GeV)",
    "m_lephad": r"$m(\ell\tau_{had})$ (GeV)",
    "m_lephadpho": r"$m(\ell\tau_{had}\gamma)$ (GeV)",
    "m_lephadmet": r"$m(\ell\tau_{had}\nu)$ (GeV)",
    "m_lephadphomet": r"$m(\ell\tau_{had}\gamma\nu)$ (GeV)",
}
"""Axis titles of the eight variables."""

SPREADS = {
    "z_full": ("Z, seven sources, shifts as they are (standard deviations)", "significance of the full fit"),
    "z_full_smooth": (
        "Z, seven sources, smoothed shifts (standard deviations)",
        "significance of the full fit with smoothed shifts",
    ),
    "z_stat": ("Z without systematics, with MC statistics (standard deviations)", "significance of the stat-only fit"),
    "delta_mu": (r"$\Delta\mu$, part of $\sigma_\mu$ from seven sources", "part of σ_μ from the sources"),
    "z_full_optimised": (
        "Z, seven sources, optimised bins for all (standard deviations)",
        "significance of the full fit in optimised bins",
    ),
    "delta_mu_optimised": (
        r"$\Delta\mu$ from seven sources, optimised bins for all",
        "part of σ_μ from the sources in optimised bins",
    ),
}
"""Axis title and caption of each quantity that is drawn over the random halves."""


def draw_variables(data: Dataset) -> Iterator[Figure]:
    """Draw the eight variables, signal and background, unit area."""
    for name, (n_bins, low, high) in BINNING.items():
        edges = np.linspace(low, high, n_bins // 2 + 1)
        shapes = {role: _shape(data, role, name, edges) for role in (Role.SIGNAL, Role.BACKGROUND)}
        drawn = variable(LABELS[name], edges, shapes[Role.SIGNAL], shapes[Role.BACKGROUND])
        columns: dict[str, Any] = {"low": edges[:-1].tolist(), "high": edges[1:].tolist()}
        for role, (content, error) in shapes.items():
            columns |= {str(role): content.tolist(), f"{role}_error": error.tolist()}
        yield Figure(
            f"variable-{name.replace('_', '-')}", drawn, f"{name}, unit area; what lies outside is not drawn.", columns
        )


def _shape(data: Dataset, role: Role, name: str, edges: Any) -> tuple[Any, Any]:
    samples = [sample.events for sample in data.of_role(role)]
    values = np.concatenate([e.column(name) for e in samples])
    weight = np.concatenate([e.weight for e in samples])
    content = np.histogram(values, edges, weights=weight)[0]
    error = np.sqrt(np.histogram(values, edges, weights=weight**2)[0])
    return content / weight.sum(), error / weight.sum()


def draw_roc_curves(study: Study) -> Figure:
    """ROC curves of the paper's methods and the best tuned peer, with the difference to GradBDT."""
    chosen = [m for m in study.methods if m.stands_for or m.name in ("AdaBDT", "LightGBM", PROFILED)]
    curves_of = {m.name: study.published[m.name]["roc"] for m in chosen}
    drawn = roc_curves({name: (c["efficiency"], c["rejection"]) for name, c in curves_of.items()}, chosen[0].name)
    first = next(iter(curves_of.values()))
    columns = {"efficiency": first["efficiency"], **{name: c["rejection"] for name, c in curves_of.items()}}
    caption = f"ROC curves on the test half of the published split; below, the difference to {chosen[0].name}."
    return Figure("roc", drawn, caption, columns)


def draw_envelopes(study: Study, source: str) -> Iterator[Figure]:
    """Effect of one source on the background templates of each method."""
    for method in _select_methods(study):
        templates = TemplateSet.from_dict(study.published[method.name]["templates"])
        if source not in templates.sources:
            continue
        up, down = (templates.total(Role.BACKGROUND, source, side).tolist() for side in ("up", "down"))
        columns = {
            "low": templates.edges[:-1].tolist(),
            "high": templates.edges[1:].tolist(),
            "signal": templates.signal.tolist(),
            "background": templates.background.tolist(),
            "up": up,
            "down": down,
        }
        caption = f"{SOURCES[source]}, {method.name}. Points: background with its MC uncertainty."
        yield Figure(f"envelope-{source}-{method.key}", envelope(templates, source), caption, columns)


def draw_correlations(study: Study, case: str) -> Iterator[Figure]:
    """Correlation matrices of the fits of one case, for the methods that the paper shows."""
    for method in study.methods:
        if (case, method.stands_for) not in SIGNIFICANCE:
            continue
        summary = FitSummary.from_dict(study.published[method.name]["cases"][case]["fit"])
        names = [p.name for p in summary.parameters]
        columns = {"parameter": names} | {n: summary.correlation[:, i].tolist() for i, n in enumerate(names)}
        caption = f"Case {case}, {method.name}: correlations after the fit."
        yield Figure(f"correlation-{case.lower()}-{method.key}", correlation(summary), caption, columns)


def draw_trees(study: Study) -> Iterator[Figure]:
    """Draw the first tree of QBDT0 and of QBDT7."""
    for method in study.methods:
        path = study.folder / "models" / f"{method.key}.qbdt"
        if method.stands_for not in ("QBDT0", "QBDT7") or not path.exists():
            continue
        ensemble = read_model(path)[0].ensemble
        drawn = draw_tree(ensemble.trees[0], ensemble.features)
        rows = ensemble.trees[0].rows(ensemble.features, 0)
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        yield Figure(
            f"tree-{method.key}",
            drawn,
            f"First tree of {method.name}, samples scaled to one event each.",
            columns,
            True,
        )


def draw_training_curves(study: Study) -> Figure:
    """Binned Q of training and test half against the number of trees."""
    found = {m.name: study.published[m.name]["curve"] for m in study.methods if m.stands_for}
    found = {name: curve for name, curve in found.items() if curve is not None}
    columns: dict[str, Any] = {}
    for name, curve in found.items():
        columns |= {f"{name} {key}": curve[key] for key in ("trees", "train", "test")}
    return Figure(
        "training-curves",
        training_curves(found),
        "Binned Q (eq:Q0, best c) after so many trees, half of the events scaled to all.",
        columns,
    )


def draw_score_comparisons(study: Study) -> Iterator[Figure]:
    """Scores of training against test events."""
    for method in _select_methods(study):
        scores = study.published[method.name]["scores"]
        columns = {"low": scores["train"]["edges"][:-1]}
        for half in ("train", "test"):
            columns |= {f"{half}_{name}": values for name, values in scores[half].items() if name != "edges"}
        caption = (
            f"{method.name}: training (filled) against test (points); p-values of a χ² test of weighted histograms."
        )
        yield Figure(
            f"scores-{method.key}", train_and_test(method.name, scores["train"], scores["test"]), caption, columns
        )


def draw_spreads(study: Study) -> Iterator[Figure]:
    """Every quantity over the random halves, with the published split and the paper's value marked."""
    for quantity, (title, description) in SPREADS.items():
        values = {m.name: study.values(m.name, quantity) for m in study.methods if m.name in study.halves}
        results = {name: study.published[name] for name in values}
        published = {name: {**r["cases"]["III"], **r["optimised"]}[quantity] for name, r in results.items()}
        paper = _paper_values(study, quantity)
        drawn = plot_spread(values, title, published, paper)
        caption = f"{study.options.halves} random divisions with swaps, each method on the same ones: {description}."
        yield Figure(f"halves-{quantity.replace('_', '-')}", drawn, caption, dict(values))


def draw_formula() -> Figure:
    """Q against σ_b², naive and stable."""
    drawn, columns = plot_significance()
    caption = "Q of one published leaf: eq:Q as printed loses its second logarithm when σ_b² is small against b²."
    return Figure("formula", drawn, caption, columns)


def _select_methods(study: Study) -> list[PaperMethod]:
    return [m for m in study.methods if m.stands_for or m.name in ("LightGBM", PROFILED)]


def _paper_values(study: Study, quantity: str) -> dict[str, float]:
    paper: dict[str, float] = {}
    for method in study.methods:
        known = SIGNIFICANCE.get(("III", method.stands_for or ""))
        if known is not None and quantity.startswith("z_") and not quantity.endswith("_optimised"):
            paper[method.name] = known[0 if quantity == "z_stat" else 1]
    if quantity == "delta_mu":
        paper = {"GradBDT": DELTA_MU["III"][0], f"QBDT{CASES['III']}": DELTA_MU["III"][1]}
    return paper


def plot_spread(
    values: Mapping[str, Sequence[float]],
    title: str,
    published: Mapping[str, float] | None = None,
    paper: Mapping[str, float] | None = None,
) -> Any:
    """Values of each group as points with mean and standard deviation; `published` is ours, `paper` the paper's."""
    with styled():
        drawn, axes = figure(7.4, 1.7 + 0.36 * len(values))
        rows = np.arange(len(values))[::-1].astype(float)
        scatter = np.random.default_rng(0)
        for row, content in zip(rows, values.values(), strict=True):
            numbers = np.asarray(content, dtype=float)
            if numbers.size:
                jitter = row + scatter.uniform(-0.17, 0.17, numbers.size)
                axes.scatter(numbers, jitter, s=11, color=COLOURS[3], alpha=0.75, linewidths=0, zorder=1)
                axes.errorbar(
                    numbers.mean(), row, xerr=numbers.std(), fmt="o", color="black", capsize=3, markersize=6, zorder=3
                )
        axes.scatter([], [], s=11, color=COLOURS[3], label="one random half")
        axes.errorbar([], [], xerr=[], fmt="o", color="black", capsize=3, label="mean ± spread")
        for marks, marker, colour, label in (
            (published, "D", COLOURS[0], "published split, this package"),
            (paper, "*", SIGNAL, "published split, the paper"),
        ):
            known = [(marks[name], row) for row, name in zip(rows, values, strict=True) if marks and name in marks]
            if known:
                x, y = zip(*known, strict=True)
                size = 95 if marker == "*" else 34
                axes.scatter(
                    x, y, s=size, marker=marker, color=colour, edgecolor="white", linewidth=0.6, zorder=4, label=label
                )
        axes.set_yticks(rows, list(values))
        axes.tick_params(axis="y", which="both", left=False, right=False)
        axes.set_ylim(-0.7, len(values) - 0.3)
        axes.grid(axis="x", color="#dddddd", linewidth=0.7)
        axes.set_axisbelow(True)
        axes.set_xlabel(title)
        drawn.legend(loc="outside upper center", ncols=2, columnspacing=1.6)
    return drawn


def naive_significance(s: float, b: float, variance: Any) -> Any:
    """Q as the paper prints it (eq:Q), which loses its second logarithm for small σ_b²: for comparison only."""
    v = np.asarray(variance, dtype=float)
    first = (s + b) * np.log((s + b) * (b + v) / (b**2 + (s + b) * v))
    second = b**2 / v * np.log(1 + s * v / (b * (b + v)))
    return 2 * (first - second)


def plot_significance() -> tuple[Any, dict[str, list[float]]]:
    """Draw Q against σ_b² for one published leaf, naive and stable, with the limit of eq:Q0; return its numbers too."""
    s, b = 0.10029, 0.014408
    variance = np.logspace(-22, 0, 441)
    naive, stable = naive_significance(s, b, variance), significance(s, b, variance)
    limit = float(significance(s, b, 0.0))
    with styled():
        drawn, axes = figure(6.5, 4.6)
        axes.plot(variance, naive, color=SIGNAL, linewidth=1.1, label="as printed (eq. Q)")
        axes.plot(variance, stable, color=COLOURS[0], linewidth=2.2, label="with log1p, as qbdt computes it")
        axes.axhline(limit, color="grey", linestyle=":", label=r"largest possible value, $\sigma_b = 0$")
        axes.set_xscale("log")
        axes.set_xlim(variance[0], variance[-1])
        axes.set_ylim(0, 1.75 * max(limit, float(np.median(naive[:20]))))
        axes.set_xlabel(r"$\sigma_b^2$ (events$^2$)")
        axes.set_ylabel("Q")
        axes.set_title(f"s = {s:g}, b = {b:g} events", loc="left")
        axes.legend(loc="upper right")
    columns = {"sigma_b_squared": variance, "naive": naive, "stable": stable}
    return drawn, {name: np.asarray(column).tolist() for name, column in columns.items()}
