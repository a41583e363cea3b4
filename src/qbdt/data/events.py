"""`Events`: rows of one process with feature columns, weights and identifiers.

Selecting rows copies no feature: an `Events` keeps its base columns and remembers which rows it stands for, so signal
and background can be two selections of one table, and folds of a large sample cost one index per row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.arrays import Floats
from qbdt.data.columns import fill_masked, require_unmasked
from qbdt.data.identity import are_distinct, are_shared_by_few, hash_columns, mix_salt, whole_numbers
from qbdt.errors import DataError, has_half_character

FeatureValues: TypeAlias = NDArray[np.floating[Any]]
"""Values of features in the precision in which they came: single or double."""

PickedRows: TypeAlias = range | NDArray[np.integer[Any]]
"""Numbers of the rows of the base columns that are there."""

Selection: TypeAlias = slice | NDArray[np.bool_] | NDArray[np.integer[Any]]


class Events:
    """Immutable rows: named feature columns, one weight per row, optional identifiers.

    Parameters
    ----------
    columns
        Feature name to a one-dimensional numeric array; all of one length. NaN marks a missing value.
    weight
        True expected yield of each row; negative values are allowed, NaN and infinities are not.
    ids
        Identifier name to an array (event number, run, …), for fold rules. They are never trained on.

    Examples
    --------
    >>> events = Events({"pt": [30.0, 50.0, 20.0]}, weight=[1.0, 1.0, -0.5])
    >>> events.n_rows, events.total
    (3, 1.5)
    >>> events[events.column("pt") > 25].total
    2.0
    """

    __slots__ = ("_columns", "_ids", "_rows", "_weight")

    def __init__(
        self, columns: Mapping[str, ArrayLike], weight: ArrayLike, ids: Mapping[str, ArrayLike] | None = None
    ) -> None:
        self._weight = _freeze(_as_weight(weight))
        self._columns = {name: _freeze(_as_column(name, values)) for name, values in columns.items()}
        self._ids = {
            name: _freeze(_one_dimensional(name, require_unmasked(values, f"identifier {name}")))
            for name, values in (ids or {}).items()
        }
        self._rows: PickedRows = range(len(self._weight))
        if odd := [name for name in (*self._columns, *self._ids) if has_half_character(str(name))]:
            raise DataError(f"column {odd[0]!a}: half of a character in its name")
        for name, values in (*self._columns.items(), *self._ids.items()):
            if len(values) != len(self._weight):
                raise DataError(f"column {name} has {len(values)} rows, the weights have {len(self._weight)}")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._weight)

    def __len__(self) -> int:
        return self.n_rows

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the feature columns, in order."""
        return tuple(self._columns)

    @property
    def id_names(self) -> tuple[str, ...]:
        """Names of the identifier columns."""
        return tuple(self._ids)

    @property
    def weight(self) -> Floats:
        """True expected yield of each row."""
        return self._weight

    @property
    def total(self) -> float:
        """Sum of weights: the expected yield."""
        return float(self._weight.sum())

    @property
    def effective_entries(self) -> float:
        """(Σw)²/Σw²: the number of unweighted events with the same relative statistical uncertainty."""
        largest = float(np.abs(self._weight).max(initial=0.0))
        if largest == 0:
            return 0.0
        scaled = self._weight / largest
        return float(scaled.sum() ** 2 / np.square(scaled).sum())

    def column(self, name: str) -> FeatureValues:
        """Values of one feature: a view where the rows are contiguous, a copy of this column otherwise."""
        if name not in self._columns:
            raise DataError(f"no feature {name}; there are: {', '.join(self._columns)}")
        return _take(self._columns[name], self._rows)

    def identifier(self, name: str) -> NDArray[Any]:
        """Values of one identifier column."""
        if name not in self._ids:
            known = ", ".join(self._ids) or "none"
            raise DataError(f"no identifier column {name}; there are: {known}")
        return _take(self._ids[name], self._rows)

    def hash_identifiers(self, salt: int = 0) -> NDArray[np.uint64]:
        """Hash of all identifiers of each row; of the row number where there are none.

        A shifted copy of an event has its hash. Another salt gives another, unrelated order of the same events.

        Examples
        --------
        >>> nominal = Events({"x": [0.1, 0.2]}, [1, 1], ids={"event": [7, 8]})
        >>> shifted = Events({"x": [0.3, 0.2]}, [1, 1], ids={"event": [8, 9]})
        >>> bool(nominal.hash_identifiers()[1] == shifted.hash_identifiers()[0])
        True
        """
        if not self._ids:
            return self.hash_rows(salt)
        return hash_columns([whole_numbers(name, self.identifier(name)) for name in self._ids], mix_salt(salt))

    def hash_rows(self, salt: int = 0) -> NDArray[np.uint64]:
        """Hash of the row numbers, for rows that no identifier tells apart."""
        return hash_columns([np.arange(self.n_rows)], mix_salt(salt))

    def count_common(self, other: Events) -> int:
        """Rows whose identifiers occur among those of other events."""
        return int(np.isin(self.hash_identifiers(), other.hash_identifiers()).sum())

    @property
    def identifiers_differ(self) -> bool:
        """Whether identifiers tell events apart, and not only folds or runs; without identifiers, rows count."""
        return are_distinct(self.hash_identifiers())

    @property
    def identifiers_pair(self) -> bool:
        """Whether few events share an identifier, so that sums over them hold an event together with its copy."""
        return bool(self.id_names) and are_shared_by_few(self.hash_identifiers())

    def thin(self, n_rows: int, of: int, salt: int = 0) -> Events:
        """Keep about `n_rows` of every `of` rows: the same events of a nominal sample and of its shifted copies.

        Examples
        --------
        >>> events = Events({"x": np.arange(1000.0)}, np.ones(1000), ids={"event": np.arange(1000)})
        >>> 60 < events.thin(100, of=1000).n_rows < 140
        True
        """
        if n_rows >= of:
            return self
        hashes = self.hash_identifiers(salt)
        if not are_distinct(hashes):
            hashes = self.hash_rows(salt)
        return self[hashes < np.uint64(2**64 * (n_rows / of))]

    def in_place(self) -> tuple[Mapping[str, FeatureValues], PickedRows]:
        """Return the base columns and the rows of them that count, for kernels that read without a copy."""
        return MappingProxyType(self._columns), self._rows

    def matrix(self, features: Sequence[str] | None = None) -> FeatureValues:
        """Rows × features as one array, columns contiguous; a copy."""
        names = self.features if features is None else tuple(features)
        dtype = np.result_type(*(self._columns[name] for name in names)) if names else np.dtype(np.float32)
        out = np.empty((self.n_rows, len(names)), dtype=dtype, order="F")
        for i, name in enumerate(names):
            out[:, i] = self.column(name)
        return out

    def __getitem__(self, selection: Selection) -> Events:
        """Select rows by slice, mask or index; weights are copied for masks and indices, features never."""
        if not isinstance(selection, slice):
            selection = _as_index(selection, self.n_rows)
        return self._derive(rows=_compose(self._rows, selection), weight=self._weight[selection])

    def with_weight(self, weight: ArrayLike) -> Events:
        """Return the same rows with other weights."""
        values = _as_weight(weight)
        if len(values) != self.n_rows:
            raise DataError(f"{len(values)} weights for {self.n_rows} rows")
        return self._derive(weight=values)

    def with_features(self, names: Sequence[str]) -> Events:
        """Keep these features, in this order; no copy."""
        absent = [name for name in names if name not in self._columns]
        if absent:
            raise DataError(f"no feature {', '.join(absent)}; there are: {', '.join(self._columns)}")
        return self._derive(columns={name: self._columns[name] for name in names})

    def with_column(self, name: str, values: ArrayLike) -> Events:
        """Return the same rows with other values of one feature."""
        columns = {feature: values if feature == name else self.column(feature) for feature in self.features}
        if name not in columns:
            raise DataError(f"no feature {name}; there are: {', '.join(self._columns)}")
        return Events(columns, self.weight, {identifier: self.identifier(identifier) for identifier in self.id_names})

    def chunks(self, size: int) -> Iterator[Events]:
        """Consecutive pieces of at most `size` rows."""
        if size < 1:
            raise DataError(f"size={size}: chunks have at least one row")
        for start in range(0, self.n_rows, size):
            yield self[start : start + size]

    @classmethod
    def concatenate(cls, pieces: Sequence[Events]) -> Events:
        """Join rows of pieces that have the same features and identifiers."""
        if not pieces:
            raise DataError("nothing to concatenate")
        first = pieces[0]
        if len(pieces) == 1:
            return first
        for piece in pieces[1:]:
            if piece.features != first.features or piece.id_names != first.id_names:
                raise DataError(
                    f"cannot join events with columns {piece.features + piece.id_names} "
                    f"to events with columns {first.features + first.id_names}"
                )
        return cls(
            {name: np.concatenate([piece.column(name) for piece in pieces]) for name in first.features},
            np.concatenate([piece.weight for piece in pieces]),
            {name: np.concatenate([piece.identifier(name) for piece in pieces]) for name in first.id_names},
        )

    def _derive(
        self,
        rows: PickedRows | None = None,
        weight: Floats | None = None,
        columns: dict[str, FeatureValues] | None = None,
    ) -> Events:
        other = object.__new__(Events)
        other._columns = self._columns if columns is None else columns
        other._ids = self._ids
        other._rows = self._rows if rows is None else rows
        other._weight = self._weight if weight is None else _freeze(weight)
        return other

    def __repr__(self) -> str:
        return f"Events({self.n_rows} rows, yield {self.total:.6g}, features {list(self.features)})"


