"""Names that users give: which of them are given more than once, and features that are named in other ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from qbdt.errors import ConfigError

__all__ = ["chosen_features", "directions_by_name", "repeated"]


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted.

    Examples
    --------
    >>> repeated(["b", "a", "b", "c", "a"])
    ['a', 'b']
    """
    return sorted(name for name, times in Counter(names).items() if times > 1)


def chosen_features(choice: Any, features: Sequence[str], what: str) -> list[str]:
    """Return names of features that are given by name, by position, or by a mask over all.

    Examples
    --------
    >>> chosen_features([False, True], ["pt", "year"], "categorical_features"), chosen_features([0], ["pt"], "")
    (['year'], ['pt'])
    """
    if choice is None:
        return []
    given = np.asarray(choice)
    if given.ndim != 1:
        raise ConfigError(f"{what}={choice!r}: a list of names or positions of features, or a mask, is needed")
    if given.dtype == np.bool_:
        if len(given) != len(features):
            raise ConfigError(f"{what}: a mask of {len(given)} entries for {len(features)} features")
        return [name for name, chosen in zip(features, given, strict=True) if chosen]
    return [_feature(one, features, what) for one in given.tolist()]


def directions_by_name(constraints: Any, features: Sequence[str], what: str) -> dict[str, Any]:
    """Return what is said of features by name or position, or in a list over all, by name.

    Examples
    --------
    >>> directions_by_name([1, 0], ["pt", "eta"], "monotonic_constraints"), directions_by_name({1: -1}, ["pt", "m"], "")
    ({'pt': 1, 'eta': 0}, {'m': -1})
    """
    if constraints is None:
        return {}
    if isinstance(constraints, Mapping):
        return {_feature(one, features, what): direction for one, direction in constraints.items()}
    given = np.asarray(constraints)
    if given.shape != (len(features),):
        raise ConfigError(f"{what} has shape {given.shape}: one number for each of {len(features)} features is needed")
    return dict(zip(features, given.tolist(), strict=True))


def _feature(one: Any, features: Sequence[str], what: str) -> str:
    if isinstance(one, str):
        return one
    if not isinstance(one, int | np.integer) or isinstance(one, bool):
        raise ConfigError(f"{what}: {one!r}: must be a name or a position")
    if not 0 <= one < len(features):
        raise ConfigError(f"{what}: position {one}: there are {len(features)} features, counted from 0")
    return features[int(one)]
