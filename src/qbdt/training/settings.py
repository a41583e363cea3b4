"""The settings of a training, declared once.

The YAML section `training:`, the parameters of `QBDTClassifier` and the model file derive from the fields below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from inspect import cleandoc
from textwrap import fill, indent
from typing import Any

import numpy as np

from qbdt.errors import ConfigError, is_number, require_known
from qbdt.training.feature_names import choose_names, name_directions
from qbdt.training.partner import STRENGTH, Partner
from qbdt.trees import BinningChoice

SIZES = {"paper": {"n_trees": 100, "n_leaves": 7}, "profile": {"n_trees": 1000, "n_leaves": 15}}
"""Number and size of trees, where they are not given: those of each method."""

MEASUREMENT = ("partner", "free", "strengths", "of_interest", "at")
"""Settings that say what is measured beside one strength; model files have them where they are given."""

FARTHEST = 1000.0
"""Largest value of a source at a working point, in standard deviations: weights beyond it could not be added up."""


@dataclass(frozen=True)
class Rule:
    """Description of one setting, and the values it may have."""

    description: str  # For documentation and for editors of analysis files
    choices: tuple[str, ...] = ()  # All values that it may have
    whole: bool = False  # Whether it is a whole number
    # at_least, above, at_most: bounds of a number
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that there are, as "at least", "above", "at most" with their numbers."""
        bounds = {"at least": self.at_least, "above": self.above, "at most": self.at_most}
        return {name: bound for name, bound in bounds.items() if bound is not None}

    def read(self, name: str, value: Any) -> Any:
        """Return a value, a number as a plain one of Python, which files hold; refuse what the setting cannot have."""
        if self.choices and value not in self.choices:
            raise ConfigError(f"{name}={value!r}: must be one of {', '.join(self.choices)}")
        if self.whole and (not is_number(value) or value != int(value)):
            raise ConfigError(f"{name}={value!r}: must be a whole number")
        if not self.bounds:
            return value
        plain = (int(value) if self.whole else float(value)) if is_number(value) else None
        if plain is None or not self._is_inside(plain):
            needed = " and ".join(f"{word} {bound:g}" for word, bound in self.bounds.items())
            raise ConfigError(f"{name}={value!r}: must be {needed}")
        return plain

    def _is_inside(self, value: float) -> bool:
        low = self.above is None or value > self.above
        return low and (-math.inf if self.at_least is None else self.at_least) <= value <= (self.at_most or math.inf)


def _rule(description: str, **rule: Any) -> dict[str, Rule]:
    return {"rule": Rule(description, **rule)}


def _setting(default: Any, description: str, **rule: Any) -> Any:
    return field(default=default, metadata=_rule(description, **rule))


