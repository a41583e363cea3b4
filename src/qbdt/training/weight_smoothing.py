"""Training on E[w | x] where weights are negative: weights that are positive and have the same expectations.

A density at x is made of E[w | x], not of the sign of one event. So where a process has negative weights, its
events are divided into a few large regions, the leaves of one tree, and in each of them every w is replaced by

    |w| ρ,    ρ = Σw / Σ|w| over the region.

The yield of every region, and of anything made of regions, stays what it was; no weight is negative; and the sample
counts for training like one of as many positive weights. ρ of the nominal events, of each set of varied weights and of
each set of varied events is its own, over the same regions, so that Δ_k of a region stays what it was too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Fixed, Floats
from qbdt.data import Dataset, Events, Kind, Role, Sample, Systematic, Tally, Variation
from qbdt.threads import Workers
from qbdt.training.inputs import make_feature_rules
from qbdt.training.kernels.weights import ALL_ROWS
from qbdt.training.partitions.events import place_events
from qbdt.training.partitions.protocol import Builder, Call, Find, Found, Merge, Partitions, total
from qbdt.training.partitions.survey import Survey, survey_events
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.profile.pair_rows import PairRows, fixed_scale
from qbdt.training.settings import Settings
from qbdt.trees import Binning, Ensemble, Tree
from qbdt.trees.growth import LeafGrowth, RowStore, TreeGrower
from qbdt.trees.kernels import LIMBS, exact_sum, round_sums, sum_in_bins
from qbdt.trees.rows import Memory, Segment, Side, in_memory

ENTRIES = 1000.0
"""Least events of average weight in a region: ρ = 0.6, that of 20 % negative weights, is then known to 4 %."""

LEAVES = 64
"""Most regions."""

SIGNIFICANCE = 15.0
"""Least χ² of the difference of ρ between the two sides of a cut. Of some thousand cuts that are tried where ρ is the
same everywhere, the best has a χ² of 10 to 12: a cut that is made is there."""

FLOOR = 0.05
"""Least ρ: that of 1000 events is known to 0.03, and a region that cancels by chance is not empty."""

P = ParamSpec("P")


class WeightSet(NamedTuple):
    """Key of the weights of a process: nominal, or varied by a source in one direction."""

    process: str
    source: str = ""
    direction: str = ""


Regions: TypeAlias = Mapping[str, Ensemble]
"""For each process with negative weights one tree, whose leaves are its regions."""


@dataclass(frozen=True, eq=False)
class Smoothing:
    """Regions of the processes with negative weights, and ρ of each set of their weights by node of the tree."""

    regions: Regions
    ratios: Mapping[WeightSet, Floats]

    def apply(self, dataset: Dataset, n_threads: int | None = None) -> Dataset:
        """Replace every w by |w| ρ; events of all other processes stay as they are."""
        new = {
            key: np.abs(events.weight) * self.ratios[key][nodes]
            for key, events, nodes in _weight_sets(dataset, self.regions, n_threads)
        }

        def varied(source: Systematic, direction: str, process: str, change: Variation) -> Variation:
            weight = new.get(WeightSet(process, source.name, direction))
            return change if weight is None else change.with_weight(weight)

        samples = [
            Sample(s.name, s.role, s.events.with_weight(new[WeightSet(s.name)])) if s.name in self.regions else s
            for s in dataset.samples
        ]
        sources = []
        for source in dataset.systematics:
            sides = {d: {p: varied(source, d, p, one) for p, one in effect.items()} for d, effect in source.directions}
            sources.append(Systematic(source.name, source.kind, sides["up"], sides.get("down")))
        return Dataset(samples, sources, dataset.folds)


def smooth_weights(
    partitions: Partitions, survey: Survey, binning: Binning, settings: Settings, workers: Workers
) -> Partitions:
    """Partitions of the same events whose weights are smoothed, where any are negative and this is asked for."""
    tallies = zip(survey.empty.samples, survey.samples, strict=True)
    processes = {s.name: tally for s, tally in tallies if tally.n_negative and s.role is not Role.DATA}
    if settings.negative_weights == "raw" or not processes:
        return partitions
    regions = _find_regions(partitions, processes, binning, settings, workers)
    sums: _RegionSums = partitions.reduce(partial(_sum_regions, regions=regions), _merge, "negative weights")
    return _SmoothedPartitions(partitions, Smoothing(regions, {key: _ratios(*one) for key, one in sums.items()}))


def smooth_nominal(dataset: Dataset, n_threads: int | None = None) -> Dataset:
    """Return the nominal events with the weights that training takes, for other libraries: none is negative."""
    dataset = dataset.simulated().with_systematics([])
    if all(sample.events.weight.min(initial=0.0) >= 0.0 for sample in dataset.samples):
        return dataset
    settings = Settings()
    with Workers(n_threads) as workers:
        partitions = place_events(dataset, workers)
        survey = survey_events(partitions, settings, _count_rows)
        smoothed = smooth_weights(partitions, survey, survey.choose_binning(settings, workers), settings, workers)
        return smoothed.reduce(_find_events, _first, "smoothed events")


def _count_rows(dataset: Dataset, settings: Settings) -> tuple[int, ...]:
    return tuple(sample.events.n_rows for sample in dataset.samples)


def _find_events(number: int, dataset: Dataset, workers: Workers) -> Dataset:
    return dataset


def _first(one: Dataset, other: Dataset) -> Dataset:
    return one


def _ratios(signed: Fixed, absolute: Fixed) -> Floats:
    """ρ by node, from exact sums of w and |w|; the total of all nodes is kept where some ρ is at its floor."""
    top, bottom = round_sums(signed), round_sums(absolute)
    ratios = np.maximum(np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0), FLOOR)
    return ratios * min(float(round_sums(signed.sum(axis=0))) / float(ratios @ bottom), 1.0)


# Sums over regions ----------------------------------------------------------------------------------------------------

_RegionSums: TypeAlias = dict[WeightSet, Fixed]
"""Exact sums of w and of |w| of each set of weights, as (sum, node, limb)."""


def _weight_sets(
    dataset: Dataset, regions: Regions, n_threads: int | None
) -> Iterator[tuple[WeightSet, Events, NDArray[np.int32]]]:
    """All sets of weights of the processes that have regions: their events, and the node that each is in."""
    places = {name: tree.leaves(dataset.sample(name).events, n_threads)[:, 0] for name, tree in regions.items()}
    for name, nodes in places.items():
        yield WeightSet(name), dataset.sample(name).events, nodes
    for source in dataset.systematics:
        if source.kind is Kind.NORM:  # relative: it follows the nominal weights
            continue
        for direction, effect in source.directions:
            for name, change in effect.items():
                if name in regions and change.relative_size is None:  # nor what others scale as a whole
                    events, other = change.apply(dataset.sample(name).events), change.replacement
                    nodes = places[name] if other is None else regions[name].leaves(other, n_threads)[:, 0]
                    yield WeightSet(name, source.name, direction), events, nodes


def _sum_regions(number: int, dataset: Dataset, workers: Workers, regions: Regions) -> _RegionSums:
    """Pass over one partition."""
    sums = {}
    for key, events, nodes in _weight_sets(dataset, regions, workers.n_threads):
        size = len(regions[key.process].trees[0].nodes)
        values = (events.weight, np.abs(events.weight))
        sums[key] = np.stack([sum_in_bins(one, nodes.astype(np.int64), size) for one in values])
    return sums


def _merge(one: _RegionSums, other: _RegionSums) -> _RegionSums:
    return {key: sums + other[key] for key, sums in one.items()}


# The regions ----------------------------------------------------------------------------------------------------------


class SignRows(PairRows):
    """Nominal rows of one partition, one segment for each process; trees are grown on those of one of them."""

    def __init__(
        self, segments: Sequence[Segment], binning: Binning, workers: Workers, memory: Memory = in_memory
    ) -> None:
        super().__init__(segments, binning, workers, len(segments), memory)
        self._weight: Floats = memory("weight", self.layout.n_rows, np.float64)
        for (_, low, high), segment in zip(self.layout.whole, segments, strict=True):
            self._weight[low:high] = segment.events.weight
        self._chosen = 0

    def choose(self, segment: int) -> None:
        """Let the next tree be grown on the rows of one process."""
        self._chosen = segment

    def sums(self) -> Fixed:
        """Exact sums of w, |w| and w² of each process, as (process, sum, limb)."""
        found = np.zeros((self.layout.n_segments, 3, LIMBS), dtype=np.int64)
        for i, low, high in self.layout.whole:
            weight = self._weight[low:high]
            found[i] = [exact_sum(values) for values in (weight, np.abs(weight), np.square(weight))]
        return found

    def _fill_pairs(self, segment: int, low: int, high: int, scales: tuple[float, float], out: Fixed) -> None:
        """N = w and D = |w|: a leaf's N/D is ρ, and N²/D gains what the squared error of ρ loses."""
        if segment == self._chosen:
            out[::2] = np.rint(self._weight[low:high] * scales[0]).astype(np.int64)
            out[1::2] = np.abs(out[::2])

    def _gather_rows(self) -> None:
        super()._gather_rows()
        ranges = self._nodes[0].copy()
        others = ranges[:, 0] != self._chosen
        ranges[others, 2] = ranges[others, 1]
        self._nodes = [ranges]


