"""Nested cross-training: settings are chosen inside the training part, never on events that are fitted.

Events are divided into units by a hash of their identifiers. An outer fold is one unit, or several. The model for an
outer fold is trained on all other units; its settings are those with the best fit of out-of-fold scores inside these
units, each unit scored by a model that was trained on the remaining ones. Where an outer fold is one unit, the model
without the units i and j serves the outer folds i and j: half of the trainings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.data import Dataset, Events, FoldRule, HashFolds, Role
from qbdt.studies.benchmark.cache import Cache, fingerprint
from qbdt.studies.benchmark.contestants import Contestant
from qbdt.studies.benchmark.merits import merit
from qbdt.studies.methods import Parameters, Scorer

__all__ = ["Division", "Outcome", "by_unit", "common_scale", "cross_scored", "tuned"]

Units = frozenset[int]

JUDGE = ("equal_signal", 20)
"""Binning and number of bins of the fits that tuning looks at."""


@dataclass(frozen=True)
class Division:
    """How events are divided.

    Attributes
    ----------
    data
        The events.
    identifiers
        Columns that are hashed.
    units
        Number of units.
    outer
        Number of outer folds: a unit u belongs to the fold u modulo `outer`. 1 where all units are trained on and
        other events are fitted.
    seed
        Salt of the hash and seed of the trainings.
    """

    data: Dataset
    identifiers: tuple[str, ...]
    units: int
    outer: int
    seed: int

    @property
    def rule(self) -> FoldRule:
        """From an event to its unit."""
        return HashFolds(self.units, self.identifiers, self.seed)

    @property
    def folds(self) -> FoldRule:
        """From an event to its outer fold."""
        return HashFolds(self.outer, self.identifiers, self.seed)

    def training_part(self, fold: int) -> Units:
        """Units that the model of an outer fold is trained on."""
        if self.outer == 1:
            return frozenset(range(self.units))
        return frozenset(unit for unit in range(self.units) if unit % self.outer != fold)

    def part(self, units: Units) -> Dataset:
        """Return the events of some units."""
        wanted = sorted(units)
        return self.data.select(lambda events: np.isin(self.rule.assign(events), wanted)).with_folds(None)

    @property
    def key(self) -> dict[str, Any]:
        """What results depend on."""
        return {
            "events": fingerprint(self.data),
            "identifiers": list(self.identifiers),
            "units": self.units,
            "outer": self.outer,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Outcome:
    """Out-of-fold scores of one contestant and how they came about.

    Attributes
    ----------
    scored
        All events with the score of the model that did not see them, on a common scale; its folds are the outer ones.
    settings
        Chosen for each outer fold.
    """

    scored: Dataset
    settings: tuple[Parameters, ...]


def by_unit(rule: FoldRule, scorers: Mapping[int, Scorer]) -> Scorer:
    """Score each event with the scorer of its unit."""

    def score(events: Events) -> NDArray[np.float64]:
        unit = rule.assign(events)
        out = np.full(events.n_rows, np.nan)
        for number, scorer in scorers.items():
            rows = np.flatnonzero(unit == number)
            if rows.size:
                out[rows] = scorer(events[rows])
        return out

    return score


def tuned(
    contestant: Contestant,
    division: Division,
    key: Mapping[str, Any],
    budget: int,
    cache: Cache,
    by: str = "z_full",
) -> list[Parameters]:
    """Choose settings for each outer fold.

    Parameters
    ----------
    contestant
        Whose settings.
    division
        Events and how they are divided.
    key
        What the division depends on; computed once by the caller, since it reads all events.
    budget
        Number of settings to try.
    cache
        Judgements of earlier runs.
    by
        Largest what: "z_full" with all sources, "z_stat" without.
    """
    candidates = contestant.candidates(budget)
    if len(candidates) == 1:
        return candidates * division.outer
    what = f"tuning {contestant.name}"
    judged = []
    for settings in candidates:
        full_key = {**key, "release": contestant.release, "settings": settings, "judge": JUDGE}
        folds = cache.values(what, full_key, partial(_judge, contestant, division, settings))["folds"]
        judged.append([fold[by] for fold in folds])
    best = np.argmax(np.array(judged), axis=0)
    return [candidates[int(i)] for i in best]


def cross_scored(
    contestant: Contestant,
    division: Division,
    budget: int,
    cache: Cache,
    *,
    sources: Sequence[str] | None = None,
    by: str = "z_full",
) -> Outcome:
    """Out-of-fold scores of all events and variations, each outer fold with its own tuned settings.

    Parameters
    ----------
    contestant
        Who trains.
    division
        Events and how they are divided.
    budget
        Number of settings that tuning tries.
    cache
        What earlier runs computed.
    sources
        Sources that training is told of; all by default. Peers use none anyway.
    by
        What tuning looks at; see `tuned`.
    """
    key = division.key
    if sources is not None and contestant.ours:
        key["sources in training"] = list(sources)
        contestant = contestant.restrict_to(sources)
    settings = tuned(contestant, division, key, budget, cache, by)
    arrays = []
    for fold in range(division.outer):
        full_key = {**key, "release": contestant.release, "settings": settings[fold], "fold": fold}
        compute = partial(_scores, contestant, division, settings[fold], fold)
        arrays.append(cache.arrays(f"scores {contestant.name}", full_key, compute))
    return Outcome(common_scale(_assembled(division, arrays)), tuple(settings))


def common_scale(scored: Dataset) -> Dataset:
    """Map the scores of each fold to its share of events below, half of it of signal and half of background.

    Models of different folds may have different settings, and then scores of different sizes: the same bins would not
    mean the same. The map is monotonic, the same for all methods, and looks at the nominal events of a fold only.

    Examples
    --------
    >>> from qbdt import Sample
    >>> from qbdt.data import ModuloFolds
    >>> ids = {"n": [0, 1, 2, 3]}
    >>> signal = Sample("s", "signal", Events({"score": [2.0, 20.0, 4.0, 40.0]}, np.ones(4), ids))
    >>> background = Sample("b", "background", Events({"score": [1.0, 10.0, 3.0, 30.0]}, np.ones(4), ids))
    >>> scaled = common_scale(Dataset([signal, background], folds=ModuloFolds(2, "n")))
    >>> scaled.sample("s").events.column("score")
    array([0.5, 0.5, 1. , 1. ])
    """
    rule = scored.folds
    assert rule is not None
    maps = [_share_below(scored.fold(number)) for number in range(rule.k)]

    def compute(events: Events) -> dict[str, NDArray[np.float64]]:
        fold, score = rule.assign(events), events.column("score")
        out = np.empty(events.n_rows)
        for number, (at, share) in enumerate(maps):
            rows = fold == number
            out[rows] = np.interp(score[rows], at, share)
        return {"score": out}

    return scored.transform(compute)


def _share_below(part: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores in order, and the share of events up to each."""
    scores, weights = [], []
    for role in (Role.SIGNAL, Role.BACKGROUND):
        for sample in part.of_role(role):
            scores.append(np.asarray(sample.events.column("score"), dtype=np.float64))
            weights.append(sample.events.weight / (2 * part.total(role)))
    score = np.concatenate(scores)
    order = np.argsort(score, kind="stable")
    share = np.maximum.accumulate(np.cumsum(np.concatenate(weights)[order]))
    at, last = score[order], np.append(np.diff(score[order]) > 0, True)
    return at[last], share[last]


