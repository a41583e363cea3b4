"""Rows with the paper's weights, wherever they live: how a training starts on them, fixes their scale and boosts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from qbdt.arrays import COLUMN_BITS, SUM_BITS, Floats
from qbdt.data import Dataset
from qbdt.errors import DataError
from qbdt.threads import Workers
from qbdt.training.inputs import describe_events, make_feature_rules
from qbdt.training.paper.channels import largest_background_weight, make_quantities
from qbdt.training.paper.criterion import PaperCriterion
from qbdt.training.paper.device_rows import DeviceWeightedRows
from qbdt.training.paper.weighted_rows import WeightedRows
from qbdt.training.partitions.protocol import Partitions, largest, total
from qbdt.training.partitions.survey import count_before, require_same_rows, survey_events
from qbdt.training.settings import Settings
from qbdt.training.weight_smoothing import smooth_weights
from qbdt.trees import Binning
from qbdt.trees.device import DeviceMemory
from qbdt.trees.growth import RowStore
from qbdt.trees.rows import Layout, Memory, Side, in_memory

LEAST_SUM = 2.0**-4
"""Where a side's absolute weights sum to less than this, they are scaled up: at most four bits stay unused."""


class Prepared(NamedTuple):
    """Events ready for boosting: feature names, a record of the events, bins, binned rows, and the criterion."""

    features: tuple[str, ...]
    data: Mapping[str, Any]
    binning: Binning
    rows: BoostedRows
    criterion: PaperCriterion


def prepare_events(partitions: Partitions, settings: Settings, workers: Workers) -> Prepared:
    """Check the events, agree on bins and units, and bin the rows."""
    survey = survey_events(partitions, settings, _count_rows)
    empty, binning = survey.empty, survey.choose_binning(settings, workers)
    heaviest = largest_background_weight(survey.samples)
    partitions = smooth_weights(partitions, survey, binning, settings, workers)
    partitions.build(_RowBuilder(settings, binning, heaviest, survey.rows), final=True)
    quantities = make_quantities(empty, settings, heaviest)
    layout = Layout(quantities.segments, len(binning.features))
    rules = make_feature_rules(binning, settings)
    criterion = PaperCriterion(quantities, layout, settings.min_leaf_entries, rules, workers)
    data = describe_events(empty, survey.samples)
    return Prepared(empty.features, data, binning, BoostedRows(partitions), criterion)


def _count_rows(dataset: Dataset, settings: Settings) -> tuple[int, ...]:
    """Rows of each segment."""
    return tuple(segment.events.n_rows for segment in make_quantities(dataset, settings, largest=1.0).segments)


@dataclass(frozen=True, eq=False)
class _RowBuilder:
    """Bins a partition; `rows` are those of each segment that the survey found, by number of the partition."""

    settings: Settings
    binning: Binning
    heaviest: float
    rows: Mapping[int, Sequence[int]]

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> Any:
        quantities = make_quantities(dataset, self.settings, self.heaviest)
        require_same_rows(number, self.rows[number], [segment.events.n_rows for segment in quantities.segments])
        pairs = zip(quantities.segments, count_before(self.rows)[number], strict=True)
        segments = [replace(one, first=first) for one, first in pairs]
        if isinstance(memory, DeviceMemory):
            return DeviceWeightedRows(segments, self.binning, memory)
        return WeightedRows(segments, self.binning, workers, memory)