@dataclass(frozen=True, eq=False)
class _SignBuilder:
    """Builds the rows of some processes of one partition."""

    processes: tuple[str, ...]
    binning: Binning

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> SignRows:
        segments = [Segment(name, Side.BACKGROUND, dataset.sample(name).events) for name in self.processes]
        return SignRows(segments, self.binning, workers, memory)


class _SignificantGrowth(LeafGrowth):
    """Split while the gain is above a threshold."""

    def __init__(self, least: float) -> None:
        super().__init__(LEAVES)
        self._least = least

    def closes(self, gain: float) -> bool:
        """Close where too little is gained."""
        return super().closes(gain - self._least)


def _find_regions(
    partitions: Partitions, processes: Mapping[str, Tally], binning: Binning, settings: Settings, workers: Workers
) -> Regions:
    """Grow one tree for each process, on its nominal events."""
    partitions.build(_SignBuilder(tuple(processes), binning))
    sums = round_sums(partitions.ask(total(SignRows.sums))[0])
    rules, edges = make_feature_rules(binning, settings).without_directions(), binning.edges
    regions = {}
    for i, (name, tally) in enumerate(processes.items()):
        signed, absolute, squared = sums[i]
        scale = fixed_scale(tally.largest, tally.n_rows)
        partitions.tell(SignRows.choose, i)
        rows: RowStore
        _, rows = partitions.begin_tree(Call(PairRows.begin_tree, ((scale, scale), 0, ALL_ROWS)))
        root = rows.histogram(0)
        criterion = NewtonCriterion(0.0, ENTRIES * squared / absolute, rules, workers)
        top = criterion.start_tree(root, np.full(2, 1.0 / scale))
        # Where ρ is the same on both sides of a cut, N²/D gains χ²₁ times the variance of w − ρ|w| over the mean |w|.
        noise = (1.0 - (signed / absolute) ** 2) * squared / absolute
        growth, features = _SignificantGrowth(SIGNIFICANCE * noise), np.arange(len(binning.features))
        grown = TreeGrower(rows, criterion, growth, features, LEAVES).grow(root, top)
        tree = Tree(grown.with_thresholds(edges), 1.0, binning.categories_by_number)
        regions[name] = Ensemble(binning.features, (tree,))
    return regions


