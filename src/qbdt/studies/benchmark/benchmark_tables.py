"""Tables of the benchmark of physics, for the terminal and the documentation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter

import numpy as np

from qbdt.statistics import FittedSensitivity
from qbdt.studies.benchmark.criteria import BenchmarkCriterion, check_criteria, compare_records, find_best_peer
from qbdt.studies.benchmark.physics import NO_SOURCES
from qbdt.studies.benchmark.results import ALL_SOURCES, BINNINGS, BINS, FitRecord, PhysicsResults
from qbdt.studies.benchmark.synthetic import COLUMNS, LIMIT, PUBLISHED
from qbdt.studies.comparison.contestants import OURS
from qbdt.tables import Table

FIGURES: tuple[tuple[str, Callable[[FittedSensitivity], float]], ...] = (
    ("Z stat", attrgetter("z_stat")),
    ("Z full", attrgetter("z_full")),
    ("σ_μ stat", attrgetter("sigma_stat")),
    ("σ_μ full", attrgetter("sigma_full")),
    ("Δμ_sys", attrgetter("delta_mu")),
)


def make_physics_tables(bench: PhysicsResults) -> list[Table]:
    """Every table for which there are results; the criteria come last."""
    tables = []
    if bench.synthetic:
        tables.append(_synthetic(bench))
    for problem, title in bench.titles.items():
        for binning in BINNINGS:
            tables.append(_fits(bench, problem, f"{problem}: {title}; {binning.replace('_', '-')} bins", binning))
        tables.append(_differences(bench, problem))
        tables.append(_checks(bench, problem))
        tables.append(_settings(bench, problem))
    tables.append(_sizes(bench))
    if bench.times:
        tables.append(_times(bench))
    tables.append(_criteria(check_criteria(bench)))
    return [table for table in tables if table.rows]


def format_markdown(bench: PhysicsResults) -> str:
    """Every table as Markdown, for the documentation."""
    releases = ", ".join(f"{name} ({release})" for name, release in bench.releases.items())
    head = f"Written by `{bench.command}`; up to {bench.budget} settings for each peer, tuned inside training folds."
    blocks = [f"{head} {releases}."]
    blocks += [f"**{table.title}**\n\n{table.to_markdown()}" for table in make_physics_tables(bench)]
    return "\n\n".join(blocks) + "\n"


def _fits(bench: PhysicsResults, problem: str, title: str, binning: str) -> Table:
    rows = []
    for name in _names(bench.select(problem)):
        for bins in BINS:
            records = bench.select(problem, contestant=name, binning=binning, bins=bins)
            rows.append((name, str(bins), *(_spread(records, value) for _, value in FIGURES)))
    seeds = len({record.seed for record in bench.select(problem)})
    over = f"mean ± spread over {seeds} divisions" if seeds > 1 else "one division into folds"
    return Table(f"{title}; {over}", ("method", "bins", *(name for name, _ in FIGURES)), tuple(rows))


def _differences(bench: PhysicsResults, problem: str) -> Table:
    """The profiled method less the best peer, on the same divisions."""
    rows = []
    for binning in BINNINGS:
        for bins in BINS:
            mine = bench.select(problem, contestant=OURS, binning=binning, bins=bins)
            peer = find_best_peer(bench, problem, binning, bins)
            if not mine or peer is None:
                continue
            theirs = bench.select(problem, contestant=peer, binning=binning, bins=bins)
            cells = []
            for _, value in FIGURES:
                found = compare_records(mine, theirs, value)
                error = f" ± {found.error:.3f}" if math.isfinite(found.error) else ""
                cells.append(f"{found.mean:+z.3f}{error}")
            rows.append((binning.replace("_", "-"), str(bins), peer, *cells))
    header = ("binning", "bins", "best peer", *(name for name, _ in FIGURES))
    return Table(f"{problem}: {OURS} − best peer, paired, mean ± its error", header, tuple(rows))


def _settings(bench: PhysicsResults, problem: str) -> Table:
    """Settings that tuning chose, and for how many folds of all divisions."""
    chosen: Counter[tuple[str, str]] = Counter()
    for entry in bench.settings:
        if entry["problem"] == problem and entry["contestant"] != OURS:
            for settings in entry["settings"]:
                chosen[entry["contestant"], ", ".join(f"{name} {value}" for name, value in settings.items())] += 1
    rows = tuple((*key, str(count)) for key, count in chosen.items())
    return Table(f"{problem}: settings that tuning chose", ("method", "settings", "folds"), rows)


def _sizes(bench: PhysicsResults) -> Table:
    """P5: the profiled method against the best peer at every size; 20 bins."""
    rows = []
    for problem, title in bench.titles.items():
        for setup, value in ((ALL_SOURCES, "sigma_full"), (NO_SOURCES, "sigma_stat")):
            peer = find_best_peer(bench, problem, "equal_signal", 20, setup)
            mine = bench.select(problem, setup, contestant=OURS, binning="equal_signal", bins=20)
            if "/" not in problem or peer is None or not mine:
                continue
            theirs = bench.select(problem, setup, contestant=peer, binning="equal_signal", bins=20)
            ratios = [getattr(a.result, value) / getattr(b.result, value) for a, b in zip(mine, theirs, strict=True)]
            error = f" ± {np.std(ratios, ddof=1) / math.sqrt(len(ratios)):.3f}" if len(ratios) > 1 else ""
            figures = (_spread(mine, attrgetter(value)), _spread(theirs, attrgetter(value)))
            rows.append((problem, title.partition(": ")[2], setup, *figures, peer, f"{np.mean(ratios):.3f}{error}"))
    header = ("problem", "events", "sources", f"σ_μ {OURS}", "σ_μ best peer", "best peer", "ratio")
    return Table("P5: σ_μ against the number of simulated events, equal-signal bins", header, tuple(rows))


def _checks(bench: PhysicsResults, problem: str) -> Table:
    """Setups other than all sources: 20 bins, σ_μ."""
    rows = []
    setups = dict.fromkeys(r.setup for r in bench.fits if r.problem == problem and r.setup != ALL_SOURCES)
    for setup in setups:
        for name in _names(bench.select(problem, setup)):
            cells = []
            for binning in BINNINGS:
                records = bench.select(problem, setup, contestant=name, binning=binning, bins=20)
                cells += [_spread(records, attrgetter("sigma_stat")), _spread(records, attrgetter("sigma_full"))]
            rows.append((setup, name, *cells))
    header = (
        "sources",
        "method",
        *(f"{what}, {b}" for b in ("equal-signal", "optimised") for what in ("stat", "full")),
    )
    return Table(f"{problem}: σ_μ with other sources, 20 bins", header, tuple(rows))


def _synthetic(bench: PhysicsResults) -> Table:
    rows = [(name, "", "10", *(f"{v:.2f}" for v in values)) for name, values in PUBLISHED.items()]
    for name in dict.fromkeys(record.contestant for record in bench.synthetic):
        for binning in BINNINGS:
            for bins in BINS:
                found = [r.sigma for r in bench.synthetic if (r.contestant, r.binning, r.bins) == (name, binning, bins)]
                if not found:
                    continue
                means, spreads = np.mean(found, axis=0), np.std(found, axis=0, ddof=min(1, len(found) - 1))
                cells = [f"{m:.2f}" + f" ± {s:.2f}" * (len(found) > 1) for m, s in zip(means, spreads, strict=True)]
                rows.append((name, binning.replace("_", "-"), str(bins), *cells))
    rows.append(("unbinned likelihood: the limit (published)", "", "–", *(f"{v:.2f}" for v in LIMIT)))
    return Table("P1: the INFERNO problem, σ(s)", ("method", "binning", "bins", *COLUMNS), tuple(rows))


def _times(bench: PhysicsResults) -> Table:
    rows = tuple((r.kind, str(r.sources), f"{r.seconds:.2f}") for r in bench.times)
    return Table(f"Training time of {OURS}, CPU seconds on one thread", ("kind", "sources", "s"), rows)


def _criteria(found: Sequence[BenchmarkCriterion]) -> Table:
    rows = tuple((m.problem, m.claim, f"{m.value:.3f}", f"{m.limit:.3f}", "yes" if m.holds else "NO") for m in found)
    return Table("Criteria", ("problem", "claim", "measured", "limit", "holds"), rows)


def _names(records: Iterable[FitRecord]) -> Iterator[str]:
    return iter(dict.fromkeys(record.contestant for record in records))


def _spread(records: Sequence[FitRecord], value: Callable[[FittedSensitivity], float]) -> str:
    values = [value(record.result) for record in records]
    if len(values) < 2:
        return f"{values[0]:.3f}"
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"
