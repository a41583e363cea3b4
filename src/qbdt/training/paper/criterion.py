"""The paper's criterion: a split gains ΔQ = Q_L + Q_R − Q, with Q of eq:Q and σ_b of eq:sigmab.

Flows in: integer histograms. Flows out: the best `Split` of a node and the yields of nodes. Quantities (s, b, Δ_k, …)
are exact integers; a factor turns each into events, with signal and background each scaled to one event.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import BINS, FEATURES_PER_WORD, NONE_MISSING, SUM_BITS, Fixed, Floats
from qbdt.statistics import purity_value, significance_value
from qbdt.threads import Workers
from qbdt.training.kernels.split_scan import (
    Formula,
    bound_features,
    judge_plain,
    node_variance,
    scan_features,
    total_sums,
)
from qbdt.training.paper.channels import Quantities
from qbdt.trees.growth import FREE, Arranged, FeatureRules, Limits, NodeSystematics, NodeYields, Split, permute_bins
from qbdt.trees.rows import Layout

SUMS_PER_SHARE = 128
"""Features times quantities below which waking a second thread costs more than it saves: each takes about 2 µs, a
thread 50 µs. On 16 cores sharing 28 features of two quantities took six times as long as one thread."""

NOTHING: Fixed = np.empty(0, dtype=np.int64)
"""Systematic histogram where there is none."""


class PaperCriterion:
    """ΔQ = Q_L + Q_R − Q with the background uncertainty of eq:sigmab.

    The quantities (s, b, Δ_k, …) are sums of histogram channels, which the layout finds; `min_entries` is the least
    effective number of simulated background events of a node.
    """

    def __init__(
        self, quantities: Quantities, layout: Layout, min_entries: float, features: FeatureRules, workers: Workers
    ) -> None:
        self._factors = np.array([quantity.factor for quantity in quantities.in_order()])
        self._of_columns = [quantity.of_columns for quantity in quantities.in_order()]
        has_mc, least = quantities.mc_variance is not None, min_entries if quantities.entries else 0.0
        self._formula = Formula(self._factors, len(quantities.shifts), has_mc, least)
        self._channels = table = quantities.table(layout)
        self._features = features
        self._workers = workers
        self.has_systematics = bool(table.is_systematic.any())
        places = zip(table.is_systematic.tolist(), table.base.tolist(), table.stride.tolist(), strict=True)
        distinct = sorted(set(places))
        self._nominal_places = [(base, stride) for systematic, base, stride in distinct if not systematic]
        self._systematic_places = [(base, stride) for systematic, base, stride in distinct if systematic]

    @property
    def is_plain(self) -> bool:
        """Whether a split is judged on s and b alone, by cuts that may go either way."""
        return len(self._factors) == 2 and not self._features.categorical and not self._features.constrained

    def scale_plain(self, sums: Fixed) -> bool:
        """Scale signal and background of a root to one event each, where there is nothing else; False without yield."""
        if not (sums > 0).all():
            return False
        self._formula = self._formula._replace(factor=self._factors / sums)
        return True

    def judge_plain(self, sums: Fixed, lefts: Fixed) -> tuple[Floats, Floats]:
        """Numbers (s, b, Q, output) of nodes that are judged on s and b alone, and the ΔQ of one cut of each.

        `sums` are the quantities of the nodes, `lefts` those left of the cuts.
        """
        values, gains = np.empty((len(sums), 4)), np.empty(len(sums))
        judge_plain(sums, lefts, self._formula, values, gains)
        return values, gains

    def normalise(
        self, root: Fixed, systematics: NodeSystematics, features: Fixed, units: tuple[float, float] = (1.0, 1.0)
    ) -> Fixed | None:
        """Scale signal and background to one event each, so that the root has s = b = 1; return its quantities.

        Variations get the factor of the nominal background, so that their effect on its normalisation survives. `units`
        are the values of one unit of a boosted column and of a squared weight; a weight's is 2^−SUM_BITS. None is
        returned where signal or background has no positive yield, to which negative weights can grow.
        """
        s, b = (int(self._bins(root, quantity, 0, BINS).sum()) for quantity in (0, 1))
        if s <= 0 or b <= 0:
            return None
        factor, n_sources = self._factors.copy(), self._formula.n_sources
        background = math.ldexp(float(b), -SUM_BITS)
        factor[0] /= s
        for k in range(1, 2 + n_sources):  # b and the Δ_k: integers in units of weights, or of columns
            factor[k] = factor[k] * units[0] / background if self._of_columns[k] else factor[k] / b
        if self._formula.has_mc:  # δ² is quadratic in the weights
            factor[2 + n_sources] *= units[1] / background**2
        self._formula = self._formula._replace(factor=factor)
        # Any feature sums to the root's quantities. Take that of the highest bound: its systematic histogram will be
        # needed for the first split anyway.
        bounds = self._bounds(self._arrange(root, features), np.array([s, b], dtype=np.int64), features)
        leading = int(features[np.argmax(bounds)])
        given = systematics([leading // FEATURES_PER_WORD])[0] if self.has_systematics else NOTHING
        return np.asarray(total_sums(root, given, leading, self._channels))

    def describe(self, sums: Fixed) -> NodeYields:
        """Yields of a node, Q (eq:Q) and its output 2p − 1 with the purity p = s/(s + b + σ_b²)."""
        s, b = (float(sums[i] * self._formula.factor[i]) for i in range(2))
        sigma2 = float(node_variance(sums, self._formula))
        q = float(significance_value(s, b, sigma2))
        return NodeYields(s, b, sigma2, q, 2.0 * purity_value(s, b, sigma2) - 1.0)

    def upper_bounds(self, histogram: Fixed, sums: Fixed, q: float, features: Fixed) -> Floats:
        """Upper bound on ΔQ per feature: Q falls with σ_b, so that ΔQ of σ_b = 0 (eq:Q0) bounds Q_L + Q_R."""
        return self._bounds(self._arrange(histogram, features), sums, features) - q

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
        """Largest ΔQ over all cuts on some features; ties go to the first feature, then the lowest cut."""
        arranged = self._arrange(histogram, features)
        if not self.has_systematics:
            return self._scan(arranged, NOTHING, sums, q, features, limits).under(self._features, arranged)
        if upper_bounds is None:
            upper_bounds = self._bounds(arranged, sums, features) - q
        words = features // FEATURES_PER_WORD
        # Upper bound of each word of eight features, the largest first.
        bound_of: dict[int, float] = {}
        for word, bound in sorted(zip(words.tolist(), upper_bounds.tolist(), strict=True), key=lambda one: -one[1]):
            if bound > -np.inf:
                bound_of.setdefault(word, bound)
        ranked = list(bound_of)
        best = Split(-np.inf, -1, 0, NONE_MISSING, np.zeros_like(sums))
        # The word of the largest bound alone, then all words at once that could still do better: most of them could,
        # and rows read for several words are gathered once.
        for group in (ranked[:1], ranked[1:]):
            needed = [word for word in group if bound_of[word] >= best.gain]
            for word, given in zip(needed, systematics(needed), strict=True):
                chosen = features[(words == word) & (upper_bounds >= best.gain)]
                if chosen.size:
                    own = self._arrange_systematics(given, word, arranged)
                    best = max(best, self._scan(arranged, own, sums, q, chosen, limits), key=Split.rank)
        return best.under(self._features, arranged)

    def _scan(
        self, arranged: Arranged, systematics: Fixed, sums: Fixed, q: float, features: Fixed, limits: Limits
    ) -> Split:
        """Judge features, given in increasing order, exactly; those of a systematic histogram share a word."""
        given = (arranged.histogram, systematics, sums, q, self._formula, self._channels)
        n_shares = max(1, min(self._workers.n_threads, len(features) * len(self._factors) // SUMS_PER_SHARE))
        shared = np.array_split(features, n_shares) if n_shares > 1 else [features]
        lefts = np.zeros((len(shared), len(self._factors)), dtype=np.int64)
        order = (arranged.n_cuts, self._features.directions, *limits)
        shares = [(*given, share, *order, left) for share, left in zip(shared, lefts, strict=True)]
        found = self._workers.run(scan_features, shares)
        return max((Split(*one, left) for one, left in zip(found, lefts, strict=True)), key=Split.rank)

    def _bounds(self, arranged: Arranged, sums: Fixed, features: Fixed) -> Floats:
        """Upper bound on Q_L + Q_R per feature."""
        factor, channels = self._formula.factor, self._channels
        return np.asarray(bound_features(arranged.histogram, sums, factor, channels, features, arranged.n_cuts))

    def _arrange(self, histogram: Fixed, features: Fixed) -> Arranged:
        """Put the categories of a node in the order of s/b."""

        def yields(feature: int, n: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
            s, b = (self._bins(histogram, quantity, feature, n) for quantity in (0, 1))
            factor, present = self._formula.factor, (np.concatenate([s, b]) != 0).any(axis=0)
            return s.sum(axis=0) * factor[0], b.sum(axis=0) * factor[1], present

        return self._features.arrange(histogram, features, self._nominal_places, yields)

    def _bins(self, histogram: Fixed, quantity: int, feature: int, n: int) -> Fixed:
        """Channels of s (quantity 0) or b (1) in the first bins of a feature, as (channel, bin)."""
        table = self._channels
        own = range(table.first[quantity], table.first[quantity + 1])
        starts = [int(table.base[i]) + feature * BINS for i in own]  # bins of nominal channels are neighbours
        return np.stack([table.sign[i] * histogram[at : at + n] for i, at in zip(own, starts, strict=True)])

    def _arrange_systematics(self, systematics: Fixed, word: int, arranged: Arranged) -> Fixed:
        """Put the categories of a word's features in the order that they have in the nominal histogram."""
        orders = {f: order for f, order in arranged.orders.items() if f // FEATURES_PER_WORD == word}
        if not orders:
            return systematics
        systematics = systematics.copy()
        for feature, order in orders.items():
            permute_bins(systematics, self._systematic_places, feature % FEATURES_PER_WORD, order)
        return systematics