@dataclass(frozen=True)
class Settings:
    """How to train.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> Settings().n_trees, Settings(method="paper").n_trees
    (1000, 100)
    >>> Settings(n_leaves=1)
    Traceback (most recent call last):
    ...
    qbdt.errors.ConfigError: n_leaves=1: must be at least 2
    """

    method: str = _setting(
        "profile",
        '"profile": the profiled method, which learns the best score for a fit that profiles the systematic '
        'uncertainties; "paper": the algorithm of the QBDT paper.',
        choices=("profile", "paper"),
    )
    n_trees: int = _setting(  # None becomes the method's own
        None,
        'Number of trees; by default 100 for "paper". For "profile" the most trees of each sum, by default 1000. There '
        "are ten sums: in each of five folds of the events one for the ratio of signal to background, and one for the "
        "shifts. Half of the trees of a ratio are grown in any case; held-out events choose where each sum stops and "
        "how many of its trees count.",
        whole=True,
        at_least=1,
        at_most=1_000_000,
    )
    n_leaves: int = _setting(None, 'Most leaves of a tree; by default 15, and 7 for "paper".', whole=True, at_least=2)
    max_bins: int = _setting(  # a bin number fits a byte
        256, "Most bins of a feature, one of them for missing values.", whole=True, at_least=3, at_most=256
    )
    binning: BinningChoice = field(
        default="quantile",
        metadata=_rule(
            '"quantile" with at most `max_bins` bins, or for each feature its equal bins (n_bins, low, high).'
        ),
    )
    growth: str = _setting(
        "leaves",
        '"leaves": best first up to `n_leaves`; "published": the published program\'s node counter.',
        choices=("leaves", "published"),
    )
    mc_stat: bool = _setting(
        False,
        'Whether the statistical uncertainty of the simulated background is added to σ_b. "profile" always counts it.',
    )
    learning_rate: float = _setting(
        1.0, 'Factor on every tree weight; for "profile" on every step, a fifth of a tree\'s best output.', above=0
    )
    max_depth: int | None = _setting(
        None, "Most cuts above a leaf; by default no limit.", whole=True, at_least=1, at_most=1_000_000
    )
    min_leaf_entries: float = _setting(
        0.0,
        "Least effective number (Σw)²/Σw² of simulated background events in a leaf, with the weights before boosting; "
        'for "profile" of events of both sides in a leaf of the first sum, and of all simulated ones in the second.',
        at_least=0,
    )
    negative_weights: str = _setting(
        "smooth",
        'Of processes with negative weights: "smooth" trains on positive weights of the same expectation, |w| Σw/Σ|w| '
        'over large regions, "raw" on the weights as they are. Templates and fits always have those.',
        choices=("smooth", "raw"),
    )
    row_fraction: float = _setting(1.0, "Share of the rows drawn for each tree.", above=0, at_most=1)
    feature_fraction: float = _setting(1.0, "Share of the features drawn for each tree.", above=0, at_most=1)
    random_state: int = _setting(  # the draws mix 64-bit integers with a sign
        0, "Seed of these draws; 0 by default.", whole=True, at_least=0, at_most=2**63 - 1
    )
    categorical_features: Sequence[str] = _setting(
        (), "Features whose values are categories: whole numbers without an order."
    )
    monotonic_constraints: Mapping[str, int] = field(
        default_factory=dict,
        metadata=_rule(
            "For some features, by name, 1 where the score must not fall when the feature rises, -1 where it must not "
            "rise."
        ),
    )
    partner: Partner | None = field(
        default=None,
        metadata=_rule(
            'For "profile": what other regions and channels know of the same parameters, made by '
            "`qbdt.inference.partners.read_partner`; the score is then best for the combined fit."
        ),
    )
    free: Sequence[str] = _setting(
        (),
        'For "profile": background processes whose normalisation is free, as the fit will have them: the parameter of '
        "each is called norm_PROCESS.",
    )
    strengths: Mapping[str, Sequence[str]] = field(
        default_factory=dict,
        metadata=_rule(
            'For "profile": signal strengths by name, and the signal processes that each multiplies; one, "mu", for '
            "all signals by default. There is a score for each."
        ),
    )
    of_interest: Sequence[str] = _setting(
        (),
        'For "profile": parameters of interest, strengths or sources, such as a mass that is given as a source; all '
        "strengths by default. There is a score for each; all other parameters are profiled.",
    )
    at: Mapping[str, float] = field(
        default_factory=dict,
        metadata=_rule(
            'For "profile": the working point, values of sources in standard deviations by name, such as those after a '
            "fit; the score is the best one there. 0 for all by default."
        ),
    )

    def __post_init__(self) -> None:
        rules = self.rules()
        for name in ("method", "growth"):
            rules[name].read(name, getattr(self, name))
        if self.method == "profile" and self.growth != "leaves":
            raise ConfigError(f"growth={self.growth!r} is a rule of the paper's program: method='profile' has 'leaves'")
        for name, size in SIZES[self.method].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, size)
        for name, rule in rules.items():
            if name != "max_depth" or self.max_depth is not None:
                object.__setattr__(self, name, rule.read(name, getattr(self, name)))
        if not isinstance(self.mc_stat, bool | np.bool_):
            raise ConfigError(f"mc_stat={self.mc_stat!r}: must be True or False")
        object.__setattr__(self, "mc_stat", bool(self.mc_stat))
        object.__setattr__(self, "binning", _plain_bins(self.binning))
        object.__setattr__(
            self, "categorical_features", _sort_names(self.categorical_features, "categorical_features", "features")
        )
        object.__setattr__(self, "monotonic_constraints", _sort_directions(self.monotonic_constraints))
        both = [name for name in self.categorical_features if name in self.monotonic_constraints]
        if both:
            raise ConfigError(f"feature {both[0]} is categorical: its values have no order for a monotonic constraint")
        object.__setattr__(self, "partner", _read_partner(self.partner))
        object.__setattr__(self, "free", _sort_names(self.free, "free", "background processes"))
        names = _sort_names(self.of_interest, "of_interest", "strengths or sources")
        object.__setattr__(self, "of_interest", names)
        object.__setattr__(self, "strengths", _read_strengths(self.strengths))
        object.__setattr__(self, "at", _read_working_point(self.at))
        if self.method == "paper" and (given := [name for name in MEASUREMENT if getattr(self, name)]):
            raise ConfigError(f"{given[0]}: a setting of method='profile'; method='paper' knows no fit")

    @classmethod
    def for_features(cls, features: Sequence[str], **values: Any) -> Settings:
        """Settings whose features are given by name, by position, or by a mask or list over all features."""
        for name, resolve in (("categorical_features", choose_names), ("monotonic_constraints", name_directions)):
            values[name] = resolve(values.get(name), features, name)
        return cls(**values)

    def require_features(self, features: Sequence[str]) -> None:
        """Refuse settings for features that are not there."""
        asked = {
            "categorical_features": self.categorical_features,
            "monotonic_constraints": tuple(self.monotonic_constraints),
        }
        for setting, names in asked.items():
            require_known(setting, names, features, "feature")

    def require_parameters(self, signals: Sequence[str], sources: Sequence[str]) -> None:
        """Refuse strengths and parameters of interest that these signals and sources do not have."""
        assigned = [process for processes in self.strengths.values() for process in processes]
        require_known("strengths", assigned, signals, "signal process")
        for process in signals if self.strengths else ():
            if assigned.count(process) != 1:
                times = "no strength" if process not in assigned else "more than one strength"
                raise ConfigError(f"strengths: signal process {process} has {times}; each needs one")
        if both := [name for name in self.strengths if name in sources]:
            raise ConfigError(f"strengths: {both[0]} is a source too")
        require_known(
            "of_interest", self.of_interest, (*(self.strengths or (STRENGTH,)), *sources), "strength or source"
        )

    @classmethod
    def rules(cls) -> dict[str, Rule]:
        """Rule of every setting, by name."""
        return {one.name: one.metadata["rule"] for one in fields(cls)}

    @classmethod
    def document(cls, text: str, names: Iterable[str] = (), **others: str) -> str:
        """Write the parameters of a docstring, by default all settings; `others` describes those that are none.

        From Python 3.13 on docstrings have lost their indentation already.
        """
        known = {name: rule.description for name, rule in cls.rules().items()} | others
        entries = [f"{name}\n{indent(fill(known[name], 108), ' ' * 4)}" for name in names or cls.rules()]
        return cleandoc(text).replace("{parameters}", "\n".join(entries))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for the model file; of the settings of a measurement those that are given."""
        plain = asdict(self)
        return {name: value for name, value in plain.items() if name not in MEASUREMENT or value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Make settings from plain values; unknown names are refused."""
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ConfigError(f"unknown setting {', '.join(sorted(unknown))}")
        return cls(**values)