# Partitions -----------------------------------------------------------------------------------------------------------


def _find_in_smoothed(
    number: int,
    dataset: Dataset,
    workers: Workers,
    find: Find[Found],
    smoothing: Smoothing,
) -> Found:
    return find(number, smoothing.apply(dataset, workers.n_threads), workers)


@dataclass(frozen=True, eq=False)
class _SmoothedBuilder:
    """Builds the rows of one partition with smoothed weights."""

    build: Builder
    smoothing: Smoothing

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> Any:
        return self.build(number, self.smoothing.apply(dataset, workers.n_threads), workers, memory)


class _SmoothedPartitions:
    """The same partitions, whose events have smoothed weights wherever they are read. A `Partitions`."""

    def __init__(self, partitions: Partitions, smoothing: Smoothing) -> None:
        self._partitions, self._smoothing = partitions, smoothing

    def reduce(self, find: Find[Found], merge: Merge[Found], name: str) -> Found:
        """Find something in the smoothed events."""
        return self._partitions.reduce(partial(_find_in_smoothed, find=find, smoothing=self._smoothing), merge, name)

    def build(self, build: Builder, final: bool = False) -> None:
        """Build rows of the smoothed events."""
        self._partitions.build(_SmoothedBuilder(build, self._smoothing), final)

    def tell(self, method: Callable[Concatenate[Any, P], object], *arguments: P.args, **_: P.kwargs) -> None:
        """Change the rows."""
        self._partitions.tell(method, *arguments, **_)

    def ask(self, *calls: Call) -> list[NDArray[Any]]:
        """Make calls."""
        return self._partitions.ask(*calls)

    def fork(self, workers: Workers) -> _SmoothedPartitions | None:
        """Return the same events for another thread."""
        own = self._partitions.fork(workers)
        return None if own is None else _SmoothedPartitions(own, self._smoothing)

    def begin_tree(self, call: Call, *others: Call) -> tuple[list[NDArray[Any]], RowStore]:
        """Begin a tree."""
        return self._partitions.begin_tree(call, *others)
