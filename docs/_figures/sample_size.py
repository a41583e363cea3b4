"""σ_μ over that of tuned peers against the number of simulated events, from the tables of P5."""

from __future__ import annotations

from typing import Any, NamedTuple

from docs._figures.benchmark_tables import Row, read_tables

from qbdt.report.style import figure, styled

__all__ = ["draw_sample_size"]

PEERS = {"LightGBM": ("o", True), "XGBoost": ("D", False)}
"""Marker of each peer, whose table is named by it, and whether it is filled."""

SOURCES = {"all sources": "with all sources", "no sources": "without sources"}
"""Title of each panel."""

PROBLEMS = {"P4": ("simulated h → γττ", "#c3341f"), "P2": ("CMS Open Data, H → ττ", "#2b6cb0")}
SHIFT = 1.045
"""Factor between the points of the two peers, which would cover each other."""


class Point(NamedTuple):
    """A ratio, its error, and the number of background events."""

    events: float
    ratio: float
    error: float


def draw_sample_size() -> Any:
    """Two panels, with all sources and with none: what there is to gain at each size."""
    tables = read_tables()
    with styled():
        drawn, panels = figure(10.4, 4.2, ncols=2, sharey=True)
        for axes, (sources, title) in zip(panels, SOURCES.items(), strict=True):
            for problem, (_, colour) in PROBLEMS.items():
                for number, (peer, (marker, is_filled)) in enumerate(PEERS.items()):
                    rows = tables[f"P5: σ_μ against {peer}, 20 equal-signal bins"]
                    points = _read(rows, problem, sources, SHIFT ** (2 * number - 1))
                    place = {"x": [p.events for p in points], "y": [p.ratio for p in points]}
                    look = {"fmt": marker, "color": colour, "markersize": 6, "capsize": 0, "linewidth": 1.4}
                    face = colour if is_filled else "white"
                    axes.errorbar(**place, yerr=[p.error for p in points], markerfacecolor=face, **look)
            axes.axhline(1, color="#8c97a6", linewidth=1)
            axes.set(xscale="log", xlim=(5e3, 1.6e6), ylim=(0.6, 1.05))
            axes.set_xlabel("simulated background events")
            axes.set_title(title, loc="left")
            axes.tick_params(which="both", top=False, right=False)
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel(r"$\sigma_\mu$ of qbdt over that of the tuned peer")
        _add_legend(panels[1])
    return drawn


def _read(rows: list[Row], problem: str, sources: str, shift: float) -> list[Point]:
    points = []
    for row in rows:
        if row["problem"].startswith(problem) and row["sources"] == sources:
            ratio, _, error = row["ratio"].partition(" ± ")
            points.append(
                Point(shift * float(row["background events"].replace(",", "")), float(ratio), float(error or 0))
            )
    return points


def _add_legend(axes: Any) -> None:
    for title, colour in PROBLEMS.values():
        axes.plot([], [], "s", color=colour, label=title)
    for peer, (marker, is_filled) in PEERS.items():
        face = "#1d232b" if is_filled else "white"
        axes.plot([], [], marker, color="#1d232b", markerfacecolor=face, label=f"against {peer}")
    axes.legend(loc="lower right")
