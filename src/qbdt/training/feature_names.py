"""Features that settings name: by name, by position, or by a mask or list over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbdt.errors import ConfigError


def choose_names(choice: Any, features: Sequence[str], what: str) -> list[str]:
    """Names of features that are given by name, by position, or by a mask over all.

    Examples
    --------
    >>> choose_names([False, True], ["pt", "year"], "categorical_features"), choose_names([0], ["pt"], "")
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
    return [_name_of(one, features, what) for one in given.tolist()]


def name_directions(constraints: Any, features: Sequence[str], what: str) -> dict[str, Any]:
    """Values by name that are given by name, by position, or in a list over all features.

    Examples
    --------
    >>> name_directions([1, 0], ["pt", "eta"], ""), name_directions({1: -1}, ["pt", "m"], "")
    ({'pt': 1, 'eta': 0}, {'m': -1})
    """
    if constraints is None:
        return {}
    if isinstance(constraints, Mapping):
        return {_name_of(one, features, what): direction for one, direction in constraints.items()}
    given = np.asarray(constraints)
    if given.shape != (len(features),):
        raise ConfigError(f"{what} has shape {given.shape}: one number for each of {len(features)} features is needed")
    return dict(zip(features, given.tolist(), strict=True))


def _name_of(one: Any, features: Sequence[str], what: str) -> str:
    if isinstance(one, str):
        return one
    if not isinstance(one, int | np.integer) or isinstance(one, bool):
        raise ConfigError(f"{what}: {one!r}: must be a name or a position")
    if not 0 <= one < len(features):
        raise ConfigError(f"{what}: position {one}: there are {len(features)} features, counted from 0")
    return features[int(one)]