def as_mapping(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a read-only copy of a mapping, in its order."""
    return MappingProxyType(dict(values))


def _as_index(selection: Selection, n_rows: int) -> NDArray[np.intp]:
    """Row numbers, counted from zero, that a mask or an index stands for."""
    index: NDArray[Any] = np.asarray(selection)
    if index.ndim != 1:
        raise DataError("rows are selected by slice, boolean mask or a list of row numbers")
    if index.dtype == np.bool_:
        if len(index) != n_rows:
            raise DataError(f"a mask of {len(index)} entries for {n_rows} rows")
        return np.flatnonzero(index)
    if index.size and not np.issubdtype(index.dtype, np.integer):
        raise DataError(f"rows are selected by slice, boolean mask or row numbers, not {index.dtype}")
    numbers = index.astype(np.intp)
    numbers = np.where(numbers < 0, numbers + n_rows, numbers)
    if numbers.size and (numbers.min() < 0 or numbers.max() >= n_rows):
        raise DataError(f"row {numbers[(numbers < 0) | (numbers >= n_rows)][0]} is asked for; there are {n_rows}")
    return numbers


def _compose(rows: PickedRows, selection: slice | NDArray[np.intp]) -> PickedRows:
    """Rows of the base columns that a selection of the current rows stands for."""
    if isinstance(selection, slice):
        return rows[selection]
    if not isinstance(rows, range):
        selected: NDArray[Any] = rows[selection]
        return selected
    whole = (rows.start, rows.step) == (0, 1)
    composed: NDArray[Any] = selection if whole else rows.start + rows.step * selection
    return composed.astype(np.int32) if max(rows.start, rows.stop) <= np.iinfo(np.int32).max else composed


def _take(values: NDArray[Any], rows: PickedRows) -> NDArray[Any]:
    if isinstance(rows, range):
        if not rows:
            return values[:0]
        return values[slice(rows.start, rows.stop if rows.stop >= 0 else None, rows.step)]
    return values[rows]


def _as_column(name: str, values: ArrayLike) -> FeatureValues:
    array = _one_dimensional(name, fill_masked(values))
    if array.dtype.kind == "f":
        return array.astype(np.float32 if array.dtype.itemsize < 4 else f"=f{min(array.dtype.itemsize, 8)}", copy=False)
    if array.dtype.kind not in "biu":
        raise DataError(f"column {name} has type {array.dtype}: features must be numbers")
    return array.astype(np.float32 if array.dtype.itemsize <= 2 else np.float64)


def _as_weight(values: ArrayLike) -> Floats:
    array = _one_dimensional("weight", require_unmasked(values, "weight"))
    if array.dtype.kind not in "biuf":
        raise DataError(f"weights have type {array.dtype}: they must be numbers")
    array = array.astype(np.float64, copy=False)
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise DataError(f"weight of row {bad[0]} is {array[bad[0]]} ({bad.size} such rows): weights must be finite")
    return array


def _one_dimensional(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 1:
        raise DataError(f"column {name} has shape {array.shape}: one value per row is needed")
    return array


def _freeze(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