class BoostedRows:
    """All rows of a training, whose weights are fixed for each tree and boosted after it.

    Trees add up integers, since sums of floats depend on their order. A weight w becomes round(w · 2^SUM_BITS), and no
    sum may pass 2^SUM_BITS: so the absolute weights of each side, signal and background with its variations, must sum
    to at most one. Boosting multiplies weights by exp(∓p W), so after each tree all weights of a side are multiplied by
    a power of two, which changes no mantissa: results do not depend on it, nor on how rows are divided. The
    normalisation to one event (see `PaperCriterion.normalise`) is done on the integers' sums, not on the weights.
    """

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._sums: list[float] = [0.0] * len(Side)
        # Upper bounds on a further column, and on a weight whose square is one; those of this tree, in units.
        self._largest = np.array(partitions.ask(largest(WeightedRows.largest_columns))[0], dtype=np.float64)
        self._found: Floats = np.zeros(2)
        self._rescale(self._find_bounds())

    @property
    def units(self) -> tuple[float, float]:
        """Value of one unit of a boosted column and of a squared weight in this tree; a weight's is 2^−SUM_BITS."""
        column, weight = (math.frexp(most)[1] for most in self._largest)
        return math.ldexp(1.0, column - COLUMN_BITS), math.ldexp(1.0, 2 * weight - COLUMN_BITS)

    def start_tree(self, seed: int, threshold: int) -> RowStore:
        """Fix the weights of the next tree; return its nodes, of which node 0 holds all rows.

        Rows are drawn by position (see `draw_rows`); the others have weight zero.
        """
        nodes = self._quantise(seed, threshold)
        # The bound kept by boosting is not tight: where weights became small, scale them up and round them anew. A sum
        # of zero says nothing about their size; rows × largest does.
        while min(self._sums) < LEAST_SUM:
            bounds = self._find_bounds() if min(self._sums) == 0 else self._sums
            self._rescale([one or bound for one, bound in zip(self._sums, bounds, strict=True)])
            nodes = self._quantise(seed, threshold)
        return nodes

    def boost(self, leaves: Sequence[int], factors: Floats) -> None:
        """Multiply the weights of each leaf's rows by its factors exp(∓p W) (one row per leaf: signal, background).

        Powers of two beside them keep each side's sum below one.
        """
        # No weight grows by more than the largest factor, so neither does their sum.
        scaled = factors * [_shrink(one * float(factors[:, side].max())) for side, one in enumerate(self._sums)]
        # The same bound for the largest column and squared weight, whose units follow it (see `units`). Half a unit was
        # lost to rounding.
        found = (self._found + 0.5 * (self._found > 0)) * self.units
        self._largest = np.array([found[0], math.sqrt(found[1])]) * scaled[:, Side.BACKGROUND].max()
        self._partitions.tell(WeightedRows.multiply, tuple(leaves), np.asarray(scaled))

    def _quantise(self, seed: int, threshold: int) -> RowStore:
        """Begin a tree: turn weights into integers, and find the absolute sum of each side."""
        (sums, found), nodes = self._partitions.begin_tree(
            total(WeightedRows.quantise, self.units, seed, threshold), largest(WeightedRows.largest_quantised)
        )
        self._sums = [math.ldexp(int(one), -SUM_BITS) for one in sums]
        self._found = np.array(found, dtype=np.float64)
        return nodes

    def _rescale(self, sums: list[float]) -> None:
        """Bring the absolute sum of each side to between a half and one, by a power of two."""
        for side, one in zip(Side, sums, strict=True):
            if not 0 < one < math.inf:
                raise DataError(f"the absolute weights of the {side.name.lower()} sum to {one}: cannot be trained on")
        factors = np.array([_shrink(one) for one in sums])
        self._partitions.tell(WeightedRows.rescale, factors)
        self._largest = self._largest * factors[Side.BACKGROUND]

    def _find_bounds(self) -> list[float]:
        """Upper bound on the absolute sum of each side: rows × largest weight, which no order of rows changes."""
        counts = self._partitions.ask(total(WeightedRows.count_weights))[0]
        most = self._partitions.ask(largest(WeightedRows.largest_weights))[0]
        return [int(count) * float(one) for count, one in zip(counts, most, strict=True)]


def _shrink(value: float) -> float:
    """Return the power of two that brings a number to between a half and one."""
    return math.ldexp(1.0, -math.frexp(value)[1])
