"""Figures of answers beyond the fit: CLs against the signal strength with its limit, and contours of two strengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from qbdt.inference.answers import LEVELS, PairScan, UpperLimit
from qbdt.report.labels import PLAIN, Labels
from qbdt.report.style import COLOURS, SIGNAL, figure, styled

__all__ = ["limit_curve", "strength_contours"]

ONE_SIGMA, TWO_SIGMA = "#bfe3b4", "#f5e9a8"
"""Colours of the bands, as in pulls."""


def limit_curve(limit: UpperLimit, labels: Labels = PLAIN) -> Any:
    """CLs against the signal strength: expected with bands of one and two deviations, observed where it is known."""
    low_2, low_1, median, high_1, high_2 = limit.expected_cls.T
    with styled():
        drawn, axes = figure(6.5, 4.8)
        axes.fill_between(limit.mu, low_2, high_2, color=TWO_SIGMA, label=r"expected $\pm 2\sigma$", linewidth=0)
        axes.fill_between(limit.mu, low_1, high_1, color=ONE_SIGMA, label=r"expected $\pm 1\sigma$", linewidth=0)
        axes.plot(limit.mu, median, color="black", linestyle="--", label="expected")
        if limit.observed is not None:
            axes.plot(limit.mu, limit.observed_cls, color="black", marker="o", markersize=3, label="observed")
        axes.axhline(1 - limit.level, color=SIGNAL, linewidth=1)
        shown = f"expected limit {limit.expected[2]:.3g}"
        shown += "" if limit.observed is None else f"\nobserved limit {limit.observed:.3g}"
        axes.text(0.03, 0.05, shown, transform=axes.transAxes, va="bottom")
        axes.set_yscale("log")
        axes.set_ylim(1e-3, 2.0)
        axes.set_xlim(limit.mu[0], limit.mu[-1])
        axes.set_xlabel(limit.strength)
        axes.set_ylabel(r"$CL_s$")
        axes.legend(loc="upper right")
        labels.write_above(axes)
    return drawn


def strength_contours(scan: PairScan, labels: Labels = PLAIN) -> Any:
    """Contours of two strengths that hold the truth with 68 % and 95 %, the best fit, and the nominal strengths."""
    with styled():
        drawn, axes = figure(6.0, 5.2)
        known = np.ma.masked_invalid(scan.rise)
        for (share, level), style in zip(LEVELS.items(), ("-", "--"), strict=True):
            axes.contour(scan.x, scan.y, known, levels=[level], colors=[COLOURS[0]], linestyles=[style])
            axes.plot([], [], color=COLOURS[0], linestyle=style, label=f"{100 * share:.0f} %")
        axes.plot(*scan.best, marker="+", color="black", markersize=11, linestyle="none", label="best fit")
        axes.plot(1, 1, marker="*", color=SIGNAL, markersize=9, linestyle="none", label="nominal")
        axes.set_xlabel(scan.parameters[0])
        axes.set_ylabel(scan.parameters[1])
        axes.legend(loc="upper right")
        labels.write_above(axes)
    return drawn
