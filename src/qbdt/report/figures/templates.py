"""Figures of templates: stacked expectation with data before or after the fit, and the envelope of one source."""

from __future__ import annotations

from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.inference import FitSummary
from qbdt.inference.templates import TemplateSet
from qbdt.report.style import COLOURS, DOWN, SIGNAL, UP, figure, styled

__all__ = ["envelope", "stacked"]


def stacked(templates: TemplateSet, summary: FitSummary, postfit: bool = True) -> Any:
    """Stacked processes with the fitted data, the uncertainty of the expectation, and the ratio below.

    Parameters
    ----------
    templates
        The templates that were fitted.
    summary
        Result of the fit.
    postfit
        At the best fit, otherwise before it.
    """
    import mplhep

    yields = summary.postfit if postfit else {p.name: p.nominal for p in templates.processes}
    error = summary.postfit_error if postfit else summary.prefit_error
    backgrounds = sorted((p.name for p in templates.of_role(Role.BACKGROUND)), key=lambda n: yields[n].sum())
    signals = [p.name for p in templates.of_role(Role.SIGNAL)]
    total = np.sum(list(yields.values()), axis=0)
    edges = templates.edges
    with styled():
        drawn, (main, ratio) = _with_ratio()
        fills = [COLOURS[i % len(COLOURS)] for i in range(len(backgrounds))][::-1]
        fills += [SIGNAL] * len(signals)
        stack = [yields[name] for name in (*backgrounds, *signals)]
        mplhep.histplot(
            stack, edges, ax=main, stack=True, histtype="fill", color=fills, label=[*backgrounds, *signals], edges=False
        )
        _band(main, edges, total - error, total + error, "uncertainty")
        kind = "data" if summary.data == "recorded" else "Asimov data"
        _points(main, edges, summary.counts, np.sqrt(summary.counts), kind)
        main.set_yscale("log")
        floor = min(float(np.min(v[v > 0])) for v in (yields[backgrounds[-1]], total))
        main.set_ylim(max(0.1 * floor, 1e-3), 15 * float(total.max()))
        main.set_ylabel("events / bin")
        main.legend(ncols=2, loc="upper right")
        title = f"after the fit, μ = {summary.mu:.2f}" if postfit else "before the fit, μ = 1"
        main.text(0.03, 0.95, title, transform=main.transAxes, va="top")
        _band(ratio, edges, 1 - error / total, 1 + error / total, None)
        _points(ratio, edges, summary.counts / total, np.sqrt(summary.counts) / total, None)
        ratio.axhline(1, color="black", linewidth=0.8)
        reach = max(0.1, 1.3 * float(np.max(np.abs(summary.counts / total - 1) + np.sqrt(summary.counts) / total)))
        ratio.set_ylim(1 - min(reach, 1.0), 1 + min(reach, 1.0))
        ratio.set_ylabel("data / exp.", loc="center")
        ratio.set_xlabel(templates.variable)
    return drawn


def envelope(templates: TemplateSet, source: str) -> Any:
    """Background with one source moved up and down, MC error bars, and the signal scaled up, as the paper draws it."""
    import mplhep

    nominal = templates.background
    mc_error = np.sqrt(np.sum([p.variance for p in templates.of_role(Role.BACKGROUND)], axis=0))
    up, down = (templates.total(Role.BACKGROUND, source, side) for side in ("up", "down"))
    scale = _round_scale(nominal.max() / max(float(templates.signal.max()), 1e-300))
    edges = templates.edges
    with styled():
        drawn, (main, ratio) = _with_ratio()
        mplhep.histplot(up, edges, ax=main, color=UP, linestyle="--", label=f"{source} up", edges=False)
        mplhep.histplot(down, edges, ax=main, color=DOWN, linestyle=":", label=f"{source} down", edges=False)
        label = f"signal × {scale:g}" if scale != 1 else "signal"
        mplhep.histplot(scale * templates.signal, edges, ax=main, color="black", label=label, edges=False)
        _points(main, edges, nominal, mc_error, "background")
        main.set_yscale("log")
        shown = np.concatenate([nominal, up, down])
        main.set_ylim(0.3 * float(shown[shown > 0].min()), 12 * float(shown.max()))
        main.set_ylabel("events / bin")
        main.legend(ncols=2, loc="upper right")
        mplhep.histplot(up / nominal, edges, ax=ratio, color=UP, linestyle="--", edges=False)
        mplhep.histplot(down / nominal, edges, ax=ratio, color=DOWN, linestyle=":", edges=False)
        _points(ratio, edges, np.ones_like(nominal), mc_error / nominal, None)
        largest = float(np.max(np.abs(np.concatenate([up, down]) / np.tile(nominal, 2) - 1)))
        reach = min(max(0.02, 1.4 * largest, 1.4 * float(np.median(mc_error / nominal))), 1.0)
        ratio.set_ylim(1 - reach, 1 + reach)
        ratio.set_ylabel("var. / nom.", loc="center")
        ratio.set_xlabel(templates.variable)
    return drawn


def _with_ratio() -> tuple[Any, Any]:
    return figure(6.5, 6.0, nrows=2, sharex=True, gridspec_kw={"height_ratios": [3, 1], "hspace": 0.03})


def _points(axes: Any, edges: Floats, values: Floats, errors: Floats, label: str | None) -> None:
    centres = (edges[:-1] + edges[1:]) / 2
    axes.errorbar(centres, values, yerr=errors, fmt="o", color="black", label=label, linewidth=1.2)
    axes.set_xlim(edges[0], edges[-1])


def _band(axes: Any, edges: Floats, low: Floats, high: Floats, label: str | None) -> None:
    axes.stairs(
        high, edges, baseline=low, fill=True, hatch="////", facecolor="none", edgecolor="grey", linewidth=0, label=label
    )


def _round_scale(ratio: float) -> float:
    """Power of ten that brings the signal near the background."""
    return float(10 ** max(0, int(np.floor(np.log10(max(ratio, 1.0))))))
