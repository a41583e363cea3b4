"""Making a `Dataset` of other things: of one labelled table, or of several datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.data.columns import as_columns, require_unmasked
from qbdt.data.dataset import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.systematic import FlatSystematic, Kind, Systematic, check_weights
from qbdt.data.variations import Replacement, Reweighting, Scaling, Variation
from qbdt.errors import DataError

__all__ = ["concatenate", "from_arrays", "signal_mask"]

PROCESS_OF = {True: "signal", False: "background"}


def from_arrays(
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    systematics: Sequence[FlatSystematic],
    feature_names: Sequence[str] | None,
) -> Dataset:
    """Split one labelled table into signal and background; see `Dataset.from_arrays`."""
    split = _split_by_label(X, y, sample_weight, feature_names, "")
    if len(split) < 2:
        missing = next(process for process in PROCESS_OF.values() if process not in split)
        raise DataError(f"y has one class only: no {missing} rows")
    features = split["signal"][0].features
    rows = {process: index for process, (_, index) in split.items()}
    samples = [Sample(process, Role(process), split[process][0]) for process in PROCESS_OF.values()]
    if isinstance(systematics, Systematic | FlatSystematic):
        raise DataError(f"systematics={systematics!r}: a list of sources is needed")
    bound = [_bind(source, rows, features, sample_weight is not None) for source in systematics]
    return Dataset(samples, bound).require_usable()


def signal_mask(y: ArrayLike, context: str = "") -> NDArray[np.bool_]:
    """Signal mask from labels 1 and 0 (or −1)."""
    values = require_unmasked(y, f"{context}y")
    if values.ndim != 1:
        raise DataError(f"{context}y has shape {values.shape}: one label per row is needed")
    if values.dtype.kind not in "biuf":
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


def _split_by_label(
    X: Any, y: ArrayLike, weight: ArrayLike | None, names: Sequence[str] | None, context: str
) -> dict[str, tuple[Events, NDArray[np.integer[Any]]]]:
    columns = as_columns(X, names)
    signal = signal_mask(y, context)
    n_rows = len(next(iter(columns.values()))) if columns else 0
    if n_rows != len(signal):
        raise DataError(f"{context}X has {n_rows} rows, y has {len(signal)}")
    weights = np.ones(n_rows) if weight is None else require_unmasked(weight, f"{context}weight")
    if weights.shape != (n_rows,):
        raise DataError(f"{context}weights have shape {weights.shape}, X has {n_rows} rows")
    events = Events(columns, weights)
    masks = {PROCESS_OF[True]: signal, PROCESS_OF[False]: ~signal}
    return {p: (events[mask], np.flatnonzero(mask).astype(np.int32)) for p, mask in masks.items() if mask.any()}


def _bind(
    source: FlatSystematic, rows: dict[str, NDArray[np.integer[Any]]], features: Sequence[str], weighted: bool
) -> Systematic:
    if not isinstance(source, FlatSystematic):
        raise DataError(f"systematics hold {source!r}: make them with Systematic.shape, .weight or .norm over arrays")
    sides = [side for side in (source.up, source.down) if side is not None]
    if source.kind is Kind.SHAPE and weighted and any(side[2] is None for side in sides):
        raise DataError(f"systematic {source.name}: weights are needed, since X has some")
    bound = [None if side is None else _bind_side(source, side, rows, features) for side in (source.up, source.down)]
    if bound[0] is None:
        raise DataError(f"systematic {source.name}: an up variation is needed")
    return Systematic(source.name, source.kind, bound[0], bound[1])


def _bind_side(
    source: FlatSystematic, side: Any, rows: dict[str, NDArray[np.integer[Any]]], features: Sequence[str]
) -> dict[str, Variation]:
    match source.kind:
        case Kind.WEIGHT:
            return _bind_weights(source.name, side, rows)
        case Kind.NORM:
            return _bind_norm(source.name, side[0], side[1], rows)
        case Kind.SHAPE:
            return _bind_shape(source.name, side, features)


def _bind_weights(name: str, weight: ArrayLike, rows: dict[str, NDArray[np.integer[Any]]]) -> dict[str, Variation]:
    values = check_weights(name, weight)
    n_rows = sum(len(index) for index in rows.values())
    if len(values) != n_rows:
        raise DataError(f"systematic {name}: {len(values)} weights for the {n_rows} rows of X")
    return {process: Reweighting(values[index]) for process, index in rows.items()}


def _bind_norm(
    name: str, size: float, where: ArrayLike | None, rows: dict[str, NDArray[np.integer[Any]]]
) -> dict[str, Variation]:
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
    name: str, table: tuple[Any, ArrayLike, ArrayLike | None], features: Sequence[str]
) -> dict[str, Variation]:
    context = f"systematic {name}: "
    columns = as_columns(
        table[0], None if hasattr(table[0], "keys") or hasattr(table[0], "columns") else features, context
    )
    if set(columns) != set(features):
        absent, extra = set(features) - set(columns), set(columns) - set(features)
        raise DataError(f"{context}other features than X: absent {sorted(absent)}, extra {sorted(extra)}")
    ordered = {feature: columns[feature] for feature in features}
    split = _split_by_label(ordered, table[1], table[2], None, context)
    return {process: Replacement(events) for process, (events, _) in split.items()}


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
    if len({(source.kind, source.two_sided) for source in having}) > 1:
        raise DataError(f"systematic {name} is of different kinds, or one- and two-sided, in different datasets")
    processes = list(dict.fromkeys(process for source in having for process in source.processes))
    joined = {
        direction: {process: _join_variation(name, process, direction, datasets) for process in processes}
        for direction, _ in having[0].directions
    }
    return Systematic(name, having[0].kind, joined["up"], joined.get("down"))


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
    if scalings:
        return _join_scalings(name, scalings, changes, nominal)
    varied = [n if change is None else change.apply(n) for n, change in zip(nominal, changes, strict=True)]
    if any(isinstance(change, Replacement) for change in changes):
        return Replacement(Events.concatenate(varied))
    return Reweighting(np.concatenate([events.weight for events in varied]))


def _join_scalings(
    name: str, scalings: list[Scaling], changes: list[Variation | None], nominal: list[Events]
) -> Scaling:
    if len({change.size for change in scalings}) > 1:
        raise DataError(f"systematic {name} has different sizes in different datasets")
    if len(scalings) == len(changes) and all(change.where is None for change in scalings):
        return scalings[0]
    masks = []
    for change, events in zip(changes, nominal, strict=True):
        where = change.where if isinstance(change, Scaling) else None
        masks.append(np.full(events.n_rows, isinstance(change, Scaling)) if where is None else where)
    return Scaling(scalings[0].size, np.concatenate(masks))
