"""Making a `Dataset` of other things: of one labelled table, or of several datasets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.data.columns import as_columns, has_names, is_plain, name_columns, require_unmasked
from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.flat_systematic import FlatSystematic, Kind
from qbdt.data.folds import FoldRule
from qbdt.data.identity import are_distinct, hash_columns, list_identifiers, number_identifiers
from qbdt.data.sample import Role, Sample
from qbdt.data.systematic import Systematic
from qbdt.data.variations import Replacement, Rescaling, Reweighting, Scaling, Variation, check_weights
from qbdt.errors import DataError

PROCESS_OF = {True: "signal", False: "background"}

ProcessRows: TypeAlias = dict[str, NDArray[np.integer[Any]]]
"""Rows of a table that belong to each process."""


def from_arrays(
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    systematics: Sequence[FlatSystematic | Systematic],
    feature_names: Sequence[str] | None,
    process: str | ArrayLike | None,
    folds: FoldRule | None,
    event_id: Any = None,
) -> Dataset:
    """Split one labelled table into processes; see `Dataset.from_arrays`."""
    systematics = Systematic.read_list(systematics)
    columns, names, numbered = add_identifiers(as_columns(X, feature_names), event_id)
    apart = Apart(process, () if folds is None else folds.columns, names)
    split = _split(columns, y, sample_weight, apart, "")
    for role in (Role.SIGNAL, Role.BACKGROUND):
        if role not in [part.role for part in split.values()]:
            raise DataError(f"y has one class only: no {role} rows")
    rows = {name: part.rows for name, part in split.items()}
    samples = [Sample(name, part.role, part.events) for name, part in split.items()]
    table = FlatTable(rows, samples[0].events.features, sample_weight is not None, numbered, apart, _split_varied)
    return Dataset(samples, [bind(source, table) for source in systematics], folds).require_usable()


def add_identifiers(
    columns: dict[str, NDArray[Any]], event_id: Any
) -> tuple[dict[str, NDArray[Any]], tuple[str, ...], bool]:
    """Add identifiers that come as an array; returns columns, names of identifiers, and whether some were added."""
    names = name_columns(event_id)
    if event_id is None or names:
        return columns, names, False
    given = list_identifiers(event_id, len(next(iter(columns.values()), ())))
    return {**columns, **given}, tuple(given), True


@dataclass(frozen=True)
class Apart:
    """Columns of a table that are no features: the process of each row, or the column that names it; identifiers.

    Rows are put into the order of those that `event_id` names.
    """

    process: str | ArrayLike | None
    of_folds: tuple[str, ...]
    event_id: tuple[str, ...]

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns of the fold rule, and those that tell events apart."""
        return tuple(dict.fromkeys((*self.of_folds, *self.event_id)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the table must have."""
        return (*([self.process] if isinstance(self.process, str) else []), *self.identifiers)


class _Part(NamedTuple):
    """Rows of a table that belong to one process."""

    role: Role
    events: Events
    rows: NDArray[np.integer[Any]]


class FlatTable(NamedTuple):
    """A table that sources are bound to: rows of each process, features, and columns that are none.

    It is `weighted` where weights are given, and `numbered` where identifiers of events are, as an array. `split`
    divides the table of a shape variation, given as (columns, y, weight, apart, context), into processes.
    """

    rows: ProcessRows
    features: Sequence[str]
    weighted: bool
    numbered: bool
    apart: Apart
    split: Callable[..., dict[str, Events]]


def signal_mask(y: ArrayLike, context: str = "") -> NDArray[np.bool_]:
    """Signal mask from labels 1 and 0 (or −1), or from a mask."""
    values = require_unmasked(y, f"{context}y")
    if values.ndim != 1:
        raise DataError(f"{context}y has shape {values.shape}: one label per row is needed")
    if values.dtype == np.bool_:
        return values
    if values.dtype.kind not in "iuf":
        raise DataError(f"{context}y has type {values.dtype}: labels are 1 for signal and 0 (or −1) for background")
    signal = values == 1
    other = np.flatnonzero(~(signal | (values == 0) | (values == -1)))
    if other.size:
        raise DataError(
            f"{context}y[{other[0]}]={values[other[0]]}: labels are 1 for signal and 0 (or −1) for background"
        )
    return np.asarray(signal, dtype=np.bool_)


def concatenate(datasets: Sequence[Dataset]) -> Dataset:
    """Join datasets; see `Dataset.concatenate`."""
    if not datasets:
        raise DataError("nothing to concatenate")
    names = list(dict.fromkeys(sample.name for one in datasets for sample in one.samples))
    samples = [_join_sample(name, [d for d in datasets if name in _names(d)]) for name in names]
    sources = list(dict.fromkeys(source.name for one in datasets for source in one.systematics))
    if any(one.folds != datasets[0].folds for one in datasets):
        raise DataError("datasets with different fold rules cannot be joined; set one with `with_folds` first")
    return Dataset(samples, [_join_source(name, datasets) for name in sources], datasets[0].folds)


def _split(
    columns: dict[str, NDArray[Any]], y: ArrayLike, weight: ArrayLike | None, apart: Apart, context: str
) -> dict[str, _Part]:
    """Rows of each process, those of signal first; columns that are no features are taken out."""
    signal = signal_mask(y, context)
    labels = _process_labels(columns, apart.process, signal, context)
    identifiers = take_identifiers(columns, apart, context)
    n_rows = len(next(iter(columns.values()))) if columns else 0
    if n_rows != len(signal):
        raise DataError(f"{context}X has {n_rows} rows, y has {len(signal)}")
    weights = np.ones(n_rows) if weight is None else require_unmasked(weight, f"{context}weight")
    if weights.shape != (n_rows,):
        raise DataError(f"{context}weights have shape {weights.shape}, X has {n_rows} rows")
    events = Events(columns, weights, identifiers)
    found = {}
    for role, chosen in ((Role.SIGNAL, signal), (Role.BACKGROUND, ~signal)):
        named = _process_names(labels, role, chosen)
        for label in sorted(named) if apart.event_id else named:
            mask = chosen if labels is None else labels == label
            if not chosen[mask].all():
                raise DataError(f"{context}process {label}: some rows have y = 1 and some 0; a process has one role")
            rows = np.flatnonzero(mask).astype(np.int32)
            rows = rows[order_events(events[rows], apart.event_id, f"{context}process {label}: ")]
            found[str(label)] = _Part(role, events[rows] if apart.event_id else events[mask], rows)
    return found


def take_identifiers(columns: dict[str, NDArray[Any]], apart: Apart, context: str) -> dict[str, NDArray[Any]]:
    """Take identifiers out of the columns of a table; those that tell events apart as whole numbers."""
    if absent := [name for name in apart.identifiers if name not in columns]:
        what = "the fold rule needs" if set(absent) & set(apart.of_folds) else "event_id names"
        raise DataError(f"{context}X has no column {', '.join(absent)}, which {what}")
    identifiers = {name: columns.pop(name) for name in apart.identifiers}
    for name in apart.event_id:
        identifiers[name] = number_identifiers(f"{context}{name}", identifiers[name])
    return identifiers


def _split_varied(
    columns: dict[str, NDArray[Any]], y: ArrayLike, weight: ArrayLike | None, apart: Apart, context: str
) -> dict[str, Events]:
    """Events of each process under a variation."""
    return {name: part.events for name, part in _split(columns, y, weight, apart, context).items()}


def order_events(events: Events, names: tuple[str, ...], context: str) -> slice | NDArray[np.intp]:
    """Order of rows by identifiers, and by their content where these are the same; as they come without identifiers."""
    if not names:
        return slice(None)
    keys = [events.identifier(name) for name in names]
    if not are_distinct(hashes := hash_columns(keys)):
        n_different = np.unique(hashes).size
        raise DataError(
            f"{context}event_id has {n_different} values in {events.n_rows} rows: it must tell events apart"
        )
    order = np.lexsort(keys)
    ties = np.all([key[order[1:]] == key[order[:-1]] for key in keys], axis=0)
    if not ties.any():
        return order
    return np.lexsort([*(events.column(name) for name in events.features), events.weight, *keys])


def _process_names(labels: NDArray[Any] | None, role: Role, chosen: NDArray[np.bool_]) -> list[Any]:
    """Processes of a role, whose rows are `chosen`, in the order in which they come."""
    if labels is None:
        return [PROCESS_OF[role is Role.SIGNAL]] if chosen.any() else []
    return list(dict.fromkeys(labels[chosen].tolist()))


def _process_labels(
    columns: dict[str, NDArray[Any]], process: str | ArrayLike | None, signal: NDArray[np.bool_], context: str
) -> NDArray[Any] | None:
    """Process of each row, from a column of the table, which is taken out, or as given; None where y alone tells."""
    if process is None:
        return None
    if isinstance(process, str):
        if process not in columns:
            raise DataError(f"{context}no column {process}, which names the process; there are: {', '.join(columns)}")
        return _name_processes(np.asarray(columns.pop(process)), context)
    labels = require_unmasked(process, f"{context}process")
    if labels.shape != signal.shape:
        raise DataError(f"{context}process has shape {labels.shape}, y has {len(signal)} rows")
    return _name_processes(labels, context)


def _name_processes(labels: NDArray[Any], context: str) -> NDArray[Any]:
    """Processes of rows as texts: 1 and "1" are one process."""
    given = labels.tolist()
    others = [one for one in given if not isinstance(one, str)]
    for one in others:
        if not is_plain(one):
            raise DataError(f"{context}process has the value {one!a}: every row needs a name, a text or a number")
    return np.array([str(one) for one in given], dtype=object) if others else labels


def bind(source: FlatSystematic | Systematic, table: FlatTable) -> Systematic:
    """Bind a source over a table to the processes of its rows."""
    if isinstance(source, Systematic) and source.kind is Kind.NORM:  # by names of processes, which the dataset checks
        return source
    if not isinstance(source, FlatSystematic):
        raise DataError(f"systematics hold {source!r}: make them with Systematic.shape, .weight or .norm over arrays")
    sides = [side for side in (source.up, source.down) if side is not None]
    if source.kind is Kind.SHAPE and table.weighted and any(side[2] is None for side in sides):
        raise DataError(f"systematic {source.name}: weights are needed, since X has some")
    pairs = zip((source.up, source.down), source.event_id, strict=True)
    bound = [None if side is None else _bind_side(source, side, ids, table) for side, ids in pairs]
    if bound[0] is None:
        raise DataError(f"systematic {source.name}: an up variation is needed")
    return Systematic(source.name, source.kind, bound[0], bound[1])


def _bind_side(source: FlatSystematic, side: Any, event_id: Any, table: FlatTable) -> dict[str, Variation]:
    match source.kind:
        case Kind.WEIGHT:
            return _bind_weights(source.name, side, table.rows)
        case Kind.NORM:
            return _bind_norm(source.name, side[0], side[1], table.rows)
        case Kind.SHAPE:
            return _bind_shape(source.name, side, event_id, table)


def _bind_weights(name: str, weight: ArrayLike, rows: ProcessRows) -> dict[str, Variation]:
    values = check_weights(name, weight)
    n_rows = sum(len(index) for index in rows.values())
    if len(values) != n_rows:
        raise DataError(f"systematic {name}: {len(values)} weights for the {n_rows} rows of X")
    return {process: Reweighting(values[index]) for process, index in rows.items()}


def _bind_norm(name: str, size: float, where: ArrayLike | None, rows: ProcessRows) -> dict[str, Variation]:
    if where is None:
        return {process: Scaling(size) for process in rows}
    mask = require_unmasked(where, f"systematic {name}: where")
    n_rows = sum(len(index) for index in rows.values())
    if mask.dtype != np.bool_ or mask.shape != (n_rows,):
        raise DataError(
            f"systematic {name}: where has type {mask.dtype} and shape {mask.shape}: a mask of {n_rows} rows is needed"
        )
    if not mask.any():
        raise DataError(f"systematic {name}: where selects no row")
    return {process: Scaling(size, mask[index]) for process, index in rows.items() if mask[index].any()}


def _bind_shape(
    name: str, side: tuple[Any, ArrayLike, ArrayLike | None], event_id: Any, table: FlatTable
) -> dict[str, Variation]:
    context = f"systematic {name}: "
    process = table.apart.process
    if not (process is None or isinstance(process, str)):
        raise DataError(f"{context}give the process as a column of X and of this table, and its name as process=")
    if (event_id is not None) != table.numbered:
        why = "needed, since X has some" if table.numbered else "given, and X has none"
        raise DataError(f"{context}event_id is {why}")
    columns = as_columns(side[0], None if has_names(side[0]) else table.features, context)
    if event_id is not None:
        columns |= list_identifiers(event_id, len(next(iter(columns.values()), ())), context)
    wanted = (*table.features, *table.apart.columns)
    if set(columns) != set(wanted):
        absent, extra = set(wanted) - set(columns), set(columns) - set(wanted)
        raise DataError(f"{context}other columns than X: absent {sorted(absent)}, extra {sorted(extra)}")
    ordered = {name: columns[name] for name in wanted}
    split = table.split(ordered, side[1], side[2], table.apart, context)
    if unknown := sorted(set(split) - set(table.rows)):
        raise DataError(f"{context}process {unknown[0]} has no nominal rows; there are: {', '.join(table.rows)}")
    return {label: Replacement(events) for label, events in split.items()}


def _names(dataset: Dataset) -> list[str]:
    return [sample.name for sample in dataset.samples]


def _join_sample(name: str, datasets: Sequence[Dataset]) -> Sample:
    found = [dataset.sample(name) for dataset in datasets]
    roles = {sample.role for sample in found}
    if len(roles) > 1:
        raise DataError(f"sample {name} is {' and '.join(sorted(roles))} in different datasets")
    return Sample(name, found[0].role, Events.concatenate([sample.events for sample in found]))


def _join_source(name: str, datasets: Sequence[Dataset]) -> Systematic:
    having = [source for dataset in datasets for source in dataset.systematics if source.name == name]
    if len({source.two_sided for source in having}) > 1:
        raise DataError(f"systematic {name} is one-sided in one dataset and two-sided in another")
    processes = list(dict.fromkeys(process for source in having for process in source.processes))
    joined = {
        direction: {process: _join_variation(name, process, direction, datasets) for process in processes}
        for direction, _ in having[0].directions
    }
    kind = Systematic.join_kinds([source.kind for source in having])
    if kind is Kind.NORM and not all(isinstance(v, Scaling) for effect in joined.values() for v in effect.values()):
        kind = Kind.WEIGHT  # of several sizes on one process
    return Systematic(name, kind, joined["up"], joined.get("down"))


def _join_variation(name: str, process: str, direction: str, datasets: Sequence[Dataset]) -> Variation:
    """Variation of the joined events of a process; where a dataset does not have the source, they stay nominal."""
    nominal: list[Events] = []
    changes: list[Variation | None] = []
    for dataset in datasets:
        if process in _names(dataset):
            source = next((s for s in dataset.systematics if s.name == name), None)
            changes.append(dict(source.directions)[direction].get(process) if source else None)
            nominal.append(dataset.sample(process).events)
    scalings = [change for change in changes if isinstance(change, Scaling)]
    if len({change.size for change in scalings}) == 1 and all(c is None or c in scalings for c in changes):
        return _join_scalings(scalings, changes, nominal)
    rescalings = [change for change in changes if isinstance(change, Rescaling)]
    if len({change.sign for change in rescalings}) == 1 and all(c is None or c in rescalings for c in changes):
        return _join_rescalings(rescalings[0].sign, changes, nominal)
    varied = [n if change is None else change.apply(n) for n, change in zip(nominal, changes, strict=True)]
    if any(isinstance(change, Replacement) for change in changes):
        return Replacement(Events.concatenate(varied))
    return Reweighting(np.concatenate([events.weight for events in varied]))


def _join_rescalings(sign: float, changes: list[Variation | None], nominal: list[Events]) -> Rescaling:
    shifts = [
        change.shift if isinstance(change, Rescaling) else np.zeros(events.n_rows, dtype=np.float32)
        for change, events in zip(changes, nominal, strict=True)
    ]
    return Rescaling(np.concatenate(shifts), sign)


def _join_scalings(scalings: list[Scaling], changes: list[Variation | None], nominal: list[Events]) -> Scaling:
    if len(scalings) == len(changes) and all(change.where is None for change in scalings):
        return scalings[0]
    masks = []
    for change, events in zip(changes, nominal, strict=True):
        where = change.where if isinstance(change, Scaling) else None
        masks.append(np.full(events.n_rows, isinstance(change, Scaling)) if where is None else where)
    return Scaling(scalings[0].size, np.concatenate(masks))
