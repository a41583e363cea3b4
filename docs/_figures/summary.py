"""The picture of README, home page and results: what systematics cost with this package and with its peers."""

from __future__ import annotations

from typing import Any

import numpy as np
from docs._figures.benchmark_tables import Row, find_row, read_tables

from qbdt.report.style import figure, styled

__all__ = ["draw_summary"]

OURS, PEER, DARK = "#c3341f", "#8c97a6", "#1d232b"

CMS = ("qbdt profile", "XGBoost", "LightGBM")
"""Methods on CMS Open Data, as the table names them, from the top."""

SCENARIOS = {"B0": "none", "B1": "$r$", "B2": r"$r, \lambda$", "B3": "priors", "B4": "+ $b$"}
"""Of the INFERNO problem, with the nuisance parameters of its fit: the position and the rate of the background's
exponential, free or with priors, and the background's yield."""

NAMES = {"qbdt profile": "qbdt, profiled"}


def draw_summary(*, narrow: bool = False) -> Any:
    """Two panels: σ_μ on CMS Open Data, and σ(s) in the scenarios of the INFERNO problem.

    Parameters
    ----------
    narrow
        One below the other, for the screen of a telephone.
    """
    tables = read_tables()
    shape = {"nrows": 2, "height_ratios": [1, 1.35]} if narrow else {"ncols": 2, "width_ratios": [1, 1.08]}
    with styled():
        drawn, (left, right) = figure(*((5.2, 8.2) if narrow else (11.2, 4.4)), **shape)
        _draw_cms(left, _find(tables, "P2: CMS Open Data", "optimised bins"))
        _draw_inferno(right, _find(tables, "the INFERNO problem"))
    return drawn


def _find(tables: dict[str, list[Row]], *words: str) -> list[Row]:
    """The first table whose title has these words."""
    return next(rows for title, rows in tables.items() if all(word in title for word in words))


def _draw_cms(axes: Any, rows: list[Row]) -> None:
    """Bars of σ_μ in 20 optimised bins, light without systematics."""
    places = np.arange(len(CMS))[::-1]
    for place, name in zip(places, CMS, strict=True):
        row, ours = find_row(rows, method=name, bins="20"), name == CMS[0]
        stat, full = float(row["σ_μ stat"]), float(row["σ_μ full"])
        colour = OURS if ours else PEER
        axes.barh(place, stat, height=0.62, color=colour, alpha=0.35)
        axes.barh(place, full - stat, left=stat, height=0.62, color=colour)
        axes.text(full + 0.03, place, row["σ_μ full"], va="center", color=DARK, weight="bold" if ours else "normal")
    axes.set_yticks(places, [NAMES.get(name, name) for name in CMS])
    axes.get_yticklabels()[0].set(color=OURS, weight="bold")
    axes.tick_params(axis="y", which="both", length=0)
    axes.tick_params(axis="x", which="both", top=False)
    axes.barh(0, 0, color=PEER, alpha=0.35, label="without systematics")
    axes.barh(0, 0, color=PEER, label="with systematics")
    axes.set_xlim(0, 2.3)
    axes.set_ylim(-0.6, len(CMS) + 0.35)
    axes.legend(loc="upper left", ncols=2, columnspacing=1.2, handlelength=1.2)
    axes.set_xlabel(r"expected uncertainty $\sigma_\mu$ of the signal strength")
    axes.set_title(r"CMS Open Data, H$\,\to\tau\tau$: 7 sources, 20 bins", loc="left")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_inferno(axes: Any, rows: list[Row]) -> None:
    """Lines of σ(s) over the scenarios, ten bins for all; published numbers dashed."""
    optimised = {"bins": "10", "binning": "optimised"}
    lines = (
        ("LightGBM", {**optimised, "method": "LightGBM"}, PEER, "o-"),
        ("network, cross-entropy *", {"method": "cross-entropy network (published)"}, "#b7791f", "s--"),
        ("INFERNO network, best of five *", {"method": "INFERNO, best of five (published)"}, "#2b6cb0", "D--"),
        ("qbdt, profiled", {**optimised, "method": "qbdt profile"}, OURS, "o-"),
    )
    for label, cells, colour, look in lines:
        values = [float(find_row(rows, **cells)[scenario]) for scenario in SCENARIOS]
        width = 2.6 if colour == OURS else 1.5
        axes.plot(range(len(SCENARIOS)), values, look, color=colour, label=label, linewidth=width, markersize=5.5)
    limit = find_row(rows, method="unbinned likelihood: the limit (published)")
    values = [float(limit[scenario]) for scenario in SCENARIOS]
    axes.fill_between(range(len(SCENARIOS)), values, 13, color="#e3e6ea", label="below the unbinned limit *")
    axes.set_xlim(-0.15, len(SCENARIOS) - 0.85)
    axes.set_ylim(14, 31)
    axes.tick_params(axis="x", which="minor", bottom=False, top=False)
    axes.tick_params(which="both", top=False, right=False)
    axes.set_xticks(range(len(SCENARIOS)), [f"{name}\n{text}" for name, text in SCENARIOS.items()])
    axes.set_xlabel("benchmark, and the nuisance parameters of its fit")
    axes.set_ylabel(r"$\sigma(s)$, events")
    axes.set_title("The INFERNO problem, 10 bins", loc="left")
    axes.legend(loc="upper left", handlelength=1.6)
    axes.spines[["top", "right"]].set_visible(False)
