"""Learning curves: σ_μ against the number of trees, and against the number of training events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeAlias

import numpy as np

from qbdt.analysis.diagnosis.sensitivity import compute_sensitivity
from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, FoldRule
from qbdt.errors import DataError
from qbdt.inference import FitSettings
from qbdt.progress import Progress, silent
from qbdt.statistics import Sensitivity
from qbdt.training import FoldedEnsemble, SingleModel

Trainer: TypeAlias = Callable[[Dataset], SingleModel]
"""Trains on the events it is given."""

DRAW_SALT = 0x51DE
"""Salt of the choice of events, so that it has nothing to do with folds by hash."""


@dataclass(frozen=True)
class LearningCurve:
    """σ_μ against something; one entry of each tuple per point."""

    against: str  # "trees" or "share of the training events"
    at: tuple[float, ...]  # Number of trees, or share
    # full, stat: σ_μ with and without systematics, mean over repeats
    full: tuple[float, ...]
    # full_spread, stat_spread: standard deviation over repeats; zeros for one
    full_spread: tuple[float, ...]
    stat: tuple[float, ...]
    stat_spread: tuple[float, ...]

    @classmethod
    def of(cls, against: str, points: Sequence[tuple[float, Sequence[Sensitivity]]]) -> LearningCurve:
        """Make a curve of the results of repeats at each point."""
        values = [np.array([(found.sigma_full, found.sigma_stat) for found in repeats]) for _, repeats in points]
        means = [v.mean(axis=0) for v in values]
        spreads = [v.std(axis=0, ddof=1) if len(v) > 1 else np.zeros(2) for v in values]
        columns = [tuple(float(row[i]) for row in rows) for i in (0, 1) for rows in (means, spreads)]
        return cls(against, tuple(float(at) for at, _ in points), *columns)


def compute_tree_curve(
    dataset: Dataset,
    models: FoldedEnsemble,
    settings: FitSettings,
    *,
    n_points: int = 12,
    n_threads: int | None = None,
    progress: Progress = silent,
) -> LearningCurve:
    """σ_μ of out-of-fold scores with the first trees only; transform and bins are chosen anew at every point.

    At most `n_points` numbers of trees are looked at, evenly spaced in their logarithm.
    """
    most = max(len(one.trees) for model in models.members for one in model.components.values())
    counts = sorted({round(float(n)) for n in np.geomspace(1, most, n_points)}) if most else []
    staged = dataset.transform(lambda events: _score_stages(models, events, counts, n_threads))
    points = []
    with progress("numbers of trees", len(counts)) as advance:
        for count in counts:
            points.append((float(count), [compute_sensitivity(staged.with_features([f"{count}"]), settings)]))
            advance(1)
    return LearningCurve.of("trees", points)


@dataclass(frozen=True, eq=False)
class Draws:
    """Trainings on shares of the events of a dataset, each drawn some times."""

    dataset: Dataset
    trainer: Trainer
    settings: FitSettings
    repeats: int = 3
    seed: int = 0
    n_threads: int | None = None
    progress: Progress = silent

    def evaluate(self, what: str, thins: Sequence[Callable[[int], Dataset]]) -> list[list[Sensitivity]]:
        """Thin the events in each way, with one seed after the other; σ_μ of all events with models of those drawn."""
        if self.dataset.folds is None:
            raise DataError("a learning curve needs folds")
        with self.progress(what, len(thins) * self.repeats * self.dataset.folds.k) as advance:
            seeds = range(self.seed, self.seed + self.repeats)
            return [[self._evaluate(thin(seed), self.dataset.folds, advance) for seed in seeds] for thin in thins]

    def _evaluate(self, drawn: Dataset, folds: FoldRule, advance: Callable[[int], None]) -> Sensitivity:
        """All events are scored, each by a model that is trained on the events drawn of the other folds."""
        ensembles = []
        for fold in range(folds.k):
            ensembles.append(self.trainer(drawn.without_fold(fold)))
            advance(1)
        models = FoldedEnsemble(tuple(ensembles), folds)
        scored = self.dataset.transform(lambda events: {"score": models.score(events, self.n_threads)})
        return compute_sensitivity(scored, self.settings)


def compute_size_curve(
    draws: Draws, shares: Sequence[float] = (0.125, 0.25, 0.5), whole: Sensitivity | None = None
) -> LearningCurve:
    """σ_μ of out-of-fold scores of models that are trained on shares of the training events.

    Weights of a share are scaled up, so that it stands for the whole. All held-out events are scored at every point.
    `whole` is σ_μ with all events, the last point: it is not trained anew.
    """
    found = draws.evaluate("training on shares", [partial(thin_events, draws.dataset, share) for share in shares])
    points: list[tuple[float, Sequence[Sensitivity]]] = list(zip(shares, found, strict=True))
    return LearningCurve.of("share of the training events", [*points, *([] if whole is None else [(1.0, [whole])])])


def thin_events(dataset: Dataset, share: float, seed: int = 0) -> Dataset:
    """Keep a share of the events with all their shifted copies, with weights that make up for the rest.

    Examples
    --------
    >>> from qbdt.data import Role, Sample
    >>> events = Events({"x": np.arange(1000.0)}, np.ones(1000), {"event": np.arange(1000)})
    >>> half = thin_events(Dataset([Sample("b", Role.BACKGROUND, events)]), 0.5)
    >>> 450 < half.sample("b").events.n_rows < 550, 900 < half.total(Role.BACKGROUND) < 1100
    (True, True)
    """
    limit = np.uint64(min(int(share * 2**64), 2**64 - 1))

    def choose(events: Events) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        if not events.identifiers_differ:
            raise DataError(
                f"the identifiers {', '.join(events.id_names)} do not tell events apart: shares cannot be drawn"
            )
        return events.hash_identifiers(DRAW_SALT + seed) < limit

    return dataset.select(choose).scaled(1.0 / share)


def _score_stages(
    models: FoldedEnsemble, events: Events, counts: Sequence[int], n_threads: int | None
) -> dict[str, Floats]:
    """Out-of-fold scores after so many trees; a model with fewer trees stays as it is at its end."""
    fold = models.folds.assign(events)
    columns = {f"{count}": np.zeros(events.n_rows) for count in counts}
    for number, model in enumerate(models.members):
        mine = fold == number
        stages = iter(model.staged_scores(events[mine], n_threads))
        score, done = np.zeros(int(mine.sum())), 0
        for count in counts:
            for score in islice(stages, count - done):  # noqa: B007
                pass
            done = count
            columns[f"{count}"][mine] = score
    return columns
