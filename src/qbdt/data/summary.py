"""Contents of a dataset in numbers: the tables behind `Dataset.summary` and `qbdt inspect`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qbdt.data.checks.distributions import find_most_moved
from qbdt.data.checks.findings import Finding, find_faults, make_findings_table
from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.flat_systematic import Kind
from qbdt.data.sample import Sample
from qbdt.tables import Table, format_count, render_html


@dataclass(frozen=True)
class SampleSummary:
    """One sample: rows, expected yield (events), (Σw)²/Σw², fraction of rows with negative weight, missing values."""

    name: str
    role: str
    rows: int
    total: float
    effective_entries: float
    negative_fraction: float
    missing: dict[str, int]
    fold_rows: tuple[int, ...]


@dataclass(frozen=True)
class SourceSummary:
    """One source on one process, up and down (None if one-sided)."""

    name: str
    kind: str
    process: str
    # up, down: relative change of the yield
    up: float
    down: float | None
    # rows_up, rows_down: number of rows
    rows_up: int
    rows_down: int | None
    moves: str | None = None  # Feature whose distribution changes most; None where none changes
    # moves_up, moves_down: change of its mean, in standard deviations of the nominal distribution
    moves_up: float | None = None
    moves_down: float | None = None


@dataclass(frozen=True)
class DatasetSummary:
    """Samples, sources and features of a dataset, and what looks wrong with them; prints as tables."""

    features: tuple[str, ...]
    folds: dict[str, Any] | None
    samples: tuple[SampleSummary, ...]
    sources: tuple[SourceSummary, ...]
    findings: tuple[Finding, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)

    def tables(self) -> tuple[Table, ...]:
        """Samples, missing values where there are any, sources, what they move, and findings to be checked."""
        own = (self._samples(), self._missing(), self._sources(), self._moved())
        tables = (*own, make_findings_table(self.findings))
        return tuple(table for table in tables if table.rows)

    def __str__(self) -> str:
        return "\n\n".join(str(table) for table in self.tables())

    def _repr_html_(self) -> str:
        headline = f"{format_count(len(self.samples), 'sample')}, {format_count(len(self.features), 'feature')}"
        return render_html(headline, self.tables(), unfolded=3)

    def _samples(self) -> Table:
        header = ["process", "role", "rows", "yield", "effective entries", "negative weights"]
        rows = []
        for s in self.samples:
            yields = [f"{s.total:,.5g}", f"{s.effective_entries:,.0f}", f"{s.negative_fraction:.2%}"]
            folds = [" / ".join(f"{n:,}" for n in s.fold_rows)] if self.folds else []
            rows.append((s.name, s.role, f"{s.rows:,}", *yields, *folds))
        return Table("Samples", (*header, *["rows per fold"] * bool(self.folds)), tuple(rows))

    def _missing(self) -> Table:
        features = [f for f in self.features if any(s.missing[f] for s in self.samples)]
        rows = tuple((f, *(f"{s.missing[f] / max(s.rows, 1):.2%}" for s in self.samples)) for f in features)
        return Table("Missing values", ("feature", *(s.name for s in self.samples)), rows)

    def _sources(self) -> Table:
        header = ("source", "kind", "process", "up", "down", "rows up", "rows down")
        rows = []
        for s in self.sources:
            yields = (_format(s.up, "+.2%"), _format(s.down, "+.2%"))
            counts = (_format(s.rows_up, ","), _format(s.rows_down, ","))
            rows.append((s.name, s.kind, s.process, *yields, *counts))
        return Table("Systematic sources", header, tuple(rows))

    def _moved(self) -> Table:
        header = ("source", "process", "feature", "up (σ)", "down (σ)")
        rows = tuple(
            (s.name, s.process, s.moves, _format(s.moves_up, "+.3f"), _format(s.moves_down, "+.3f"))
            for s in self.sources
            if s.moves
        )
        return Table("Feature whose mean each source moves most", header, rows)


def _format(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def summarise_dataset(dataset: Dataset) -> DatasetSummary:
    """Rows, yields, missing values and effects of the sources of a dataset, with the findings of all checks."""
    samples = tuple(_summarise_sample(dataset, sample) for sample in dataset.samples)
    sources = tuple(row for source in dataset.systematics for row in _summarise_source(dataset, source.name))
    rule = dataset.folds.to_dict() if dataset.folds else None
    return DatasetSummary(dataset.features, rule, samples, sources, find_faults(dataset))


def overview_html(dataset: Dataset) -> str:
    """HTML of a dataset for a notebook, without the slow counts: rows and yields, sources, features."""
    samples = tuple((s.name, str(s.role), f"{s.events.n_rows:,}", f"{s.events.total:,.5g}") for s in dataset.samples)
    sources = tuple(
        (s.name, str(s.kind), ", ".join(s.processes), "up and down" if s.two_sided else "up only")
        for s in dataset.systematics
    )
    tables = (
        Table("Samples", ("process", "role", "rows", "yield"), samples),
        Table(format_count(len(sources), "systematic source"), ("source", "kind", "processes", "directions"), sources),
        Table(
            format_count(len(dataset.features), "feature"), ("feature",), tuple((name,) for name in dataset.features)
        ),
    )
    return render_html(f"Dataset{_folds_text(dataset)}", (table for table in tables if table.rows))


def _folds_text(dataset: Dataset) -> str:
    if dataset.folds is None:
        return ", no folds"
    rule = dataset.folds.to_dict()
    return f", {rule['k']} folds by {rule['by']} of {', '.join(rule['columns'])}"


def _summarise_sample(dataset: Dataset, sample: Sample) -> SampleSummary:
    events = sample.events
    fold_rows: tuple[int, ...] = ()
    if dataset.folds is not None:
        counts = np.bincount(dataset.folds.assign(events), minlength=dataset.folds.k)
        fold_rows = tuple(int(count) for count in counts)
    return SampleSummary(
        name=sample.name,
        role=str(sample.role),
        rows=events.n_rows,
        total=events.total,
        effective_entries=events.effective_entries,
        negative_fraction=float(np.mean(events.weight < 0)) if events.n_rows else 0.0,
        missing={feature: int(np.isnan(events.column(feature)).sum()) for feature in events.features},
        fold_rows=fold_rows,
    )


def _summarise_source(dataset: Dataset, name: str) -> list[SourceSummary]:
    source = dataset.systematic(name)
    sides = {direction: dataset.varied(name, direction) for direction, _ in source.directions}
    return [
        _summarise_effect(name, str(source.kind), process, dataset.sample(process).events, sides)
        for process in source.processes
    ]


def _summarise_effect(
    name: str, kind: str, process: str, nominal: Events, sides: dict[str, dict[str, Events]]
) -> SourceSummary:
    up, down = sides["up"][process], sides["down"][process] if "down" in sides else None
    moves, moved_up = find_most_moved(nominal, up) if kind != Kind.NORM else (None, None)
    moved_down = None
    if moves is not None and down is not None:
        moved_down = find_most_moved(nominal.with_features([moves]), down.with_features([moves]))[1]
    return SourceSummary(
        name=name,
        kind=kind,
        process=process,
        up=_change(up, nominal),
        down=None if down is None else _change(down, nominal),
        rows_up=up.n_rows,
        rows_down=None if down is None else down.n_rows,
        moves=moves,
        moves_up=moved_up,
        moves_down=moved_down,
    )


def _change(varied: Events, nominal: Events) -> float:
    return varied.total / nominal.total - 1 if nominal.total else float("nan")
