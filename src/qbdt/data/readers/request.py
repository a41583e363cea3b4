"""From files or tables to `Events`: branches, derived columns, selection, weights, missing values, in one pass.

Chunks are checked as they come and copied straight to where they stay, so the peak of memory is the arrays that are
kept plus one chunk.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data.events import Events
from qbdt.data.expressions import Expression
from qbdt.data.families import FamilyBasis, FamilyRows, FamilySampler
from qbdt.data.identity import POSITION, bits_column, take_bits
from qbdt.data.readers.arrow import MemoryTable
from qbdt.data.readers.chunks import ColumnPlan, ColumnStack
from qbdt.data.readers.placeholders import mask_placeholders, may_be_missing
from qbdt.data.readers.table import TableFile, expand, open_table
from qbdt.errors import DataError, find_repeated
from qbdt.progress import Progress, silent

NOMINAL = "nominal"
"""Name of the nominal weight inside the weight expressions of variations."""

ELEMENT = re.compile(r"[\w.]+\[-?\d+\]")
"""An element of an array branch."""

FAMILY_ROWS = 16_384
"""Rows of a family of weights that are looked at together."""

UNIT_WEIGHT = Expression("1")
"""Every row counts as one event."""


@dataclass(frozen=True)
class Request:
    """Columns, weights and selection to read."""

    features: tuple[str, ...]  # Names of branches or derived columns, in order
    weight: Expression = UNIT_WEIGHT  # Expression for the weight; a number times branches
    scale: float = 1.0  # Factor on every weight, also on those of `variations`
    # Expressions for other weights of the same rows, by name; `nominal` stands for the unscaled nominal weight
    variations: Mapping[str, Expression] = field(default_factory=dict)
    derived: Mapping[str, Expression] = field(default_factory=dict)  # Derived columns
    selection: Expression | None = None  # Rows to keep; None keeps all
    # Conditions that are kept as columns after the features, 1 where they hold; like the selection they see
    # placeholders as they are
    conditions: Mapping[str, Expression] = field(default_factory=dict)
    ids: tuple[str, ...] = ()  # Identifier branches to keep as they are
    # Placeholders that mean "missing" in each feature or branch; the key None holds those of all columns
    missing: Mapping[str | None, tuple[float, ...]] = field(default_factory=dict)
    # Families of weights by name, and what makes columns of their members
    families: Mapping[str, FamilyBasis | FamilySampler] = field(default_factory=dict)
    file_numbers: tuple[int, ...] = ()  # Numbers of the files in their sample, where not all of them are read

    def __post_init__(self) -> None:
        """Let a feature name an element of an array branch: `jet_pt[0]`."""
        elements = {f: Expression(f) for f in self.features if ELEMENT.fullmatch(f) and f not in self.derived}
        object.__setattr__(self, "derived", {**elements, **self.derived})

    def identifying_columns(self, stored: Sequence[str] = ()) -> list[str]:
        """Columns that identifiers are made of: none for the position of a row.

        Where a table has an identifier as it was made once, as scored events have, it is read.
        """
        made = [name for name in self.ids if name not in stored]
        kept = [name for name in self.ids if name in stored]
        return kept + [bits_column(name) or name for name in made if name not in POSITION]

    def placeholders(self, name: str) -> tuple[float, ...]:
        """Values that mean "missing" in a column."""
        return (*self.missing.get(None, ()), *self.missing.get(name, ()))


def read_events(
    source: Any,
    features: Sequence[str],
    *,
    weight: str = "1",
    selection: str | None = None,
    derived: Mapping[str, str] | None = None,
    ids: Sequence[str] = (),
    missing: Sequence[float] = (),
    tree: str | None = None,
    progress: Progress = silent,
) -> Events:
    """Read events from files (a path, a wildcard, a list of them) or from a table in memory.

    Examples
    --------
    >>> table = {"pt": np.array([10.0, 30.0, 50.0]), "sf": np.array([1.0, 0.9, 1.1])}
    >>> read_events(table, ["pt"], weight="2 * sf", selection="pt > 20").total
    4.0
    """
    request = Request(
        features=tuple(features),
        weight=Expression(weight),
        selection=None if selection is None else Expression(selection),
        derived={name: Expression(text) for name, text in (derived or {}).items()},
        ids=tuple(ids),
        missing={None: tuple(missing)},
    )
    return read_request(_open_tables(source, tree), request, progress=progress)[0]


def read_request(
    tables: Iterable[AbstractContextManager[TableFile]],
    request: Request,
    *,
    description: str = "reading",
    progress: Progress = silent,
) -> tuple[Events, dict[str, Floats]]:
    """Read all tables in turn; returns the events, the weights of the variations, and the columns of families."""
    if twice := find_repeated(request.features):
        raise DataError(f"feature {', '.join(twice)} is asked for twice")
    kept = (*request.features, *request.conditions)
    names = [_feature(f) for f in kept] + [_id(i) for i in request.ids]
    families = [family_column(name, k) for name, one in request.families.items() for k in range(_n_columns(one))]
    stack = ColumnStack([*names, *(_weight(v) for v in (NOMINAL, *request.variations)), *families])
    for number, table in enumerate(tables):
        with table as opened, progress(f"{description}: {opened.label}", opened.n_rows) as advance:
            if opened.n_rows is not None and request.selection is None:
                stack.expect(opened.n_rows)
            for n_read, piece in _pieces(opened, request, (request.file_numbers or range(number + 1))[number]):
                stack.append(piece)
                advance(n_read)
                del piece
    columns = stack.finish()
    weights = {v: columns[_weight(v)].astype(np.float64, copy=False) for v in (NOMINAL, *request.variations)}
    features = {f: columns[_feature(f)] for f in kept}
    events = Events(features, weights.pop(NOMINAL), {i: columns[_id(i)] for i in request.ids})
    return events, {**weights, **{name: columns[name] for name in families}}


def family_column(name: str, number: int) -> str:
    """Key of a column of a family of weights."""
    return f"family {name} {number}"


def _is_of_family(key: str, name: str) -> bool:
    """Whether a key is a `family_column` of a family: its number is the last word, names may have blanks."""
    return key.rpartition(" ")[0] == family_column(name, 0).rpartition(" ")[0]


def _n_columns(basis: FamilyBasis | FamilySampler) -> int:
    assert isinstance(basis, FamilyBasis)
    return basis.n_columns


def read_family_rows(
    tables: Iterable[AbstractContextManager[TableFile]], request: Request, n_rows: int
) -> dict[str, FamilyRows]:
    """Weights and shifts of the first `n_rows` selected events of each table, for each sampled family."""
    found: dict[str, list[FamilyRows]] = {name: [] for name in request.families}
    for table in tables:
        with table as opened:
            n_found = 0
            for _, piece in _pieces(opened, request):
                weight = piece[_weight(NOMINAL)][: n_rows - n_found]
                for name, rows in found.items():
                    columns = [values for key, values in piece.items() if _is_of_family(key, name)]
                    shifts = np.stack([values[: len(weight)] for values in columns], axis=1) if len(weight) else None
                    rows += [] if shifts is None else [FamilyRows(weight.astype(np.float64), shifts)]
                n_found += len(weight)
                if n_found >= n_rows:
                    break
    return {
        name: FamilyRows(np.concatenate([r.weight for r in rows]), np.concatenate([r.shifts for r in rows]))
        for name, rows in found.items()
        if rows
    }


def _open_tables(source: Any, tree: str | None) -> list[AbstractContextManager[TableFile]]:
    if isinstance(source, str | PathLike):
        source = [source]
    if isinstance(source, list | tuple) and all(isinstance(path, str | PathLike) for path in source):
        return [open_table(path, tree) for pattern in source for path in expand(str(pattern))]
    return [nullcontext(MemoryTable(source))]


def _pieces(table: TableFile, request: Request, file_number: int = 0) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
    """Checked columns of each chunk, with the number of rows it was read from."""
    plan = ColumnPlan(request.derived, table.names, table.label)
    needed = _branches(plan, request, table.names)
    shared = needed if not request.families else _branches(plan, replace(request, families={}), table.names)
    start = 0
    for chunk in table.chunks(sorted(needed) or list(table.names[:1])):
        n_rows = len(next(iter(chunk.values())))
        place = (file_number, table.first_row + start)
        yield n_rows, _Piece(table.label, plan, request, chunk, place, n_rows).columns(shared)
        start += n_rows
        del chunk


def _branches(plan: ColumnPlan, request: Request, stored: Sequence[str]) -> frozenset[str]:
    needed = [plan.branches(name) for name in (*request.features, *request.identifying_columns(stored))]
    selected = [request.selection] if request.selection else []
    for expression in (request.weight, *selected, *request.conditions.values()):
        needed += [plan.branches(name) for name in sorted(expression.names)]
    for one in request.families.values():
        needed += [plan.branches(n) for n in sorted(one.family.weights.names | one.family.central.names)]
    for expression in request.variations.values():
        needed += [plan.branches(name) for name in sorted(expression.names - {NOMINAL})]
    branches = frozenset().union(*needed)
    unused = [name for name in request.missing if name is not None and name not in branches | set(request.features)]
    if unused:
        raise DataError(f"missing: {', '.join(unused)} is neither a feature nor a branch that is read")
    return branches


class _Piece:
    """One chunk on its way to columns."""

    def __init__(
        self, label: str, plan: ColumnPlan, request: Request, chunk: dict[str, Any], place: tuple[int, int], n_rows: int
    ) -> None:
        self._label, self._plan, self._request = label, plan, request
        self._file_number, self._start = place
        self._raw = chunk
        kept = None if request.selection is None else self._holds(request.selection, chunk, n_rows)
        self._kept = np.arange(n_rows) if kept is None else np.flatnonzero(kept)
        self._all = len(self._kept) == n_rows

    def _holds(self, condition: Expression, branches: dict[str, Any], n_rows: int) -> NDArray[np.bool_]:
        return np.broadcast_to(self._plan.mask(condition, branches), (n_rows,))

    def columns(self, branches: Collection[str]) -> dict[str, NDArray[Any]]:
        """Features, identifiers and weights of the rows that are kept; `branches` are those not of families only."""
        raw = {name: values for name, values in self._raw.items() if name in branches}
        raw = raw if self._all else {name: values[self._kept] for name, values in raw.items()}
        clean = self._clean(raw)
        columns = {_feature(name): self._feature(name, raw, clean) for name in self._request.features}
        for name, condition in self._request.conditions.items():
            columns[_feature(name)] = self._holds(condition, raw, len(self._kept))
        columns |= {_id(name): self._identifier(name, raw) for name in self._request.ids}
        nominal = self._weights("weight", self._request.weight, raw)
        columns[_weight(NOMINAL)] = nominal * self._request.scale if self._request.scale != 1 else nominal
        for name, expression in self._request.variations.items():
            varied = self._weights(f"weight of {name}", expression, raw, nominal)
            columns[_weight(name)] = varied * self._request.scale
        for name, basis in self._request.families.items():
            shifts = self._shifts(name, basis)
            columns |= {family_column(name, k): shifts[:, k] for k in range(shifts.shape[1])}
        return columns

    def _identifier(self, name: str, raw: dict[str, Any]) -> NDArray[Any]:
        if name in raw:  # a branch, perhaps made by an earlier step
            return self._one_per_row(name, self._plan.evaluate(name, raw))
        if name in POSITION:
            position = dict(zip(POSITION, (self._file_number, self._start + self._kept), strict=True))
            return np.broadcast_to(np.asarray(position[name], dtype=np.int64), (len(self._kept),))
        column = bits_column(name)
        values = self._one_per_row(column or name, self._plan.evaluate(column or name, raw))
        return values if column is None else take_bits(values)

    def _shifts(self, name: str, basis: FamilyBasis | FamilySampler) -> NDArray[np.float32]:
        """Columns of a family, block by block: the lists of weights of a chunk are large beside all else."""
        family, blocks = basis.family, []
        names = family.weights.names | family.central.names
        branches = {branch for column in names for branch in self._plan.branches(column)}
        for start in range(0, max(len(self._kept), 1), FAMILY_ROWS):
            rows = self._kept[start : start + FAMILY_ROWS]
            raw = {branch: self._raw[branch][rows] for branch in branches}
            columns = {column: self._plan.evaluate(column, raw) for column in names}
            members = family.read_members(columns, len(rows), f"{self._label}: weights of {name}")
            blocks.append(basis.project(*members, self._label))
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def _clean(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Branches with their placeholders replaced by NaN: what features are computed from."""
        if not any(self._request.missing.values()):
            return raw
        return {name: mask_placeholders(values, self._request.placeholders(name)) for name, values in raw.items()}

    def _feature(self, name: str, raw: dict[str, Any], clean: dict[str, Any]) -> NDArray[Any]:
        before = self._one_per_row(name, self._plan.evaluate(name, clean))
        placeholders = self._request.placeholders(name)
        values = np.asarray(mask_placeholders(before, placeholders))
        if not _all_finite(values):
            allowed = np.isnan(values) if any(np.isnan(placeholders)) else np.isnan(values) & ~np.isnan(before)
            for branch in self._plan.branches(name):
                allowed |= may_be_missing(raw[branch], clean[branch])
            self._refuse(f"feature {name}", values, ~np.isfinite(values) & ~(allowed & np.isnan(values)))
        return values

    def _weights(
        self, what: str, expression: Expression, branches: dict[str, Any], nominal: Floats | None = None
    ) -> Floats:
        names = {}
        for name in expression.names:
            given = nominal if name == NOMINAL and nominal is not None else self._plan.evaluate(name, branches)
            is_single = isinstance(given, np.ndarray) and given.dtype.kind == "f"
            names[name] = given.astype(np.float64) if is_single else given
        values = self._one_per_row(expression.shown, expression.evaluate(names)).astype(np.float64, copy=False)
        values = np.broadcast_to(values, (len(self._kept),)) if values.ndim == 0 else values
        if not _all_finite(values):
            self._refuse(what, values, ~np.isfinite(values))
        return values

    def _one_per_row(self, name: str, values: Any) -> NDArray[Any]:
        if not isinstance(values, np.ndarray):
            raise DataError(
                f"{self._label}: {name} has several values per event; pick an element, for example {name}[0], or "
                f"reduce it in `columns`, for example sum({name})"
            )
        if values.ndim == 0:
            return np.broadcast_to(values, (len(self._kept),))
        if values.ndim != 1:
            raise DataError(
                f"{self._label}: {name} has {values.shape[1:]} values per event; pick one, for example {name}[0]"
            )
        if values.dtype.kind not in "biuf":
            raise DataError(f"{self._label}: {name} has type {values.dtype}: numbers are needed")
        return values

    def _refuse(self, what: str, values: NDArray[Any], bad: NDArray[np.bool_]) -> None:
        if not bad.any():
            return
        first = int(np.flatnonzero(bad)[0])
        value = values[first]
        shown = "NaN" if np.isnan(value) else str(value)
        advice = "remove these events in `selection`"
        if what.startswith("feature"):
            in_yaml = f".{shown.lower()}" if value > 0 or np.isnan(value) else "-.inf"
            advice = f"declare it with `missing: [{in_yaml}]`, or {advice}"
        raise DataError(
            f"{self._label}: {what} is {shown} in row {self._start + self._kept[first]} ({bad.sum()} rows); {advice}"
        )


def _all_finite(values: NDArray[Any]) -> bool:
    """Whether all values are finite; the sum tells cheaply, except where it overflows."""
    if values.dtype.kind != "f":
        return True
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def _feature(name: str) -> str:
    return f"feature {name}"


def _id(name: str) -> str:
    return f"id {name}"


def _weight(name: str) -> str:
    return f"weight {name}"
