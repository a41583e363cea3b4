"""Nested cross-training of a contestant: its settings are never chosen on events that are fitted.

The model of an outer fold is trained on all other folds; its settings are those with the best fit of out-of-fold scores
among the inner folds of these events (`NestedFolds`). All results are kept in a folder, so that nothing is trained
twice.
"""

from __future__ import annotations

import hashlib
import math
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np

from qbdt.analysis.tuning import Cells, NestedFolds
from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, FoldRule, HashFolds, Role, SplitFolds
from qbdt.errors import DataError, FitError
from qbdt.files import StepFolder, digest, replace_file
from qbdt.studies.comparison.contestants import LEAVE_OUT, Contestant
from qbdt.studies.comparison.score_sensitivity import measure_scores
from qbdt.studies.trainers import Parameters, Scorer, Trained

Key: TypeAlias = Mapping[str, Any]

LEAST_INNER = 3
"""Inner folds among the events that a model is trained on, at least: each judges a model of two thirds of them."""

JUDGE = ("equal_signal", 20)
"""Binning and number of bins of the fits that tuning looks at."""

REFUSED = "refused"
"""Key, in the place of the numbers of a fit, of why there is none."""


class Cache(StepFolder):
    """A folder of results, each in a file that is named by a digest of everything that it depends on.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     cache = Cache(Path(folder))
    ...     first = cache.get_values("sum", {"of": [1, 2]}, lambda: {"sum": 3})
    ...     cache.get_values("sum", {"of": [1, 2]}, lambda: {"sum": "not computed again"})
    {'sum': 3}
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, None)

    def get_values(self, label: str, key: Key, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Plain values: those of an earlier run, unless they were damaged since, or computed now."""
        name = _file_name(label, key)
        return self.find_sealed(name) or self.seal(name, compute())

    def seal(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Keep values with their digest, and return them as they will be read."""
        found: dict[str, Any] = self.put(name, {"values": values, "digest": digest(values)})["values"]
        return found

    def find_sealed(self, name: str) -> dict[str, Any]:
        """Values that were kept; empty where there are none, or damaged ones."""
        known = self.find(name)
        found: dict[str, Any] = known.get("values", {})
        return found if known.get("digest") == digest(found) else {}

    def get_arrays(self, label: str, key: Key, compute: Callable[[], Sequence[Floats]]) -> list[Floats]:
        """Arrays of one dimension, in order: those of an earlier run, unless they were damaged, or computed now."""
        path = self.path / f"{_file_name(label, key)}.npz"
        found = _read_arrays(path)
        if found is None:
            found = [np.asarray(array, dtype=np.float64) for array in compute()]
            lengths = np.array([len(array) for array in found], dtype=np.int64)
            with replace_file(path) as scratch, scratch.open("wb") as file:
                np.savez(file, values=np.concatenate(found), lengths=lengths)
        return found


def _read_arrays(path: Path) -> list[Floats] | None:
    """Arrays in a file, which has checksums of its own; None where it is not there, or damaged."""
    try:
        with path.open("rb") as file, np.load(file) as stored:
            return np.split(stored["values"], np.cumsum(stored["lengths"])[:-1])
    except (OSError, KeyError, ValueError, IndexError, EOFError, NotImplementedError, BadZipFile, zlib.error):
        return None


def _file_name(label: str, key: Key) -> str:
    plain = "".join(letter if letter.isalnum() else "-" for letter in label.lower())
    return f"{plain}-{digest(key)[:20]}"


@dataclass(frozen=True)
class Division:
    """Outer and inner folds of a dataset."""

    data: Dataset  # The events
    identifiers: tuple[str, ...]  # Columns that are hashed
    # inner, outer: numbers of folds. `outer` divides `inner`, so that an outer fold is one inner fold or several; it
    # is 1 where all events are trained on and others are fitted
    inner: int
    outer: int
    seed: int  # Salt of the hash and seed of the trainings
    own: FoldRule | None = None  # Rule of the outer folds, where it is not this hash

    @classmethod
    def of_rule(cls, data: Dataset, rule: FoldRule, seed: int) -> Division:
        """Divide events by a rule of their own; inner folds divide the outer ones, so that at least 3 are left."""
        if isinstance(rule, SplitFolds):  # its folds cannot be divided further
            return cls(data, rule.columns, rule.k, rule.k, seed, rule)
        parts = next(m for m in range(1, LEAST_INNER + 1) if m * (rule.k - 1) >= LEAST_INNER)
        return cls(data, rule.columns, parts * rule.k, rule.k, seed, rule)

    @property
    def rule(self) -> FoldRule:
        """From an event to its outer fold."""
        return HashFolds(self.outer, self.identifiers, self.seed) if self.own is None else self.own

    @cached_property
    def nested(self) -> NestedFolds:
        """Both folds of the events."""
        inner = replace(self.own, k=self.inner) if self.own else HashFolds(self.inner, self.identifiers, self.seed)
        return NestedFolds(self.data.with_folds(None), None if self.outer == 1 else self.rule, inner)

    def training_events(self, fold: int) -> Dataset:
        """Events outside of an outer fold; all where there is only one."""
        return self.nested.select(self.nested.cells_outside(fold))

    def make_key(self) -> dict[str, Any]:
        """Everything that results depend on, with a digest of all events; it reads all of them."""
        return {
            "events": _digest_events(self.data),
            "identifiers": list(self.identifiers),
            "units": self.inner,
            "outer": self.outer,
            "seed": self.seed,
            **({} if self.own is None else {"rule": self.own.to_dict()}),
        }


def _digest_events(data: Dataset) -> str:
    """Digest of all events of a dataset, nominal and varied: what is trained on, and the identifiers that divide it."""
    found = hashlib.sha256()
    for sample in data.samples:
        _add_events(found, (sample.name, str(sample.role)), sample.events)
    for source in data.systematics:
        found.update(repr(source).encode())
        for direction, _ in source.directions:
            for process, events in data.varied(source.name, direction).items():
                _add_events(found, (process, direction), events)
    return found.hexdigest()[:20]


def _add_events(found: Any, title: tuple[str, str], events: Events) -> None:
    """Add events to a digest, so that neither a row nor a column can count as one of its neighbour's."""
    features = {name: events.column(name) for name in events.features}
    identifiers = {name: events.identifier(name) for name in events.id_names}
    for kind, columns in (("features", features), ("identifiers", identifiers), ("weight", {"": events.weight})):
        for name, values in columns.items():
            found.update(repr((*title, kind, name, str(values.dtype), len(values))).encode())
            found.update(repr(values.tolist()).encode() if values.dtype.hasobject else values.tobytes())


@dataclass(frozen=True)
class CrossTraining:
    """Out-of-fold scores of one contestant."""

    # All events with the score of the model that did not see them, on a common scale; its folds are the outer ones
    scored: Dataset
    settings: tuple[Parameters, ...]  # Chosen for each outer fold
    seconds: float = math.nan  # CPU time of the trainings of all outer folds, without tuning


def judge_settings(contestant: Contestant, division: Division, key: Key, settings: Parameters, cache: Cache) -> Key:
    """Judge settings by inner folds among the training events of each outer fold.

    `key` holds everything that the division depends on; the caller makes it once, since it reads all events.
    """
    full_key = {**key, "release": contestant.release, "settings": settings, "judge": JUDGE}
    compute = partial(_judge, contestant, division, settings)
    return cache.get_values(f"judge {contestant.name}", full_key, compute)


def choose_settings(
    contestant: Contestant, division: Division, key: Key, budget: int, cache: Cache, by: str = "z_full"
) -> list[Parameters]:
    """Choose settings for each outer fold: those with the largest `by` ("z_full", or "z_stat" without sources).

    `key` is that of `judge_settings`; `budget` is the number of settings to try. Settings that give nothing that can
    be fitted are never chosen; where all of them do, that is an error.
    """
    candidates = contestant.candidates(budget)
    if len(candidates) == 1:
        return candidates * division.outer
    judged = [judge_settings(contestant, division, key, settings, cache)["folds"] for settings in candidates]
    values = np.array([[-math.inf if REFUSED in fold else fold[by] for fold in folds] for folds in judged])
    if np.any(lost := np.all(values == -math.inf, axis=0)):
        reason = judged[0][int(np.argmax(lost))][REFUSED].removesuffix(f"; {LEAVE_OUT}")
        raise FitError(
            f"{contestant.name}: none of {len(candidates)} settings gives scores that can be fitted ({reason}); "
            f"{LEAVE_OUT}"
        )
    return [candidates[int(i)] for i in np.argmax(values, axis=0)]


def score_fold(
    contestant: Contestant, division: Division, key: Key, settings: Parameters, fold: int, cache: Cache
) -> tuple[list[Floats], float]:
    """Scores of one outer fold by a model trained on the others, and the CPU seconds of the training."""
    full_key = {**key, "release": contestant.release, "settings": settings, "fold": fold}
    timing = _file_name(f"time {contestant.name}", full_key)

    def compute() -> list[Floats]:
        start = time.process_time()
        trained = contestant.train(division.training_events(fold), settings, division.seed)
        cache.seal(timing, {"seconds": time.process_time() - start})
        return collect_all_scores(trained, division.data.with_folds(division.rule).fold(fold))

    arrays = cache.get_arrays(f"scores {contestant.name}", full_key, compute)
    return arrays, cache.find_sealed(timing).get("seconds", math.nan)


def cross_train_tuned(
    contestant: Contestant,
    division: Division,
    budget: int,
    cache: Cache,
    *,
    sources: Sequence[str] | None = None,
    by: str = "z_full",
) -> CrossTraining:
    """Out-of-fold scores of all events and variations, each outer fold with its own tuned settings.

    `sources` are those that training is told of, all by default; peers use none anyway. `budget` and `by` are those of
    `choose_settings`.
    """
    key = division.make_key()
    if sources is not None and contestant.ours:
        key["sources in training"] = list(sources)
        contestant = contestant.restrict_to(sources)
    settings = choose_settings(contestant, division, key, budget, cache, by)
    return assemble_scores(contestant, division, key, settings, cache)


def assemble_scores(
    contestant: Contestant, division: Division, key: Key, settings: Sequence[Parameters], cache: Cache
) -> CrossTraining:
    """Out-of-fold scores of all events and variations, with settings for each outer fold."""
    folds = [score_fold(contestant, division, key, one, fold, cache) for fold, one in enumerate(settings)]
    scored = rescale_scores(_assemble(division, [arrays for arrays, _ in folds]))
    return CrossTraining(scored, tuple(settings), sum(seconds for _, seconds in folds))


def rescale_scores(scored: Dataset) -> Dataset:
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
    >>> scaled = rescale_scores(Dataset([signal, background], folds=ModuloFolds(2, "n")))
    >>> scaled.sample("s").events.column("score")
    array([0.5, 0.5, 1. , 1. ])
    """
    rule = scored.folds
    assert rule is not None
    maps = [_share_below(scored.fold(number)) for number in range(rule.k)]

    def compute(events: Events) -> dict[str, Floats]:
        fold, score = rule.assign(events), events.column("score")
        out = np.empty(events.n_rows)
        for number, (at, share) in enumerate(maps):
            rows = fold == number
            out[rows] = np.interp(score[rows], at, share)
        return {"score": out}

    return scored.transform(compute)


def _share_below(fold: Dataset) -> tuple[Floats, Floats]:
    """Scores in order, and the share of events up to each."""
    scores, weights = [], []
    for role in (Role.SIGNAL, Role.BACKGROUND):
        for sample in fold.of_role(role):
            scores.append(np.asarray(sample.events.column("score"), dtype=np.float64))
            weights.append(sample.events.weight / (2 * fold.total(role)))
    score = np.concatenate(scores)
    order = np.argsort(score, kind="stable")
    share = np.maximum.accumulate(np.cumsum(np.concatenate(weights)[order]))
    at, last = score[order], np.append(np.diff(score[order]) > 0, True)
    return at[last], share[last]


def _judge(contestant: Contestant, division: Division, settings: Parameters) -> dict[str, Any]:
    """Sensitivity of out-of-fold scores among the training events of each outer fold, scaled to all events.

    Where these settings give nothing that can be fitted, the reason: other folds, and other settings, may still do.
    """
    models: dict[Cells, Scorer] = {}

    def measure(fold: int) -> dict[str, Any]:
        scored = division.nested.score_inside(
            fold, lambda events: contestant.train(events, settings, division.seed).score, models
        )
        share = scored.total(Role.BACKGROUND) / division.data.total(Role.BACKGROUND)
        return asdict(measure_scores(scored, *JUDGE, scale=1 / share))

    found: list[dict[str, Any]] = []
    for fold in range(division.outer):
        try:
            found.append(measure(fold))
        except (FitError, DataError) as error:
            found.append({REFUSED: str(error)})
    return {"settings": dict(settings), "folds": found}


def collect_all_scores(trained: Trained, data: Dataset) -> list[Floats]:
    """Scores of nominal and varied events, in the order in which `Dataset.transform` asks for them."""
    collected: list[Floats] = []

    def compute(events: Events) -> dict[str, Floats]:
        collected.append(trained.score(events))
        return {"score": collected[-1]}

    data.transform(compute)
    return collected


def _assemble(division: Division, arrays: Sequence[Sequence[Floats]]) -> Dataset:
    """Put the scores of the outer folds, in the order of `collect_all_scores`, back to their events."""
    calls = iter(range(len(arrays[0])))

    def compute(events: Events) -> dict[str, Floats]:
        call, fold = next(calls), division.rule.assign(events)
        out = np.empty(events.n_rows)
        for number, scores in enumerate(arrays):
            out[fold == number] = scores[call]
        return {"score": out}

    return division.data.with_folds(division.rule).transform(compute)
