"""The search space of each method: settings and their ranges. This is the one place to change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qbdt.errors import ConfigError


@dataclass(frozen=True)
class Dimension:
    """A setting that is searched."""

    name: str  # Name of the setting, as in `Settings`
    # low, high: range of a number; whole where both are whole
    low: float = 0.0
    high: float = 0.0
    log: bool = False  # Whether to search in the logarithm
    choices: tuple[Any, ...] = ()  # Instead of a range: the values

    def suggest(self, trial: Any) -> Any:
        """Ask an Optuna trial for a value."""
        if self.choices:
            return trial.suggest_categorical(self.name, list(self.choices))
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(self.name, self.low, self.high, log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, log=self.log)


SPACES: Mapping[str, tuple[Dimension, ...]] = {
    "paper": (
        Dimension("n_trees", 20, 300, log=True),
        Dimension("n_leaves", 3, 24, log=True),
        Dimension("learning_rate", 0.1, 1.0, log=True),
        Dimension("min_leaf_entries", 1.0, 300.0, log=True),
        Dimension("row_fraction", 0.4, 1.0),
        Dimension("feature_fraction", 0.4, 1.0),
        Dimension("mc_stat", choices=(False, True)),
    ),
    "profile": (
        Dimension("n_trees", 100, 1000, log=True),
        Dimension("n_leaves", 4, 32, log=True),
        Dimension("learning_rate", 0.3, 2.0, log=True),
        Dimension("min_leaf_entries", 5.0, 300.0, log=True),
        Dimension("row_fraction", 0.4, 1.0),
        Dimension("feature_fraction", 0.4, 1.0),
    ),
}
"""Searched settings of each method."""


def space_of(method: str) -> tuple[Dimension, ...]:
    """Return the searched settings of a method."""
    if method not in SPACES:
        raise ConfigError(f"training.method: {method}: no settings to search; there are: {', '.join(SPACES)}")
    return SPACES[method]
