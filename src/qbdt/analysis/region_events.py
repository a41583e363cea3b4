"""`RegionEvents`: the events of all regions of an analysis, read once.

Beside the features, each set of events has a column for each region that says which of its rows are in it, and one for
each observable that is an expression. Shifted copies of an event have columns of their own, so that they migrate
between regions as a source tells them to. Without regions all events are in one, which histograms the score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.analysis.schema import Region
from qbdt.data import Dataset, Events, Expression, Role
from qbdt.errors import ConfigError, DataError
from qbdt.files import choose_words

ALWAYS = Expression("1 > 0")
"""Holds for every event: the condition of a region without a selection."""


def _condition(name: str) -> str:
    """Column that says which events are in a region; its space keeps it apart from all columns of files."""
    return f"region {name}"


def _observable(name: str) -> str:
    return f"observable {name}"


def read_conditions(regions: Mapping[str, Region]) -> dict[str, Expression]:
    """Column and condition of each region."""
    return {
        _condition(name): ALWAYS if region.selection is None else Expression(region.selection)
        for name, region in regions.items()
    }


def read_observables(regions: Mapping[str, Region]) -> dict[str, Expression]:
    """Column and expression of each region that histograms one."""
    found = {_observable(name): region.expression for name, region in regions.items()}
    return {name: expression for name, expression in found.items() if expression is not None}


def list_models(regions: Mapping[str, Region]) -> tuple[str, ...]:
    """Names of the models of an analysis, in the order of its regions; the one without a name is empty."""
    asked = [region.model_name for region in regions.values() if region.uses_score or region.trains]
    return tuple(dict.fromkeys(asked)) or ("",)


def list_training_regions(regions: Mapping[str, Region], model: str) -> list[str]:
    """Names of the regions whose events train a model."""
    return [name for name, region in regions.items() if region.trains and region.model_name == model]


def name_training_regions(regions: Mapping[str, Region], model: str | None = None) -> str:
    """Where a model (the first by default) is trained, for messages about its events; empty without regions."""
    names = list_training_regions(regions, list_models(regions)[0] if model is None else model)
    return f"regions.{names[0]}" if len(names) == 1 else f"regions {', '.join(names)}" if names else ""


def add_region_columns(dataset: Dataset, regions: Mapping[str, Region]) -> Dataset:
    """Compute the columns of regions from the features of events that are in memory, and drop events of no region."""
    if not regions:
        return dataset
    conditions, observables = read_conditions(regions), read_observables(regions)

    def compute(events: Events) -> dict[str, ArrayLike]:
        columns = {name: events.column(name) for name in events.features}
        marks = {name: _evaluate(one, columns, one.mask, events.n_rows) for name, one in conditions.items()}
        values = {name: _evaluate(one, columns, one.evaluate, events.n_rows) for name, one in observables.items()}
        return {**columns, **values, **marks}

    return dataset.transform(compute).select(lambda events: _any_holds(events, list(conditions)))


def _evaluate(
    expression: Expression, columns: Mapping[str, Any], evaluate: Callable[[Any], Any], n_rows: int
) -> NDArray[Any]:
    if unknown := sorted(expression.names - set(columns)):
        raise DataError(f"regions: {expression.shown}: no feature {unknown[0]}; there are: {', '.join(columns)}")
    return np.broadcast_to(evaluate(columns), (n_rows,))


def _any_holds(events: Events, conditions: list[str]) -> NDArray[np.bool_]:
    return np.asarray(np.any([events.column(name) > 0 for name in conditions], axis=0))


@dataclass(frozen=True, eq=False)
class RegionEvents:
    """Events of all regions."""

    # All events: features, then observables that are expressions, then a column of 0 and 1 for each region
    whole: Dataset
    regions: Mapping[str, Region]  # The regions by name; none where there is only one, of all events

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features: what is trained on, or the score."""
        own = {*read_conditions(self.regions), *read_observables(self.regions)}
        return tuple(name for name in self.whole.features if name not in own)

    def every_event(self) -> Dataset:
        """Return all events with their features."""
        return self.whole.with_features(self.features)

    def of_training_regions(self, model: str | None = None) -> Dataset:
        """Events of the regions that train a model (the first by default), recorded data among them, with features."""
        if not self.regions:
            return self.whole
        name = list_models(self.regions)[0] if model is None else model
        conditions = [_condition(region) for region in list_training_regions(self.regions, name)]
        if not conditions:
            what = f"no region with model: {name}" if name else "none"
            raise DataError(f"regions: {what} has train: true; at least one is needed to train")
        return self.whole.select(lambda events: _any_holds(events, conditions)).with_features(self.features)

    def training(self, model: str | None = None) -> Dataset:
        """Return the events that the training of a model sees: simulated ones of the regions that train it."""
        return self.of_training_regions(model).simulated()

    def simulated(self) -> Dataset:
        """Return all simulated events with their features."""
        return self.every_event().simulated()

    def select(self, name: str) -> Dataset:
        """Events of one region, with their features."""
        return self._rows_of(name).with_features(self.features)

    def observe(self, name: str) -> Dataset:
        """Events of one region with its observable as the one feature.

        Without regions these are all events, and the score.
        """
        if not self.regions:
            return self.whole
        region = self.regions[name]
        events = self._rows_of(name)
        if region.uses_score:
            return events.with_features(self.features)
        if region.expression is not None:
            return events.with_features([_observable(name)])
        return events.transform(lambda each: {"yield": np.zeros(each.n_rows)})

    def transform(self, compute: Callable[[Events], Mapping[str, ArrayLike]]) -> RegionEvents:
        """Replace the features by computed ones, such as a score; regions and observables stay."""
        features = self.features
        kept = [name for name in self.whole.features if name not in features]

        def changed(events: Events) -> dict[str, ArrayLike]:
            new = compute(events.with_features(features))
            return {**new, **{name: events.column(name) for name in kept}}

        return replace(self, whole=self.whole.transform(changed))

    def score(self, compute: Callable[[str, Events], Mapping[str, ArrayLike]]) -> RegionEvents:
        """Replace the features by scores: `compute` gets the name of a model, and events of its regions."""
        models = list_models(self.regions)
        if len(models) == 1:
            return self.transform(partial(compute, models[0]))
        features, own = self.features, {*self.features}
        kept = [name for name in self.whole.features if name not in own]
        conditions = {m: [_condition(n) for n, r in self.regions.items() if r.model_name == m] for m in models}

        def changed(events: Events) -> dict[str, ArrayLike]:
            found: dict[str, Any] = {}
            for model, names in conditions.items():
                inside = _any_holds(events, names)
                for column, values in compute(model, events.with_features(features)[inside]).items():
                    found.setdefault(column, np.zeros(events.n_rows))[inside] = values
            return {**found, **{name: events.column(name) for name in kept}}

        return replace(self, whole=self.whole.transform(changed))

    def with_score(self, name: str | None = None) -> RegionEvents:
        """Keep one feature, the score; it need not be named where there is one only, or no region histograms it."""
        features = self.features
        asked_for = not self.regions or any(region.uses_score for region in self.regions.values())
        if name is None and len(features) > 1 and asked_for:
            raise ConfigError(f"which feature is the score? score=NAME, one of: {', '.join(features)}")
        return self.with_features([features[0] if name is None else name])

    def with_features(self, names: Sequence[str]) -> RegionEvents:
        """Keep some features; regions and observables stay."""
        kept = [*names, *(column for column in self.whole.features if column not in self.features)]
        return replace(self, whole=self.whole.with_features(kept))

    def count_backgrounds(self) -> Counter[str]:
        """Number of nominal background events in each region."""
        found = Counter(dict.fromkeys(self.regions, 0))
        for sample in self.whole.of_role(Role.BACKGROUND):
            found.update({name: int(np.sum(sample.events.column(_condition(name)) > 0)) for name in self.regions})
        return found

    def count_shared(self) -> dict[tuple[str, str], int]:
        """Number of nominal events in both of each pair of regions that have some."""
        counts = {pair: sum(_count_shared(s.events, pair) for s in self.whole.samples) for pair in self._pairs()}
        return {pair: count for pair, count in counts.items() if count}

    def _pairs(self) -> Iterator[tuple[str, str]]:
        return combinations(self.regions, 2)

    def require_disjoint(self) -> RegionEvents:
        """Refuse events that are in two regions."""
        require_none_shared(self.count_shared())
        return self

    def flatten(self) -> Dataset:
        """Events with their scores, the number of their region and the value of its observable: what a file holds."""
        scores = self.features
        if not self.regions:
            return self.whole
        column, observable = self.flat_names()

        def compute(events: Events) -> dict[str, ArrayLike]:
            number, value = np.zeros(events.n_rows, dtype=np.int16), np.zeros(events.n_rows)
            for i, (name, region) in enumerate(self.regions.items()):
                inside = events.column(_condition(name)) > 0
                number[inside] = i
                if region.expression is not None:
                    value[inside] = events.column(_observable(name))[inside]
            return {**{name: events.column(name) for name in scores}, column: number, observable: value}

        return self.whole.transform(compute)

    def flat_names(self) -> tuple[str, str]:
        """Names of the columns of region and observable in `flatten`, none of which is an identifier's."""
        region, observable = choose_words(
            ["region", "observable"], (*self.features, *self.whole.samples[0].events.id_names)
        )
        return region, observable

    def flat_regions(self) -> dict[str, dict[str, Any]]:
        """Return the regions as an analysis file of the flattened events has them, as plain data."""
        column, observable = self.flat_names() if self.regions else ("", "")
        found = {}
        for number, (name, region) in enumerate(self.regions.items()):
            plain = region.model_dump(mode="json", exclude_unset=True, exclude={"draw"})
            own = {} if region.expression is None else {"observable": observable, "title": region.axis_title}
            found[name] = {**plain, "selection": f"{column} == {number}", **own}
        return found

    def _rows_of(self, name: str) -> Dataset:
        return self.whole.select(lambda events: events.column(_condition(name)) > 0)


def _count_shared(events: Events, regions: tuple[str, str]) -> int:
    first, second = (events.column(_condition(name)) > 0 for name in regions)
    return int(np.sum(first & second))


def require_filled(counts: Mapping[str, int], regions: Mapping[str, Region]) -> None:
    """Refuse a region without background; `counts` are the events of each."""
    for name, region in regions.items():
        if not counts[name]:
            selection = "" if region.selection is None else f": {region.selection}"
            raise DataError(f"regions.{name}: no background event passes its selection{selection}")


def require_none_shared(shared: Mapping[tuple[str, str], int]) -> None:
    """Refuse events that are in two regions; `shared` is their number for each pair of regions."""
    if shared:
        pairs = ", ".join(f"{count} in {one} and {other}" for (one, other), count in shared.items())
        raise DataError(f"regions: events are in two regions of one fit, and would count twice: {pairs}")
