"""The plan of a comparison: events of an analysis, contestants with its settings, divisions into folds, and the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from qbdt.analysis import Analysis, load, training_settings
from qbdt.data import Dataset, FoldRule, HashFolds, SplitFolds
from qbdt.errors import ConfigError
from qbdt.inference import FitSettings
from qbdt.studies.comparison.contestants import CONTESTANTS, Contestant, get_contestant
from qbdt.studies.comparison.nested_training import LEAST_INNER, Division
from qbdt.trees.device import open_device

STANDARD = ("qbdt profile", "QBDT (paper)", "scikit-learn HGB", "XGBoost", "LightGBM")
"""Contestants that take part by default, those that are installed."""

OWN_BINS = ("uniform", "edges")
"""Rules of bins that mean something for the scores of one method only."""


@dataclass(frozen=True)
class Plan:
    """A comparison, as it is sent to processes."""

    # analysis, folder: the analysis, and where its paths start
    analysis: Analysis
    folder: Path
    contestants: tuple[str, ...] = ()  # Names, or import paths of scikit-learn classifiers
    budget: int = 4  # Settings that tuning tries for each contestant that has as many
    repeat: int = 1  # Divisions into folds: that of the analysis, then random ones
    # "cuda" to train and score our own methods, whose results are the same there, and XGBoost on a GPU
    device: str | None = None

    def __post_init__(self) -> None:
        self.analysis.require_one_strength("a comparison")
        open_device(self.device)  # says what is missing before events are read
        for name, value in (("budget", self.budget), ("repeat", self.repeat)):
            if value < 1:
                raise ConfigError(f"{name}={value}: must be at least 1")
        if not self.contestants:
            installed = {contestant.name for contestant in CONTESTANTS if contestant.available}
            object.__setattr__(self, "contestants", tuple(name for name in STANDARD if name in installed))
        for name in self.contestants:
            get_contestant(name)

    def with_others(self, names: Sequence[str]) -> Plan:
        """Return the plan with more contestants."""
        return replace(self, contestants=tuple(dict.fromkeys((*self.contestants, *names))))

    @property
    def fit(self) -> FitSettings:
        """Settings of the fits: those of the analysis, with a rule of bins that is fair to scores of any scale."""
        given = self.analysis.fit
        binning = "optimised" if given.binning in OWN_BINS else given.binning
        return given.model_copy(update={"transform": "none", "binning": binning, "edges": None})

    def contestant(self, name: str) -> Contestant:
        """Return a contestant; one of ours has the settings that the analysis gives for its method."""
        found = get_contestant(name).on_device(self.device)
        if not found.ours:
            return found
        settings = training_settings(self.analysis)
        own: dict[str, Any] = {"categorical_features": list(settings.categorical_features)}
        if found.method == settings.method:
            plain = settings.to_dict()
            own = {key: value for key, value in plain.items() if key not in ("method", "random_state")}
        return replace(found, known=tuple({**own, **given} for given in found.known))

    @property
    def sources(self) -> list[str] | None:
        """Sources that our methods are told of; None for all."""
        return self.analysis.training.systematics

    def to_dict(self) -> dict[str, Any]:
        """Settings that results depend on; more contestants and divisions may be added to earlier ones."""
        return {"analysis": self.analysis.model_dump(mode="json"), "budget": self.budget}


class PlannedEvents:
    """The simulated events of a plan, with the divisions into folds: no method is chosen by recorded data."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.data: Dataset = load(plan.analysis, plan.folder).simulated()
        self._divisions: dict[int, tuple[Division, dict[str, Any]]] = {}
        rule = self._rule
        if isinstance(rule, SplitFolds) and plan.repeat > 1:
            raise ConfigError(f"repeat={plan.repeat}: folds by a column that holds them cannot be divided anew")
        if isinstance(rule, SplitFolds) and rule.k <= LEAST_INNER:
            raise ConfigError(
                f"folds: k={rule.k}: settings are tuned inside of training folds, so at least {LEAST_INNER + 1} folds "
                "by a column that holds them are needed; or divide by an event number (modulo, hash)"
            )

    @cached_property
    def _rule(self) -> FoldRule:
        if self.data.folds is None:
            raise ConfigError("folds: needed to compare, so that every event is scored by a model that did not see it")
        return self.data.folds

    def division(self, number: int) -> tuple[Division, dict[str, Any]]:
        """Division of some number with its key: that of the analysis for 0, and random ones."""
        if number not in self._divisions:
            rule = self._rule if number == 0 else HashFolds(self._rule.k, self._rule.columns, number)
            division = Division.of_rule(self.data, rule, number + 1)
            key = division.make_key()
            if self.plan.sources is not None:
                key["sources in training"] = list(self.plan.sources)
            self._divisions[number] = (division, key)
        return self._divisions[number]

    def contestant(self, name: str) -> Contestant:
        """Return a contestant, told of the sources that the analysis trains with."""
        found = self.plan.contestant(name)
        told = self.plan.sources
        return found if told is None or not found.ours else found.restrict_to(told)
