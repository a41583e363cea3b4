"""Which event a row is: one number from its identifiers, the same for shifted copies; parts of samples by it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qbdt.data.events import Events
from qbdt.data.folds import hash_whole, whole_numbers

__all__ = ["Keys", "coherent_part", "event_keys", "row_keys", "tells_events_apart"]

Keys = NDArray[np.uint64]

DISTINCT = 0.5
"""Smallest share of different keys with which identifiers count as telling events apart."""


def event_keys(events: Events, salt: int = 0) -> Keys:
    """Hash of all identifiers of each row; of the row number where there are none.

    A shifted copy of an event has its key. Another salt gives another, unrelated order of the same events.

    Examples
    --------
    >>> nominal = Events({"x": [0.1, 0.2]}, [1, 1], ids={"event": [7, 8]})
    >>> shifted = Events({"x": [0.3, 0.2]}, [1, 1], ids={"event": [8, 9]})
    >>> bool(event_keys(nominal)[1] == event_keys(shifted)[0])
    True
    """
    if not events.id_names:
        return row_keys(events.n_rows, salt)
    return hash_whole([whole_numbers(name, events.identifier(name)) for name in events.id_names], _mixed(salt))


def row_keys(n_rows: int, salt: int = 0) -> Keys:
    """Hash of row numbers, for rows that no identifier tells apart."""
    return hash_whole([np.arange(n_rows)], _mixed(salt))


def tells_events_apart(keys: Keys) -> bool:
    """Whether identifiers differ between events, and not only between folds or runs."""
    return np.unique(keys).size >= DISTINCT * keys.size


def coherent_part(events: Events, n_rows: int, of: int, salt: int = 0) -> Events:
    """Return about `n_rows` of every `of` rows: the same events of a nominal sample and of its shifted copies.

    Examples
    --------
    >>> events = Events({"x": np.arange(1000.0)}, np.ones(1000), ids={"event": np.arange(1000)})
    >>> 60 < coherent_part(events, 100, of=1000).n_rows < 140
    True
    """
    if n_rows >= of:
        return events
    keys = event_keys(events, salt)
    if not tells_events_apart(keys):
        keys = row_keys(events.n_rows, salt)
    return events[keys < np.uint64(2**64 * (n_rows / of))]


def _mixed(salt: int) -> int:
    """Salts that differ in few bits only would give orders in which neighbouring events change places."""
    return int(hash_whole([np.array([salt % 2**63])])[0])
