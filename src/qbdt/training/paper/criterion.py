"""What makes a split good: the paper's criterion, ΔQ.

Flows in: integer histograms. Flows out: the best `Split` of a node and the yields of nodes. Quantities (s, b, Δ_k, …)
are sums of histogram channels with signs, exact in integers; a factor turns them into events, with signal and
background each scaled to one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import BINS, FEATURES_PER_WORD, NONE_MISSING, SUM_BITS, Fixed, Floats
from qbdt.statistics import purity_value, significance_value
from qbdt.threads import Workers
from qbdt.training.kernels.ordered import scan_ordered_features
from qbdt.training.kernels.scan import Rules, Terms, bound_features, node_variance, scan_features, total_sums
from qbdt.trees.growth import FREE, Arranged, FeatureRules, Limits, NodeSystematics, Split, Yield, permute_bins

__all__ = ["PaperCriterion", "Quantity", "Term"]

NOTHING: Fixed = np.empty(0, dtype=np.int64)
"""Details where there are none."""


class Term(NamedTuple):
    """A channel with a sign: in the main histogram or in the details, its first bin, the distance of its bins."""

    is_detail: bool
    base: int
    stride: int
    sign: int


@dataclass(frozen=True)
class Quantity:
    """A sum of histogram channels, and a factor; all of them weights, or all further columns, whose unit varies."""

    terms: tuple[Term, ...]
    factor: float = 1.0
    of_columns: bool = False


class PaperCriterion:
    """ΔQ = Q_L + Q_R − Q with the background uncertainty of eq:sigmab.

    Parameters
    ----------
    signal, background
        Channels of the nominal yields.
    sources
        Δ_k of each source, in units of the background.
    squares
        Sum of squared background weights, where MC statistics count.
    entries
        Sum of weights and of squared weights behind the effective number of simulated background events, or nothing.
    min_entries
        Least effective number of simulated background events of a node.
    features
        Number of cuts of every feature, and which are categorical or have a monotonic constraint.
    workers
        Threads.
    """

    def __init__(
        self,
        signal: Quantity,
        background: Quantity,
        sources: Sequence[Quantity],
        squares: Quantity | None,
        entries: Sequence[Quantity],
        min_entries: float,
        features: FeatureRules,
        workers: Workers,
    ) -> None:
        extra = ([squares] if squares is not None else []) + list(entries)
        self._quantities = [signal, background, *sources, *extra]
        factor = np.array([quantity.factor for quantity in self._quantities])
        self._rules = Rules(factor, len(sources), squares is not None, min_entries if entries else 0.0)
        self._features = features
        self._workers = workers
        sizes = [len(quantity.terms) for quantity in self._quantities]
        columns = np.array([term for quantity in self._quantities for term in quantity.terms], dtype=np.int64).T
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._terms = Terms(first, *(np.ascontiguousarray(column) for column in columns))
        self.has_systematics = bool(self._terms.is_detail.any())
        self._channels, self._detail_channels = (
            sorted({(t.base, t.stride) for q in self._quantities for t in q.terms if t.is_detail == is_detail})
            for is_detail in (False, True)
        )

    def start_tree(
        self, root: Fixed, systematics: NodeSystematics, features: Fixed, units: tuple[float, float] = (1.0, 1.0)
    ) -> Fixed | None:
        """Fix the units of a tree: after this the root has s = b = 1.

        Parameters
        ----------
        root, details
            Histogram and details of the root.
        features
            Features that may be cut on.
        units
            Value of one unit of a boosted column and of a squared weight; a weight's is 2^−SUM_BITS.

        Returns
        -------
        array or None
            Quantities of the root; None where signal or background has no positive yield, to which negative weights
            can grow.
        """
        s, b = (sum(t.sign * int(root[t.base : t.base + BINS].sum()) for t in q.terms) for q in self._quantities[:2])
        if s <= 0 or b <= 0:
            return None
        factor = np.array([quantity.factor for quantity in self._quantities])
        background = math.ldexp(float(b), -SUM_BITS)
        factor[0] /= s
        for k in range(1, 2 + self._rules.n_sources):
            factor[k] = factor[k] * units[0] / background if self._quantities[k].of_columns else factor[k] / b
        if self._rules.has_mc:
            factor[2 + self._rules.n_sources] *= units[1] / background**2
        self._rules = self._rules._replace(factor=factor)
        arranged = self._arranged(root, features)
        leading = int(features[np.argmax(self._bounds(arranged, np.array([s, b], dtype=np.int64), features))])
        given = systematics([leading // FEATURES_PER_WORD])[0] if self.has_systematics else NOTHING
        return np.asarray(total_sums(root, given, leading, self._terms))

    def _bounds(self, arranged: Arranged, sums: Fixed, features: Fixed) -> Floats:
        """Return for each feature what Q_L + Q_R cannot pass."""
        factor, terms = self._rules.factor, self._terms
        return np.asarray(bound_features(arranged.histogram, sums, factor, terms, features, arranged.n_cuts))

    def _arranged(self, histogram: Fixed, features: Fixed) -> Arranged:
        """Put the categories of a node in the order of s/b."""

        def yields(feature: int, n: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
            s, b = (self._bins(histogram, q, feature, n) for q in (0, 1))
            factor, present = self._rules.factor, (np.concatenate([s, b]) != 0).any(axis=0)
            return s.sum(axis=0) * factor[0], b.sum(axis=0) * factor[1], present

        return self._features.arranged(histogram, features, self._channels, yields)

    def _bins(self, histogram: Fixed, quantity: int, feature: int, n: int) -> Fixed:
        """Terms of s or b in the first bins of a feature, as (term, bin)."""
        starts = [(t.base + feature * BINS * t.stride, t) for t in self._quantities[quantity].terms]
        return np.stack([t.sign * histogram[at : at + n * t.stride : t.stride] for at, t in starts])

    def _arranged_details(self, details: Fixed, word: int, arranged: Arranged) -> Fixed:
        own = {f: order for f, order in arranged.orders.items() if f // FEATURES_PER_WORD == word}
        if not own:
            return details
        details = details.copy()
        for feature, order in own.items():
            permute_bins(details, self._detail_channels, feature % FEATURES_PER_WORD, order)
        return details

    def describe(self, sums: Fixed) -> Yield:
        """Yields, significance and output of a node."""
        s, b = (float(sums[i] * self._rules.factor[i]) for i in range(2))
        sigma2 = float(node_variance(sums, self._rules))
        q = float(significance_value(s, b, sigma2))
        return Yield(s, b, sigma2, q, 2.0 * purity_value(s, b, sigma2) - 1.0)

    def upper_bounds(self, histogram: Fixed, sums: Fixed, q: float, features: Fixed) -> Floats:
        """Return for each feature what ΔQ cannot pass: ΔQ without systematics, which needs no details."""
        return self._bounds(self._arranged(histogram, features), sums, features) - q

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
        """Largest ΔQ over all cuts on some features; ties go to the first feature, then the lowest cut.

        Details are asked for where most is promised first, then at once for all words that could still do better:
        most of them could, and rows read for several words are gathered once.
        """
        arranged = self._arranged(histogram, features)
        if not self.has_systematics:
            return self._scan(arranged, NOTHING, sums, q, features, limits).under(self._features, arranged)
        if upper_bounds is None:
            upper_bounds = self._bounds(arranged, sums, features) - q
        words = features // FEATURES_PER_WORD
        best = Split(-np.inf, -1, 0, NONE_MISSING, np.zeros_like(sums))
        promised: dict[int, float] = {}
        for word, promise in sorted(zip(words.tolist(), upper_bounds.tolist(), strict=True), key=lambda one: -one[1]):
            if promise > -np.inf:
                promised.setdefault(word, promise)
        ranked = list(promised)
        for group in (ranked[:1], ranked[1:]):
            asked = [word for word in group if promised[word] >= best.gain]
            for word, given in zip(asked, systematics(asked), strict=True):
                chosen = features[(words == word) & (upper_bounds >= best.gain)]
                if chosen.size:
                    own = self._arranged_details(given, word, arranged)
                    best = max(best, self._scan(arranged, own, sums, q, chosen, limits), key=Split.rank)
        return best.under(self._features, arranged)

    def _scan(
        self, arranged: Arranged, details: Fixed, sums: Fixed, q: float, features: Fixed, limits: Limits
    ) -> Split:
        """Judge these features, given in increasing order, exactly; they share a word where there are details."""
        given = (arranged.histogram, details, sums, q, self._rules, self._terms)
        directed = self._features.directions[features] != 0
        free = features[~directed]
        n_parts = max(1, min(self._workers.n_threads, len(free) // 2))
        parts = np.array_split(free, n_parts) if n_parts > 1 else [free]
        lefts = np.zeros((len(parts) + 1, len(self._quantities)), dtype=np.int64)
        shares = [(*given, part, arranged.n_cuts, left) for part, left in zip(parts, lefts[1:], strict=True)]
        found = self._workers.run(scan_features, shares)
        splits = [Split(*one, left) for one, left in zip(found, lefts[1:], strict=True)]
        if directed.any():
            own = (features[directed], arranged.n_cuts, self._features.directions, *limits, lefts[0])
            splits.append(Split(*scan_ordered_features(*given, *own), lefts[0]))
        return max(splits, key=Split.rank)
