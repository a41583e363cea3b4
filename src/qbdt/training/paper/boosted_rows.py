"""Rows with the paper's weights, wherever they live: how a training starts on them, fixes weights and boosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.data import Dataset
from qbdt.threads import Workers
from qbdt.training.inputs import describe_events, make_feature_rules
from qbdt.training.paper.channels import largest_background_weight, make_quantities
from qbdt.training.paper.criterion import PaperCriterion
from qbdt.training.paper.device_rows import DeviceWeightedRows
from qbdt.training.paper.weight_scaling import WeightScaling
from qbdt.training.paper.weighted_rows import WeightedRows
from qbdt.training.partitions.protocol import Partitions, largest, total
from qbdt.training.partitions.survey import count_before, require_same_rows, survey_events
from qbdt.training.settings import Settings
from qbdt.training.weight_smoothing import smooth_weights
from qbdt.trees import Binning
from qbdt.trees.device import DeviceMemory
from qbdt.trees.growth import RowStore
from qbdt.trees.rows import Layout, Memory, in_memory


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
    """All rows of a training, whose weights are fixed for each tree and boosted after it."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._found: Floats = np.zeros(2)
        self._scaling = WeightScaling(self)

    @property
    def units(self) -> tuple[float, float]:
        """Value of one unit of a boosted column and of a squared weight in this tree."""
        return self._scaling.units

    def start_tree(self, seed: int, threshold: int) -> RowStore:
        """Fix the weights of the next tree; return its nodes, of which node 0 holds all rows.

        Rows are drawn by position (see `draw_rows`); the others have weight zero.
        """
        self._scaling.quantise(self, seed, threshold)
        return self._nodes

    def boost(self, leaves: Sequence[int], factors: Floats) -> None:
        """Multiply the weights of each leaf's rows by its factors (one row per leaf: signal, background)."""
        self._partitions.tell(WeightedRows.multiply, tuple(leaves), self._scaling.limit(factors))

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