def _plain_bins(binning: Any) -> Any:
    """Return bins as lists of plain numbers, so that they compare equal after a model file."""
    if isinstance(binning, str) and binning == "quantile":
        return str(binning)
    try:
        if isinstance(binning, Mapping):
            return {str(name): _plain_numbers(bins) for name, bins in binning.items()}
        if not isinstance(binning, str):
            return [_plain_numbers(bins) for bins in binning]
    except TypeError:
        pass
    raise ConfigError(f"binning={binning!r}: must be 'quantile' or one (n_bins, low, high) per feature")


def _plain_numbers(values: Iterable[Any]) -> list[Any]:
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _sort_names(values: Any, setting: str, what: str) -> tuple[str, ...]:
    """Return names in the order of the alphabet, so that settings that mean the same are equal."""
    if isinstance(values, str) or not isinstance(values, Iterable) or not all(isinstance(n, str) for n in values):
        raise ConfigError(f"{setting}={values!r}: must be names of {what}")
    return tuple(sorted(set(values)))


def _read_strengths(given: Any) -> dict[str, tuple[str, ...]]:
    """Return the signal processes of each strength as names; one process may be given as a text."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"strengths={given!r}: must say for each strength which signal processes it multiplies")
    found = {}
    for name, one in given.items():
        processes = (one,) if isinstance(one, str) else tuple(one) if isinstance(one, Iterable) else ()
        if not processes or not all(isinstance(process, str) for process in processes):
            raise ConfigError(f"strengths: {name}: {one!r}: names of signal processes are needed")
        found[str(name)] = processes
    return found


def _read_working_point(given: Any) -> dict[str, float]:
    """Return values of sources, in the order of the alphabet, without those that stay at 0."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"at={given!r}: must say for some sources which value they have")
    for name, value in given.items():
        if not is_number(value):
            raise ConfigError(f"at: {name}: {value!r}: must be a number of standard deviations")
        if abs(value) > FARTHEST:
            raise ConfigError(f"at: {name}: {value:g}: no fit is farther than {FARTHEST:g} standard deviations away")
    return {str(name): float(given[name]) for name in sorted(given) if given[name] != 0}


def _read_partner(given: Any) -> Partner | None:
    if given is None or isinstance(given, Partner):
        return given
    if not isinstance(given, Mapping):
        raise ConfigError(f"partner={given!r}: a Partner is needed (qbdt.inference.partners.read_partner)")
    return Partner.from_dict(given)


def _sort_directions(constraints: Any) -> dict[str, int]:
    """Return the constraints that ask for something, in the order of the alphabet."""
    if not isinstance(constraints, Mapping):
        raise ConfigError(f"monotonic_constraints={constraints!r}: must say +1 or -1 for names of features")
    for name, direction in constraints.items():
        if not is_number(direction) or direction not in (-1, 0, 1):
            raise ConfigError(f"monotonic_constraints: {name}: {direction!r}: must be 1, -1, or 0 for none")
    return {str(name): int(constraints[name]) for name in sorted(constraints) if constraints[name] != 0}


if Settings.__doc__:  # absent under python -OO
    Settings.__doc__ = Settings.document(Settings.__doc__)
