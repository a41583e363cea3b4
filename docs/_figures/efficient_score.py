"""The idea of the profiled method in one variable: densities, one shift, and two ways to order events."""

from __future__ import annotations

from typing import Any

import numpy as np

from qbdt.report.style import COLOURS, SIGNAL, figure, styled

__all__ = ["draw_efficient_score"]

SIGNAL_YIELD, BACKGROUND_YIELD = 60.0, 2000.0
OURS = "#c3341f"


def draw_efficient_score() -> Any:
    """Left: signal, background, and what one source does to it. Right: s/n, which a classifier learns, and t*."""
    x = np.linspace(0, 10, 401)
    step = x[1] - x[0]
    s = SIGNAL_YIELD * np.exp(-((x - 6) ** 2) / 2) / np.sqrt(2 * np.pi)
    b = BACKGROUND_YIELD * np.exp(-x / 2.5) / 2.5
    shift = 0.1 * b * (x - 3.0) / 3.0  # a source that tilts the background
    n = s + b
    inner = [[np.sum(f * g / n) * step for g in (s, shift)] for f in (s, shift)]
    c = inner[0][1] / (inner[1][1] + 1)
    plain, profiled = s / n, (s - c * shift) / n
    with styled():
        drawn, (left, right) = figure(10.4, 3.9, ncols=2)
        left.plot(x, b, color=COLOURS[0], label="background $b$")
        left.plot(x, 10 * s, color=SIGNAL, label=r"signal $s$ $\times$ 10")
        left.plot(x, 5 * shift, color=COLOURS[2], linestyle="--", label=r"shift $\Delta_1$ $\times$ 5")
        left.axhline(0, color="grey", linewidth=0.8)
        left.set_ylabel("events / unit of $x$")
        right.plot(x, plain, color="#8c97a6", label=r"$s/n$: a classifier")
        right.plot(x, profiled, color=OURS, label=rf"$t^*$: profiled, $c_1 = {c:.2f}$")
        right.axhline(0, color="grey", linewidth=0.8)
        sigmas = [_sigma(t, s, shift, n, step) for t in (plain, profiled)]
        text = rf"$\sigma_\mu$ = {sigmas[0]:.3f} and {sigmas[1]:.3f}"
        right.text(0.03, 0.62, text, transform=right.transAxes)
        for axes in (left, right):
            axes.set_xlim(0, 10)
            axes.set_xlabel("$x$")
            axes.legend(loc="upper left" if axes is right else "upper right")
    return drawn


def _sigma(t: Any, s: Any, shift: Any, n: Any, step: float) -> float:
    """σ_μ of the estimate that weights events with t."""
    variance = np.sum(n * t * t) * step + (np.sum(shift * t) * step) ** 2
    return float(np.sqrt(variance) / (np.sum(s * t) * step))
