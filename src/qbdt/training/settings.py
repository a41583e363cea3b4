"""All settings of a training, checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from numbers import Real
from typing import Any

from qbdt.errors import ConfigError, hint_at
from qbdt.trees import BinningChoice

__all__ = ["GROWTHS", "METHODS", "SIZES", "Settings"]

METHODS = ("paper", "profile")
SIZES = {"paper": {"n_trees": 100, "n_leaves": 7}, "profile": {"n_trees": 500, "n_leaves": 15}}
"""Number and size of trees, where they are not given: those of each method."""
GROWTHS = ("leaves", "published")


@dataclass(frozen=True)
class Settings:
    """How to train.

    Parameters
    ----------
    method
        "paper": the algorithm of the QBDT paper; "profile": the profiled method, which learns the best score for a fit
        that profiles the systematic uncertainties.
    n_trees
        Number of trees; None for the method's own: 100, and 500 for "profile". There it is the most of
        each sum, of which there are ten: five parts of the events, and for each the ratio of signal to background and
        the shifts; both stop where held-out events say so.
    n_leaves
        Most leaves of a tree; None for the method's own: 7, and 15 for "profile".
    max_bins
        Most bins of a feature, one of them for missing values.
    binning
        "quantile" with at most `max_bins` bins, or one (n_bins, low, high) per feature.
    growth
        "leaves": best first up to `n_leaves`; "published": the published program's node counter.
    mc_stat
        Whether the MC statistical variance of the background is added to σ_b². "profile" always counts it.
    learning_rate
        Multiplies every tree weight; for "profile" every step, which is a fifth of a tree's best output.
    max_depth
        Most cuts above a leaf; None for no limit.
    min_leaf_entries
        Least effective number (Σw)²/Σw² of simulated background events in a leaf, with the weights as given.
    row_fraction, feature_fraction
        Share of rows, and of features, drawn anew for every tree.
    random_state
        Seed of these draws.
    categorical_features
        Names of the features whose values are names of categories: whole numbers without an order.
    monotonic_constraints
        For some features, by name, +1 where the score must not fall when the feature rises, −1 for the opposite.

    Examples
    --------
    >>> Settings().n_trees, Settings(method="profile").n_trees
    (100, 500)
    >>> Settings(n_leaves=1)
    Traceback (most recent call last):
    ...
    qbdt.errors.ConfigError: n_leaves=1: must be at least 2
    """

    method: str = "paper"
    n_trees: int = None  # type: ignore[assignment]  # always a number once made
    n_leaves: int = None  # type: ignore[assignment]
    max_bins: int = 256
    binning: BinningChoice = "quantile"
    growth: str = "leaves"
    mc_stat: bool = False
    learning_rate: float = 1.0
    max_depth: int | None = None
    min_leaf_entries: float = 0.0
    row_fraction: float = 1.0
    feature_fraction: float = 1.0
    random_state: int = 0
    categorical_features: Sequence[str] = ()
    monotonic_constraints: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"method={self.method!r}: must be one of {', '.join(METHODS)}")
        if self.growth not in GROWTHS:
            raise ConfigError(f"growth={self.growth!r}: must be one of {', '.join(GROWTHS)}")
        if self.method == "profile" and self.growth != "leaves":
            raise ConfigError(f"growth={self.growth!r} is a rule of the paper's program: method='profile' has 'leaves'")
        for name, size in SIZES[self.method].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, size)
        for name, least in (("n_trees", 1), ("n_leaves", 2), ("max_bins", 3), ("random_state", 0)):
            _require_whole(name, getattr(self, name), least)
        if self.max_depth is not None:
            _require_whole("max_depth", self.max_depth, 1)
        if self.max_bins > 256:
            raise ConfigError(f"max_bins={self.max_bins}: must be at most 256, so that a bin number fits a byte")
        for name, most in (("row_fraction", 1.0), ("feature_fraction", 1.0), ("learning_rate", math.inf)):
            value = getattr(self, name)
            if not _is_number(value) or not 0 < value <= most:
                raise ConfigError(f"{name}={value!r}: must be above 0" + f" and at most {most:g}" * (most < math.inf))
        if not _is_number(self.min_leaf_entries) or not 0 <= self.min_leaf_entries < math.inf:
            raise ConfigError(f"min_leaf_entries={self.min_leaf_entries!r}: must be at least 0")
        if not isinstance(self.mc_stat, bool):
            raise ConfigError(f"mc_stat={self.mc_stat!r}: must be True or False")
        object.__setattr__(self, "binning", _plain(self.binning))
        object.__setattr__(self, "categorical_features", _names(self.categorical_features))
        object.__setattr__(self, "monotonic_constraints", _directions(self.monotonic_constraints))
        both = [name for name in self.categorical_features if name in self.monotonic_constraints]
        if both:
            raise ConfigError(f"feature {both[0]} is categorical: its values have no order for a monotonic constraint")

    def require_features(self, features: Sequence[str]) -> None:
        """Refuse settings for features that are not there."""
        asked = {
            "categorical_features": self.categorical_features,
            "monotonic_constraints": tuple(self.monotonic_constraints),
        }
        for setting, names in asked.items():
            for name in names:
                if name not in features:
                    raise ConfigError(f"{setting}: no feature {name}; {hint_at(name, features)}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for the model file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Make settings from plain values; unknown names are refused."""
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ConfigError(f"unknown setting {', '.join(sorted(unknown))}")
        return cls(**values)


def _plain(binning: Any) -> Any:
    """Return bins as lists of plain numbers, so that they compare equal after a model file."""
    if isinstance(binning, str):
        return binning
    if isinstance(binning, Mapping):
        return {str(name): list(bins) for name, bins in binning.items()}
    try:
        return [list(bins) for bins in binning]
    except TypeError:
        raise ConfigError(f"binning={binning!r}: must be 'quantile' or one (n_bins, low, high) per feature") from None


def _names(values: Any) -> tuple[str, ...]:
    """Return names in the order of the alphabet, so that settings that mean the same are equal."""
    if isinstance(values, str) or not all(isinstance(name, str) for name in values):
        raise ConfigError(f"categorical_features={values!r}: must be names of features")
    return tuple(sorted(set(values)))


def _directions(constraints: Any) -> dict[str, int]:
    """Return the constraints that ask for something, in the order of the alphabet."""
    if not isinstance(constraints, Mapping):
        raise ConfigError(f"monotonic_constraints={constraints!r}: must say +1 or -1 for names of features")
    for name, direction in constraints.items():
        if not _is_number(direction) or direction not in (-1, 0, 1):
            raise ConfigError(f"monotonic_constraints: {name}: {direction!r}: must be 1, -1, or 0 for none")
    return {str(name): int(constraints[name]) for name in sorted(constraints) if constraints[name] != 0}


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _require_whole(name: str, value: Any, least: int) -> None:
    if not _is_number(value) or value != int(value):
        raise ConfigError(f"{name}={value!r}: must be a whole number")
    if value < least:
        raise ConfigError(f"{name}={value}: must be at least {least}")
