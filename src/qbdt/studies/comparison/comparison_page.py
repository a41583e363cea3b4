"""A comparison for people: table, sentence, figure and page; then the fit with the scores of the best."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis import Analysis, run_document
from qbdt.errors import OutputError
from qbdt.files import FolderLock, StepFolder, replace_folder
from qbdt.files.records import write_record
from qbdt.inference import run_fit, write_fit
from qbdt.progress import Progress, silent
from qbdt.report import Block, Document, Figure, Headline, Section, Text, write_report
from qbdt.report.style import COLOURS, SIGNAL, figure, styled
from qbdt.studies.comparison.comparison import TRAININGS, Comparison, compare_methods
from qbdt.studies.comparison.plan import Plan
from qbdt.tables import Table

COLUMNS = {
    "Z stat": "z_stat",
    "Z full": "z_full",
    "σ_μ stat": "sigma_stat",
    "σ_μ full": "sigma_full",
    "Δμ_sys": "delta_mu",
}
FEWEST = 3
"""Divisions from which a spread is quoted: two say next to nothing about one."""

RESULTS = "comparison"
"""Step of the folder, and name of its file, that holds the results."""


def run_comparison(
    plan: Plan,
    out: Path,
    *,
    n_jobs: int | None = None,
    force: bool = False,
    origin: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Compare, fit with the scores of the best contestant, and write results and report.

    Parameters
    ----------
    out
        Folder for `comparison.json`, the report and the fit; trainings stay there too, so that a comparison that is
        started again goes on where it stopped.
    force
        Replace an earlier report of another comparison.
    origin
        Where `comparison.json` and `fit.json` say that they come from.
    """
    with FolderLock(out) as lock:
        results = StepFolder(out, None)
        if not force and results.find(RESULTS).get("plan", plan.to_dict()) != plan.to_dict():
            raise OutputError(f"{out} holds a comparison of another analysis; choose another folder, or force=True")
        if not force and (out / "fit").exists() and not (out / TRAININGS).exists():
            raise OutputError(
                f"{out} holds a fit of something else; choose another folder, or force=True to replace it"
            )
        found = compare_methods(plan, out, n_jobs, progress)
        assert found.scored is not None
        lock.require()
        with replace_folder(out / "fit") as scratch:
            write_fit(run_fit(found.scored, plan.fit, progress=progress), scratch, origin)
        content = {**found.to_dict(), "plan": plan.to_dict(), "provenance": dict(origin or {})}
        write_record(out / f"{RESULTS}.json", content, indent=1)
        write_report(make_comparison_document(found, out, plan.analysis), out, progress)
    return found


def make_comparison_tables(found: Comparison) -> tuple[Table, ...]:
    """Return the table of all methods, the best first, and differences where there are enough divisions for them."""
    rows = []
    for number, name in enumerate(found.contestants):
        numbers = [f"{found.mean(name, quantity):.3f}" for quantity in COLUMNS.values()]
        rows.append(("→" if number == 0 else "", _short(name), *numbers, f"{found.mean(name, 'seconds'):.1f}"))
    over = f", mean of {found.repeat} divisions" if found.repeat > 1 else ""
    title = f"{found.name}: {found.folds} folds{over}"
    tables = [Table(title, ("", "method", *COLUMNS, "CPU (s)"), tuple(rows))]
    return (*tables, _differences(found)) if found.repeat >= FEWEST else tuple(tables)


def _differences(found: Comparison) -> Table:
    """Return differences to the best method on the same divisions: mean ± its error."""
    rows = []
    for name in found.contestants[1:]:
        cells = []
        for quantity in COLUMNS.values():
            own, best = (np.array(found.values(one, quantity)) for one in (name, found.winner))
            error = float(np.std(own - best, ddof=1) / np.sqrt(len(own)))
            cells.append(f"{float(np.mean(own - best)):+z.3f}±{error:.3f}")
        rows.append((_short(name), *cells))
    return Table(f"Difference to {_short(found.winner)}, paired", ("method", *COLUMNS), tuple(rows))


def make_sentence(found: Comparison) -> str:
    """Say what systematics add to σ_μ, our best method against the best peer."""
    ours, peer = found.best_of_ours, found.best_peer
    if ours is None or peer is None:
        name = found.winner
        return f"Systematics add {found.mean(name, 'delta_mu'):.3f} to σ_μ in quadrature with {_short(name)}."
    mine, theirs = (found.mean(name, "delta_mu") for name in (ours, peer))
    change = f": {abs(1 - mine / theirs):.0%} {'less' if mine < theirs else 'more'}" if theirs > 0 else ""
    return (
        f"Systematics add {mine:.3f} to σ_μ (in quadrature) with {_short(ours)}, {theirs:.3f} with {_short(peer)}, "
        f"the best peer{change}."
    )


