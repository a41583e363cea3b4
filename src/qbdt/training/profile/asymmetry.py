"""Which sources respond asymmetrically beyond MC noise: the decision before a training at another working point.

At θ ≠ 0 the derivative of the expectation has a term with the bend of a source, u + d − 2n. Its effect is found in
blocks of events, an event and its shifted copies in the same block, so that what is common to them cancels; the spread
of the blocks gives its MC noise. Looked at are the effects on the yield, and on the rank of each feature and its
square, which see that a distribution moves, or becomes wider. A source whose bend shows in none is taken as linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role
from qbdt.errors import DataError
from qbdt.threads import Workers
from qbdt.training.partitions.events import PartitionedEvents, place_events
from qbdt.training.partitions.survey import survey_events
from qbdt.training.profile.inner_folds import InnerFolds, count_rows
from qbdt.training.profile.noise import BlockSums, sum_blocks
from qbdt.training.profile.segments import shift_segments
from qbdt.training.settings import Settings
from qbdt.trees import Binning

LEVEL = 0.01
"""Chance that a linear source passes for an asymmetric one: then its derivatives have more noise, which shrinkage
by held-out events still takes care of. Leaving out a bend that is real, and hardly to be seen, costs as little."""

AT_ONCE = 8
"""Features that one pass looks at: the functions of all rows are in memory."""


def move_events(
    events: Dataset | PartitionedEvents, settings: Settings, workers: Workers
) -> Dataset | PartitionedEvents:
    """Return the events at the working point of a training; sources without a bend beyond noise are linear there."""
    if not settings.at:
        return events
    bent = find_asymmetric(events, settings, workers)
    linear = tuple(name for name in settings.at if name not in bent)
    move = partial(Dataset.at_working_point, at=settings.at, linear=linear)
    return _require_events(move(events), settings) if isinstance(events, Dataset) else events.map(move)


def _require_events(moved: Dataset, settings: Settings) -> Dataset:
    """Refuse a working point where a process has a negative yield."""
    for sample in moved.samples:
        if sample.role is not Role.DATA and not sample.events.total > 0:
            where = ", ".join(f"{name}: {value:g}" for name, value in settings.at.items())
            raise DataError(
                f"at={{{where}}}: sample {sample.name} expects {sample.events.total:.4g} events there: "
                "choose a point where all processes have a positive yield"
            )
    return moved


def find_asymmetric(events: Dataset | PartitionedEvents, settings: Settings, workers: Workers) -> list[str]:
    """Name the sources of the working point whose bend is beyond noise."""
    bend = partial(Dataset.with_bends, names=tuple(settings.at))
    rows = place_events(bend(events) if isinstance(events, Dataset) else events.map(bend), workers)
    survey = survey_events(rows, settings, count_rows)
    names = [source.name for source in survey.empty.systematics]
    if not names:
        return []
    binning, folds = survey.choose_binning(settings, workers), replace(InnerFolds.of(survey), k=1)
    segments = shift_segments(survey.empty)
    signals = [[i for i, one in enumerate(segments) if one.is_signal]]
    blocks = []
    for first in range(0, len(survey.empty.features), AT_ONCE):
        ranks = _Ranks(binning, survey.empty.features[first : first + AT_ONCE])
        find = partial(sum_blocks, folds=folds, fold=0, ratios=ranks)
        found = rows.reduce(find, BlockSums.merge, "blocks").integrals(segments, signals).blocks
        blocks.append(found if first == 0 else found[:, :, :-1])  # the last is the yield
    beyond = find_beyond_noise(np.concatenate(blocks, axis=2))
    return [name for name, is_bent in zip(names, beyond, strict=True) if is_bent]


def find_beyond_noise(blocks: Floats) -> Floats:
    """Which sources have an effect beyond noise, from effects as (block, source, function).

    The mean of blocks over its error is distributed like t of Student where there is no effect. The level is shared by
    all functions, since one of them is enough.

    Examples
    --------
    >>> noise = np.resize([1.0, -1.0], 20)
    >>> find_beyond_noise(np.stack([noise, 1 + noise, 0 * noise, 0 * noise + 1], axis=1)[:, :, None])
    array([False,  True, False,  True])
    """
    from scipy.stats import t as student

    effect, error = blocks.sum(axis=0), np.sqrt(len(blocks) * blocks.var(axis=0, ddof=1))
    most = float(student.isf(LEVEL / (2 * blocks.shape[2]), len(blocks) - 1))
    return np.asarray((np.abs(effect) > most * error).any(axis=1))


@dataclass(frozen=True, eq=False)
class _Ranks:
    """Rank of some features from −½ to ½, by their bins, and its square; 0 where a value is missing."""

    binning: Binning
    features: Sequence[str]

    @property
    def n_strengths(self) -> int:
        return 2 * len(self.features)

    def shares(self, events: Events, n_threads: int | None = None) -> Floats:
        ranks = []
        for name in self.features:
            edges = self.binning.edges[list(events.features).index(name)]
            values = np.asarray(events.column(name), dtype=np.float64)
            rank = (np.searchsorted(edges, values) + 0.5) / (len(edges) + 1) - 0.5
            ranks += [np.where(np.isnan(values), 0.0, rank), np.where(np.isnan(values), 0.0, rank**2)]
        return np.stack(ranks)
