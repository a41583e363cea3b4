"""The figure of a search: how it went, and how σ_μ depends on each setting."""

from __future__ import annotations

from typing import Any

import numpy as np

from qbdt.report.style import COLOURS, SIGNAL, figure, styled

COLUMNS = 4


def search_history(
    values: list[float], settings: dict[str, list[Any]], start: float, start_settings: dict[str, Any]
) -> Any:
    """σ_μ of every trial in order, with the best so far, and σ_μ against each setting; infinite ones are left out."""
    found = np.array(values, dtype=float)
    shown = np.isfinite(found)
    with styled():
        n_rows = -(-(1 + len(settings)) // COLUMNS)
        drawn, axes = figure(3.4 * COLUMNS, 3.1 * n_rows, nrows=n_rows, ncols=COLUMNS, sharey=True, squeeze=False)
        places = axes.ravel()
        _history(places[0], found, shown, start)
        for place, (name, at) in zip(places[1:], settings.items(), strict=False):
            _slice(place, name, [v for v, keep in zip(at, shown, strict=True) if keep], found[shown])
            position = _position(start_settings[name], at)
            if position is not None:
                place.scatter([position], [start], marker="*", s=110, color=SIGNAL, zorder=4)
        for place in places[1 + len(settings) :]:
            place.set_axis_off()
        for row in axes:
            row[0].set_ylabel(r"expected $\sigma_\mu$")
        seen = np.append(found[shown], start)
        low, high = float(seen.min()), float(np.quantile(seen, 0.9))
        room = high - low or 0.1 * low
        places[0].set_ylim(low - 0.08 * room, high + 0.25 * room)
    return drawn


def _history(axes: Any, found: Any, shown: Any, start: float) -> None:
    from matplotlib.ticker import NullLocator

    order = np.arange(1, found.size + 1)
    axes.scatter(order[shown], found[shown], s=16, color=COLOURS[0])
    axes.step(
        order, np.minimum.accumulate(np.append(start, found))[1:], where="post", color="black", label="best so far"
    )
    axes.axhline(start, color=SIGNAL, linestyle="--", label="settings of the file")
    axes.set_xlabel("trial")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.legend(loc="upper right", fontsize=9, frameon=True, framealpha=0.85, edgecolor="none")


def _slice(axes: Any, name: str, at: list[Any], found: Any) -> None:
    axes.set_xlabel(name)
    if not at:  # no trial gave anything that can be fitted
        return
    if all(isinstance(value, bool | str) for value in at):
        names = sorted({str(value) for value in at})
        axes.scatter([names.index(str(value)) for value in at], found, s=16, color=COLOURS[0])
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.5, len(names) - 0.5)
        axes.minorticks_off()
    else:
        axes.scatter(at, found, s=16, color=COLOURS[0])
        if min(at) > 0 and max(at) > 4 * min(at):
            axes.set_xscale("log")


def _position(value: Any, at: list[Any]) -> float | None:
    """Where the starting value lies on the axis of a setting; None where it is outside of what was searched."""
    if isinstance(value, bool | str):
        names = sorted({str(v) for v in at})
        return float(names.index(str(value))) if str(value) in names else None
    return float(value) if at and min(at) <= value <= 1.2 * max(at) else None
