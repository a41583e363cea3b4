"""The criterion of the profiled method: splits by sums of squares, N²/(D + λ)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import BINS, Fixed, Floats, Indices
from qbdt.threads import Workers
from qbdt.training.grown_records import PairJudge
from qbdt.training.kernels.pairs import pair_value, scan_ordered_pairs, scan_pairs
from qbdt.trees.growth import FREE, Arranged, FeatureRules, Limits, NodeSystematics, NodeYields, Split

CHANNELS = ((0, 2), (1, 2))
"""First bin and distance of bins of N and D in a histogram."""

FEATURES_PER_SHARE = 64
"""Below this, waking a second thread costs more than it saves: a feature takes less than a microsecond."""


class NewtonCriterion:
    """Gain of a split in N²/(D + λ), with N and D sums of numerators and denominators over a node's rows.

    For a logistic loss N is minus the gradient and D the curvature; for a ratio of densities N is the sum of shifts and
    D that of yields. Either way N/(D + λ) is the best output of a node and N²/(D + λ) what it gains.

    Parameters
    ----------
    ridge
        λ, in units of the denominator.
    least
        Least denominator of a node.
    features
        Number of cuts of every feature, and which are categorical or have a monotonic constraint.
    workers
        Threads.
    """

    has_systematics = False

    def __init__(self, ridge: float, least: float, features: FeatureRules, workers: Workers) -> None:
        self._ridge = ridge
        self._least = least
        self._features = features
        self._workers = workers
        self._factor: Floats = np.ones(2)

    @property
    def is_plain(self) -> bool:
        """Whether all features are cut on, and cuts may go either way."""
        return not self._features.categorical and not self._features.constrained

    @property
    def n_cuts(self) -> Indices:
        """Number of cuts of every feature."""
        return self._features.n_cuts

    @property
    def judge(self) -> PairJudge:
        """Numbers by which cuts of the tree that was started are judged."""
        return PairJudge(float(self._factor[0]), float(self._factor[1]), self._ridge, self._least)

    def scale(self, factor: Floats) -> None:
        """Take the value of one unit of N and D."""
        self._factor = np.asarray(factor, dtype=np.float64)

    def start_tree(self, root: Fixed, factor: Floats) -> Fixed:
        """Take the value of one unit of N and D; return the sums of the root from its histogram."""
        self.scale(factor)
        return np.asarray(root[: 2 * BINS].reshape(BINS, 2).sum(axis=0))

    def describe(self, sums: Fixed) -> NodeYields:
        """Return D as the yield, N²/(D + λ) and N/(D + λ)."""
        top, bottom = (float(x) for x in sums * self._factor)
        value = top / (bottom + self._ridge) if bottom + self._ridge > 0 else 0.0
        return NodeYields(0.0, bottom, 0.0, max(float(pair_value(top, bottom, self._ridge, -np.inf)), 0.0), value)

    def upper_bounds(self, histogram: Fixed, sums: Fixed, q: float, features: Fixed) -> Floats:
        """Return no bound: there are no systematic histograms that a judgement could wait for."""
        return np.full(len(features), np.inf)

    def best_split(
        self,
        histogram: Fixed,
        systematics: NodeSystematics,
        sums: Fixed,
        q: float,
        features: Fixed,
        upper_bounds: Floats | None = None,
        limits: Limits = FREE,
    ) -> Split:
        """Largest gain over all cuts on some features; ties go to the first feature, then the lowest cut."""
        arranged = self._arrange(histogram, features)
        shares = np.array_split(features, max(1, min(self._workers.n_threads, len(features) // FEATURES_PER_SHARE)))
        lefts = np.zeros((len(shares), 2), dtype=np.int64)
        rules, work = (self._factor, self._ridge, self._least), list(zip(shares, lefts, strict=True))
        if self._features.constrained:
            order = (arranged.n_cuts, self._features.directions, *limits)
            ordered = [(arranged.histogram, sums, *rules, share, *order, left) for share, left in work]
            found = self._workers.run(scan_ordered_pairs, ordered)
        else:
            free = [(arranged.histogram, sums, q, *rules, share, arranged.n_cuts, left) for share, left in work]
            found = self._workers.run(scan_pairs, free)
        splits = [Split(*one, left) for one, left in zip(found, lefts, strict=True)]
        return max(splits, key=Split.rank).under(self._features, arranged)

    def _arrange(self, histogram: Fixed, features: Fixed) -> Arranged:
        """Put the categories of a node in the order of N/D."""

        def yields(feature: int, n: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
            pairs = histogram[2 * feature * BINS :][: 2 * n].reshape(-1, 2)
            top, bottom = (pairs * self._factor).T
            return top, bottom, (pairs != 0).any(axis=1)

        return self._features.arrange(histogram, features, CHANNELS, yields)
