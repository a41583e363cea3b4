"""Rows with the paper's weights, wherever they live: how a training starts on them, fixes weights and boosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.data import Dataset
from qbdt.threads import Workers
from qbdt.training.inputs import described, feature_rules
from qbdt.training.paper.channels import Whole, make_plan
from qbdt.training.paper.criterion import PaperCriterion
from qbdt.training.paper.weight_scaling import WeightScaling
from qbdt.training.paper.weighted_rows import WeightedRows
from qbdt.training.partitions.protocol import Partitions, largest, total
from qbdt.training.partitions.survey import count_before, survey_events
from qbdt.training.settings import Settings
from qbdt.trees import Binning
from qbdt.trees.growth import RowStore
from qbdt.trees.rows import Layout, Memory, in_memory

__all__ = ["BoostedRows", "PaperStart", "start_paper"]


class PaperStart(NamedTuple):
    """What the boosting loop begins with."""

    features: tuple[str, ...]
    data: Mapping[str, Any]
    binning: Binning
    rows: BoostedRows
    criterion: PaperCriterion


def start_paper(partitions: Partitions, settings: Settings, workers: Workers) -> PaperStart:
    """Check the events, agree on bins and units, and bin the rows."""
    survey = survey_events(partitions, settings, _count_rows)
    empty, binning = survey.empty, survey.choose_binning(settings, workers)
    whole = Whole.of(survey.samples)
    partitions.build(_WeightedBuilder(settings, binning, whole, count_before(survey.rows)), final=True)
    plan = make_plan(empty, settings.mc_stat, settings.min_leaf_entries, whole)
    layout = Layout(plan.segments, len(binning.features))
    criterion = plan.criterion(layout, feature_rules(binning, settings), settings.min_leaf_entries, workers)
    return PaperStart(empty.features, described(empty, survey.samples), binning, BoostedRows(partitions), criterion)


def _count_rows(dataset: Dataset, settings: Settings) -> tuple[int, ...]:
    """Rows of each segment."""
    plan = make_plan(dataset, settings.mc_stat, settings.min_leaf_entries, Whole(1.0))
    return tuple(segment.events.n_rows for segment in plan.segments)


@dataclass(frozen=True, eq=False)
class _WeightedBuilder:
    """Bins a partition; `firsts` are the positions of its first rows among all, by number of the partition."""

    settings: Settings
    binning: Binning
    whole: Whole
    firsts: Mapping[int, Sequence[int]]

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> WeightedRows:
        plan = make_plan(dataset, self.settings.mc_stat, self.settings.min_leaf_entries, self.whole)
        pairs = zip(plan.segments, self.firsts[number], strict=True)
        return WeightedRows([replace(one, first=first) for one, first in pairs], self.binning, workers, memory)


class BoostedRows:
    """All rows of a training, whose weights are fixed for each tree and boosted after it."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._found: Floats = np.zeros(2)
        self._scaling = WeightScaling(self)

    @property
    def units(self) -> tuple[float, float]:
        """Value of one unit of a boosted column and of a squared weight in this tree."""
        return self._scaling.units

    def start_tree(self, seed: int = 0, fraction: float = 1.0) -> RowStore:
        """Fix the weights of the next tree; return its nodes, of which node 0 holds all rows.

        Of the rows a share is drawn by position, from `seed`; the others have weight zero.
        """
        self._scaling.start_tree(self, seed, fraction)
        return self._nodes

    def boost(self, leaves: Sequence[int], factors: Floats) -> None:
        """Multiply the weights of each leaf's rows by its factors (one row per leaf: signal, background)."""
        self._partitions.tell(WeightedRows.multiply, tuple(leaves), self._scaling.kept_small(factors))

    def count_weights(self) -> Fixed:
        """Number of weights of each side."""
        return self._partitions.ask(total(WeightedRows.count_weights))[0]

    def largest_weights(self) -> Floats:
        """Largest absolute weight of each side."""
        return self._partitions.ask(largest(WeightedRows.largest_weights))[0]

    def rescale(self, factors: Floats) -> None:
        """Multiply all weights of each side."""
        self._partitions.tell(WeightedRows.rescale, factors)

    def largest_columns(self) -> Floats:
        """Largest further column, and largest weight whose square is one."""
        return self._partitions.ask(largest(WeightedRows.largest_columns))[0]

    def largest_quantised(self) -> Floats:
        """Largest column and square of this tree; they came with the sums of its weights."""
        return self._found

    def quantise(self, units: tuple[float, float], seed: int, threshold: int) -> Fixed:
        """Begin a tree: sums of the absolute weights of each side, in units of 2^−SUM_BITS."""
        (sums, self._found), self._nodes = self._partitions.begin_tree(
            total(WeightedRows.quantise, units, seed, threshold), largest(WeightedRows.largest_quantised)
        )
        return sums