def make_comparison_document(found: Comparison, folder: Path, analysis: Analysis) -> Document:
    """Make the page: the comparison, then the fit of the best, which is read from the folder."""
    fitted, left_out = run_document(folder, analysis=analysis), analysis.beside_the_score
    kept = [section for section in fitted.sections if section.title in ("Result", "Sources")]
    sections = (
        Section("Comparison", (*_comparison(found), *([Text(left_out)] if left_out else []))),
        *(Section(f"{section.title} with {_short(found.winner)}", section.blocks) for section in kept),
        Section("Settings", tuple(_settings(found))),
    )
    subtitle = (
        f"Methods compared on the same events: {found.folds} folds, the same rule of bins, the same fit; "
        "peers tuned inside of the training folds."
    )
    return Document(found.name, subtitle, _headlines(found), sections)


def _headlines(found: Comparison) -> tuple[Headline, ...]:
    ours, peer = found.best_of_ours or found.winner, found.best_peer

    def against(quantity: str) -> str:
        return "" if peer is None else f"{found.mean(peer, quantity):.3f} with {_short(peer)}, the best peer"

    return (
        Headline("systematics add to σ_μ", f"{found.mean(ours, 'delta_mu'):.3f}", against("delta_mu")),
        Headline("σ_μ with systematics", f"{found.mean(ours, 'sigma_full'):.3f}", against("sigma_full")),
        Headline("significance Z with systematics", f"{found.mean(ours, 'z_full'):.3f}", against("z_full")),
        Headline("the best method", _short(found.winner), "smallest σ_μ with systematics"),
    )


def _comparison(found: Comparison) -> list[Block]:
    columns: dict[str, list[Any]] = {"method": found.contestants}
    columns |= {name: [found.mean(one, name) for one in found.contestants] for name in COLUMNS.values()}
    caption = "σ_μ of the fit without and with systematics, and what these add to it in quadrature. Shorter is better."
    spread = f" Points: each of {found.repeat} divisions." if found.repeat > 1 else ""
    return [
        Text(make_sentence(found)),
        *make_comparison_tables(found),
        Figure("comparison", draw_comparison(found), caption + spread, columns, wide=True),
    ]


def draw_comparison(found: Comparison) -> Any:
    """Bars of σ_μ, light without systematics and dark up to that with them, and of what these add; the best on top."""
    names = found.contestants[::-1]
    with styled():
        size = (8.0, 1.3 + 0.5 * len(names))
        drawn, (left, right) = figure(*size, ncols=2, sharey=True, gridspec_kw={"width_ratios": [1.6, 1]})
        for y, name in enumerate(names):
            stat, full, added = (found.mean(name, quantity) for quantity in ("sigma_stat", "sigma_full", "delta_mu"))
            bar = {"height": 0.6, "color": SIGNAL if name == found.best_of_ours else COLOURS[3]}
            left.barh(y, stat, alpha=0.35, **bar)
            left.barh(y, full - stat, left=stat, alpha=0.85, **bar)
            right.barh(y, added, alpha=0.85, **bar)
            for axes, quantity, value in ((left, "sigma_full", full), (right, "delta_mu", added)):
                values = found.values(name, quantity)
                axes.text(max(values), y, f"  {value:.3f}", va="center", ha="left")
                if found.repeat > 1:
                    axes.plot(values, [y] * len(values), "o", color="black", markersize=3)
        left.set_yticks(range(len(names)), [_short(name) for name in names])
        for axes, quantity in ((left, "sigma_full"), (right, "delta_mu")):
            axes.tick_params(axis="y", which="both", length=0)
            axes.set_xlim(0, 1.35 * max(max(found.values(name, quantity)) for name in names))
        left.set_xlabel(r"$\sigma_\mu$, light: without systematics")
        right.set_xlabel(r"what these add, $\Delta\mu_{sys}$")
    return drawn


def _settings(found: Comparison) -> list[Block]:
    rows = []
    for entry in found.entries:
        chosen = dict.fromkeys(json.dumps(settings) for settings in entry.settings)
        rows.append((_short(entry.contestant), str(entry.division), "; ".join(chosen)))
    return [
        Table("Settings chosen for the folds", ("method", "division", "settings"), tuple(rows)),
        Table("Versions", ("method", "package and version, or digest of the code"), tuple(found.releases.items())),
    ]


def _short(name: str) -> str:
    """Name of a contestant; of an import path the class."""
    return name.rpartition(".")[2]
