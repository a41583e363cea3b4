"""Figures of classifiers: input variables, ROC curves, scores of training against test events, training curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.report.labels import PLAIN, Labels
from qbdt.report.style import COLOURS, SIGNAL, figure, styled

BACKGROUND = "#1f4e9c"
LINES = ("-", "--", "-.", ":")

LEAST_PASSING = 1e-4
"""Share of the background at which ROC curves end: fewer events than a curve could be trusted with."""


@dataclass(frozen=True)
class Compatibility:
    """Outcome of a χ² test of two weighted histograms."""

    # chi2, ndof: χ² and degrees of freedom: bins with events, less one for the normalisation
    chi2: float
    ndof: int
    p: float  # Probability of a larger χ² if both come from one distribution


def compatibility(first: Any, first_variance: Any, second: Any, second_variance: Any) -> Compatibility:
    """Test whether two weighted histograms have the same shape.

    χ² = Σ (W₂w₁ − W₁w₂)² / (W₂²V₁ + W₁²V₂) for bin contents w, totals W and variances V = Σw² (N. D. Gagunashvili,
    "Comparison of weighted and unweighted histograms"). Bins with fewer than ten effective events in either histogram
    are joined with their neighbour, so that χ² has its distribution.

    Examples
    --------
    >>> same = compatibility([50.0, 50.0], [50.0, 50.0], [500.0, 500.0], [500.0, 500.0])
    >>> same.chi2, same.ndof, same.p
    (0.0, 1, 1.0)
    """
    from scipy.stats import chi2 as distribution

    w1, v1, w2, v2 = (np.asarray(a, dtype=float) for a in (first, first_variance, second, second_variance))
    starts = _groups(w1, v1, w2, v2)
    w1, v1, w2, v2 = (np.add.reduceat(a, starts) for a in (w1, v1, w2, v2))
    spread = w2.sum() ** 2 * v1 + w1.sum() ** 2 * v2
    used = spread > 0
    value = float(np.sum((w2.sum() * w1 - w1.sum() * w2)[used] ** 2 / spread[used]))
    ndof = int(used.sum()) - 1
    return Compatibility(value, ndof, float(distribution.sf(value, ndof)) if ndof > 0 else 1.0)


def variable(
    title: str,
    edges: Floats,
    signal: tuple[Floats, Floats],
    background: tuple[Floats, Floats],
    labels: Labels = PLAIN,
) -> Any:
    """One input variable, signal dashed and background solid, both normalised to unit area, as the paper draws them.

    Of signal and background come shares per bin and their statistical errors.
    """
    with styled():
        drawn, axes = figure(5.0, 4.2)
        centres = (edges[:-1] + edges[1:]) / 2
        for (content, error), colour, line, label in (
            (background, BACKGROUND, "-", "background"),
            (signal, SIGNAL, "--", "signal"),
        ):
            axes.stairs(content, edges, color=colour, linestyle=line, linewidth=1.6, label=label)
            axes.errorbar(centres, content, yerr=error, fmt="none", ecolor=colour, elinewidth=0.8, alpha=0.6)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(0, 1.28 * float(max(signal[0].max(), background[0].max())))
        axes.set_xlabel(title)
        axes.set_ylabel("share of events / bin")
        axes.legend(loc="upper right", ncols=2)
        labels.write_above(axes)
    return drawn


def roc_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], reference: str, labels: Labels = PLAIN
) -> Any:
    """Background rejection 1/ε_b against signal efficiency; below, with several curves, the difference to one of them.

    For each method come signal efficiencies ε_s and rejected shares 1 − ε_b; the same efficiencies for all.
    """
    several = len(curves) > 1
    layout = {"nrows": 2, "sharex": True, "gridspec_kw": {"height_ratios": [3, 1.3], "hspace": 0.03}} if several else {}
    with styled():
        drawn, axes = figure(6.5, 6.4 if several else 4.8, squeeze=False, **layout)
        main, last = axes[0, 0], axes[-1, 0]
        for i, (name, (efficiency, rejected)) in enumerate(curves.items()):
            passing = np.maximum(1 - np.asarray(rejected), LEAST_PASSING)
            main.plot(efficiency, 1 / passing, label=name, **_look(i))
        main.set_yscale("log")
        main.set_ylim(1, None)
        main.set_ylabel(r"background rejection $1/\varepsilon_b$")
        if several:
            main.legend(loc="upper right")
            _draw_differences(last, curves, np.asarray(curves[reference][1]))
        last.set_xlim(0, 1)
        last.set_xlabel(r"signal efficiency $\varepsilon_s$")
        labels.write_above(main)
    return drawn


def _draw_differences(
    axes: Any, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], baseline: Floats
) -> None:
    """Difference of the rejected shares 1 − ε_b to those of one method, in per cent."""
    differences = [100 * (np.asarray(rejected) - baseline) for _, rejected in curves.values()]
    for i, (efficiency, _) in enumerate(curves.values()):
        axes.plot(efficiency, differences[i], **_look(i))
    reach = max(0.5, 1.15 * max(float(np.max(np.abs(each))) for each in differences))
    axes.set_ylim(-reach, reach)
    axes.set_ylabel(r"$\Delta(1-\varepsilon_b)$ (%)", loc="center")


def train_and_test(
    name: str,
    train: Mapping[str, Any],
    test: Mapping[str, Any],
    p: Mapping[str, float] | None = None,
    title: str = r"$\tanh(c\,y)$",
    labels: Labels = PLAIN,
) -> Any:
    """Scores of training events (filled) and test events (points), unit area, with p-values.

    `train` and `test` have "edges", and for "signal" and "background" contents and variances ("signal_variance", …).
    The p-values are by default those of a weighted χ² test, which holds where no event is in both histograms; sums over
    folds need `qbdt.analysis.diagnosis.check_over_training`.
    """
    with styled():
        drawn, axes = figure(6.0, 4.6)
        edges = np.asarray(train["edges"])
        centres, top = (edges[:-1] + edges[1:]) / 2, 0.0
        for role, colour in (("background", BACKGROUND), ("signal", SIGNAL)):
            filled, points = (np.asarray(half[role]) for half in (train, test))
            error = np.sqrt(np.asarray(test[f"{role}_variance"])) / points.sum()
            value = (
                compatibility(filled, train[f"{role}_variance"], points, test[f"{role}_variance"]).p
                if p is None
                else p[role]
            )
            share = filled / filled.sum()
            axes.stairs(share, edges, fill=True, color=colour, alpha=0.25)
            axes.stairs(share, edges, color=colour, linewidth=1.2, label=f"{role}, training")
            label = f"{role}, test (p = {value:.2g})"
            axes.errorbar(centres, points / points.sum(), yerr=error, fmt="o", color=colour, label=label, linewidth=1)
            top = max(top, float(share.max()), float((points / points.sum()).max()))
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(0, 1.55 * top)
        axes.set_xlabel(title)
        axes.set_ylabel("share of events / bin")
        if labels.is_silent:
            axes.set_title(name, loc="left")
        labels.write_above(axes)
        axes.legend(loc="upper center", ncols=2, columnspacing=1.2, handlelength=1.4)
    return drawn


def training_curves(curves: Mapping[str, Mapping[str, Sequence[float]]]) -> Any:
    """Binned Q after so many trees, on training (thin) and test events (thick)."""
    with styled():
        drawn, axes = figure(6.5, 4.6)
        for i, (name, curve) in enumerate(curves.items()):
            colour = _look(i)["color"]
            axes.plot(curve["trees"], curve["test"], color=colour, linewidth=2.0, label=name)
            axes.plot(curve["trees"], curve["train"], color=colour, linewidth=1.0, linestyle="--")
        axes.plot([], [], color="grey", linewidth=2.0, label="test half")
        axes.plot([], [], color="grey", linewidth=1.0, linestyle="--", label="training half")
        axes.set_xlim(left=0)
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.35)
        axes.set_xlabel("trees")
        axes.set_ylabel("binned Q, no systematics")
        axes.legend(loc="upper left", ncols=2)
    return drawn


def tree_weights(weights: Mapping[str, Sequence[float]]) -> Any:
    """Weight of each tree in the order in which they were grown, one line per model."""
    with styled():
        drawn, axes = figure(6.5, 4.2)
        for i, (name, values) in enumerate(weights.items()):
            axes.plot(np.arange(1, len(values) + 1), values, label=name, **_look(i))
        axes.set_yscale("log")
        axes.set_xlabel("tree")
        axes.set_ylabel("weight W")
        axes.legend(loc="upper right")
    return drawn


def _look(i: int) -> dict[str, Any]:
    colours = (SIGNAL, *COLOURS)
    return {"color": colours[i % len(colours)], "linestyle": LINES[(i // len(colours) + i) % len(LINES)]}


def _groups(*contents: Floats) -> list[int]:
    """First bins of groups in which both histograms have ten effective events."""
    w1, v1, w2, v2 = contents
    starts, begin = [0], 0
    for end in range(1, len(w1)):
        group = slice(begin, end)
        known = min(_effective(w1[group], v1[group]), _effective(w2[group], v2[group]))
        rest = min(_effective(w1[end:], v1[end:]), _effective(w2[end:], v2[end:]))
        if known >= 10 and rest >= 10:
            starts.append(end)
            begin = end
    return starts


def _effective(content: Floats, variance: Floats) -> float:
    total = float(variance.sum())
    return float(content.sum()) ** 2 / total if total > 0 else 0.0
