"""Figures of a diagnosis, as files and in a report: features, sources, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbdt.analysis.diagnosis.curves import LearningCurve
from qbdt.analysis.diagnosis.diagnosis import Diagnosis
from qbdt.analysis.diagnosis.features import FeatureRank
from qbdt.analysis.diagnosis.simulation import MoreEvents
from qbdt.analysis.diagnosis.sources import SourceEffect
from qbdt.report import Block, Figure, Text
from qbdt.report.style import COLOURS, SIGNAL, figure, styled


def diagnosis_figures(found: Diagnosis) -> dict[str, Any]:
    """All figures of a diagnosis by name."""
    figures = {"features": feature_ranking(found.features)}
    if found.curves:
        figures["learning"] = learning_curves(found.curves, found.more)
    if found.sources:
        figures["sources"] = source_map(found.sources)
    return figures


def diagnosis_blocks(found: Diagnosis | None) -> list[Block]:
    """Tables and figures; nothing without a diagnosis."""
    if found is None:
        return []
    ranks: dict[str, Sequence[Any]] = {
        "feature": [rank.feature for rank in found.features],
        **{key: [getattr(r, key) for r in found.features] for key in ("gain", "full", "full_spread", "stat")},
    }
    blocks: list[Block] = [
        *([Text(found.left_out)] if found.left_out else []),
        *found.tables(),
        Figure("features", feature_ranking(found.features), "What σ_μ loses when a feature is scrambled.", ranks),
    ]
    if found.curves:
        drawn, columns, wide = (
            learning_curves(found.curves, found.more),
            _columns(found.curves[0]),
            len(found.curves) > 1,
        )
        blocks.append(Figure("learning", drawn, "σ_μ of out-of-fold scores.", columns, wide))
    if found.sources:
        shifts: Mapping[str, Sequence[float]] = {s.source: s.bins for s in found.sources}
        caption = "Where each source lives: features that it moves, and bins of the score."
        blocks.append(Figure("source-map", source_map(found.sources), caption, shifts, True))
    return blocks


def _columns(curve: LearningCurve) -> dict[str, Sequence[float]]:
    return {curve.against: curve.at, "full": curve.full, "stat": curve.stat}


def feature_ranking(ranks: tuple[FeatureRank, ...]) -> Any:
    """Rise of σ_μ when each feature is scrambled, with and without systematics; most important on top."""
    with styled():
        drawn, axes = figure(6.5, 1.4 + 0.42 * len(ranks))
        rows = np.arange(len(ranks))[::-1]
        for kind, colour, offset, label in (
            ("full", SIGNAL, 0.19, "with systematics"),
            ("stat", COLOURS[0], -0.19, "without"),
        ):
            rise = [getattr(rank, kind) for rank in ranks]
            spread = [getattr(rank, f"{kind}_spread") for rank in ranks]
            axes.barh(rows + offset, rise, height=0.36, color=colour, alpha=0.85, label=label)
            axes.errorbar(rise, rows + offset, xerr=spread, fmt="none", ecolor="black", elinewidth=1.1)
        axes.set_yticks(rows, [rank.feature for rank in ranks])
        axes.tick_params(axis="y", which="both", left=False, right=False)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_ylim(-0.7, len(ranks) - 0.3)
        axes.set_xlabel(r"rise of $\sigma_\mu$ when scrambled")
        axes.legend(loc="lower right")
    return drawn


def source_map(sources: tuple[SourceEffect, ...]) -> Any:
    """Sources against features (spread of Δ/b, a number where significant) and bins of the score (Δ/b less its mean).

    The shade saturates at the 90th percentile of the values, so that one large source does not hide the others.
    """
    features = sorted(f.feature for f in sources[0].features)
    spread = np.array([[{f.feature: f for f in s.features}[name].shape for name in features] for s in sources])
    significant = np.array(
        [[{f.feature: f for f in s.features}[name].significance > 3 for name in features] for s in sources]
    )
    shift = np.array([s.bins for s in sources]) - np.array([[s.total] for s in sources])
    names = [f"{s.source}  {s.cost:.2f}  {100 * s.total:+z.1f} %" for s in sources]
    with styled():
        across = (max(len(features), 7), max(0.6 * shift.shape[1], 7))  # room for the titles
        size = (5.0 + 0.45 * sum(across), 2.3 + 0.42 * len(sources))
        widths = {"width_ratios": across}
        drawn, (left, right) = figure(*size, ncols=2, sharey=True, gridspec_kw=widths)
        shade = left.imshow(100 * spread, cmap="Purples", aspect="auto", vmin=0, vmax=_reach(100 * spread))
        drawn.colorbar(shade, ax=left, label=r"spread of $\Delta/b$ (%)", extend="max")
        for row, column in np.argwhere(significant & (spread > 0)):
            dark = 100 * spread[row, column] > 0.6 * _reach(100 * spread)
            text = f"{100 * spread[row, column]:.2g}"
            left.text(column, row, text, ha="center", va="center", fontsize=9, color="white" if dark else "black")
        left.set_xticks(range(len(features)), features, rotation=45, ha="right", rotation_mode="anchor")
        left.set_yticks(range(len(names)), names)
        reach = _reach(100 * np.abs(shift))
        shade = right.imshow(100 * shift, cmap="RdBu_r", aspect="auto", vmin=-reach, vmax=reach)
        drawn.colorbar(shade, ax=right, label=r"$\Delta/b$ less its mean (%)", extend="both")
        step = max(1, shift.shape[1] // 10)
        right.set_xticks(range(0, shift.shape[1], step), [f"{i + 1}" for i in range(0, shift.shape[1], step)])
        right.set_xlabel("bin of the score")
        for axes in (left, right):
            axes.tick_params(which="both", length=0)
            axes.minorticks_off()
        left.set_title(r"source, cost in $\sigma_\mu$, mean $\Delta/b$; features", loc="left")
        right.set_title("source and score", loc="left")
    return drawn


def learning_curves(curves: Sequence[LearningCurve], more: Sequence[MoreEvents] = ()) -> Any:
    """σ_μ against the number of trees, and against the share of the training events, extrapolated to more."""
    with styled():
        drawn, axes = figure(5.6 * len(curves), 4.4, ncols=len(curves), sharey=True, squeeze=False)
        for place, curve in zip(axes[0], curves, strict=True):
            _curve(place, curve, more)
        axes[0][0].set_ylabel(r"expected $\sigma_\mu$")
        axes[0][-1].legend(loc="upper right")
        settled = [value for curve in curves for value in _settled(curve)] + [one.sigma for one in more]
        low, high = min(settled), max(settled)
        axes[0][0].set_ylim(low - 0.1 * (high - low), high + 0.35 * (high - low))
    return drawn


def _settled(curve: LearningCurve) -> list[float]:
    """σ_μ that must be seen: ends of the error bars against the share of events, values without the first few trees."""
    if curve.against == "trees":
        return [*curve.full[len(curve.full) // 4 :], *curve.stat]
    ends = [(curve.full, curve.full_spread), (curve.stat, curve.stat_spread)]
    return [v + side * s for values, spreads in ends for v, s in zip(values, spreads, strict=True) for side in (-1, 1)]


def _curve(axes: Any, curve: LearningCurve, more: Sequence[MoreEvents]) -> None:
    for kind, colour, marker, label in (
        ("full", SIGNAL, "o", "with systematics"),
        ("stat", COLOURS[0], "s", "without"),
    ):
        values, spread = getattr(curve, kind), getattr(curve, f"{kind}_spread")
        axes.errorbar(curve.at, values, yerr=spread, color=colour, marker=marker, label=label, linewidth=1.4)
    axes.set_xscale("log")
    axes.minorticks_off()
    shares = curve.against != "trees"
    shown = [at for i, at in enumerate(curve.at) if shares or (len(curve.at) - 1 - i) % 2 == 0]
    labels = [f"{100 * at:g} %" if shares else f"{at:g}" for at in shown]
    expected = [one for one in more if shares and one.factor is not None]
    if expected:
        at, sigma, error = zip(*((one.factor, one.sigma, one.error) for one in expected), strict=True)
        axes.errorbar(at, sigma, yerr=error, color=SIGNAL, marker="o", mfc="white", linestyle=":", label="extrapolated")
        shown, labels = [*shown, *at], [*labels, *(f"{factor:g} ×" for factor in at)]
    axes.set_xticks(shown, labels)
    axes.set_xlabel(curve.against)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)


def _reach(values: Any) -> float:
    return max(float(np.quantile(values, 0.9)), 1e-6)