def _judge(contestant: Contestant, division: Division, settings: Parameters) -> dict[str, Any]:
    """Z of the full fit of out-of-fold scores inside the training part of each outer fold."""
    models: dict[Units, Scorer] = {}
    found = []
    for fold in range(division.outer):
        part = division.training_part(fold)
        scorers = {}
        for unit in sorted(part):
            rest = part - {unit}
            if rest not in models:
                models[rest] = contestant.fit(division.part(rest), settings, division.seed).score
            scorers[unit] = models[rest]
        events = division.part(part)
        scored = _scored(events, by_unit(division.rule, scorers))
        share = events.total(Role.BACKGROUND) / division.data.total(Role.BACKGROUND)
        found.append(asdict(merit(scored, *JUDGE, scale=1 / share)))
    return {"folds": found}


def _scores(contestant: Contestant, division: Division, settings: Parameters, fold: int) -> list[NDArray[np.float64]]:
    """Scores of the events of one outer fold, in the order in which `Dataset.transform` asks for them."""
    scorer = contestant.fit(division.part(division.training_part(fold)), settings, division.seed).score
    collected: list[NDArray[np.float64]] = []

    def compute(events: Events) -> dict[str, NDArray[np.float64]]:
        collected.append(scorer(events))
        return {"score": collected[-1]}

    division.data.with_folds(division.folds).fold(fold).transform(compute)
    return collected


def _assembled(division: Division, arrays: Sequence[Sequence[NDArray[np.float64]]]) -> Dataset:
    calls = iter(range(len(arrays[0])))

    def compute(events: Events) -> dict[str, NDArray[np.float64]]:
        call, fold = next(calls), division.folds.assign(events)
        out = np.empty(events.n_rows)
        for number, of_fold in enumerate(arrays):
            out[fold == number] = of_fold[call]
        return {"score": out}

    return division.data.with_folds(division.folds).transform(compute)


def _scored(data: Dataset, score: Callable[[Events], NDArray[np.float64]]) -> Dataset:
    return data.transform(lambda events: {"score": score(events)})
