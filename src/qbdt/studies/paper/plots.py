"""Figures of studies: spread of a quantity over splits, and the formula of Q, naive and stable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbdt.report.style import COLOURS, SIGNAL, figure, styled
from qbdt.statistics import significance

__all__ = ["formula", "naive_significance", "spread"]


def spread(
    values: Mapping[str, Sequence[float]],
    title: str,
    published: Mapping[str, float] | None = None,
    paper: Mapping[str, float] | None = None,
) -> Any:
    """Values of each group as points with mean and standard deviation, and two marks for single measurements.

    Parameters
    ----------
    values
        For each name its values over splits.
    title
        Of the axis, with the unit.
    published, paper
        Our value on the published split, and the paper's.
    """
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


def formula(s: float = 0.10029, b: float = 0.014408) -> tuple[Any, dict[str, list[float]]]:
    """Draw Q against σ_b² for one published leaf, naive and stable, with the limit of eq:Q0.

    Returns
    -------
    figure, columns
        The figure and the numbers in it.
    """
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
