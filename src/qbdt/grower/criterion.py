"""What makes a split good: the paper's criterion, ΔQ.

Flows in: integer histograms. Flows out: the best `Split` of a node and the yields of nodes. Quantities (s, b, Δ_k, …)
are sums of histogram channels with signs, exact in integers; a factor turns them into events, with signal and
background each scaled to one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from qbdt._kernels.scan import bound_features, node_variance, scan_features, total_sums
from qbdt.dtypes import BINS, SUM_BITS, Fixed, Yields
from qbdt.significance import purity_value, significance_value
from qbdt.workers import Workers

__all__ = ["Details", "PaperCriterion", "Quantity", "Split", "Term", "Yield"]

Details: TypeAlias = Callable[[Fixed], Fixed]
"""Gives the details of a node for some features: one row for each."""


class Split(NamedTuple):
    """A cut on one feature: codes below `cut` go left. Feature −1: no cut is allowed.

    `missing` says where missing values go (see the scan kernel), open where the node has none; `left` are the
    quantities of the left child.
    """

    gain: float
    feature: int
    cut: int
    missing: int
    left: Fixed


class Yield(NamedTuple):
    """Yields of a node, with signal and nominal background each scaled to one event."""

    s: float
    b: float
    sigma2: float
    q: float
    value: float


class Term(NamedTuple):
    """A channel with a sign: in the main histogram or in the details, its first bin, the distance of its bins."""

    is_detail: bool
    base: int
    stride: int
    sign: int


@dataclass(frozen=True)
class Quantity:
    """A sum of histogram channels, and a factor."""

    terms: tuple[Term, ...]
    factor: float = 1.0


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
    n_cuts
        Number of cuts of every feature.
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
        n_cuts: Fixed,
        workers: Workers,
    ) -> None:
        extra = ([squares] if squares is not None else []) + list(entries)
        self._quantities = [signal, background, *sources, *extra]
        self._n_sources = len(sources)
        self._has_mc = squares is not None
        self._min_entries = min_entries if entries else 0.0
        self._n_cuts = n_cuts
        self._workers = workers
        terms = [term for quantity in self._quantities for term in quantity.terms]
        sizes = [len(quantity.terms) for quantity in self._quantities]
        self._first: Fixed = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        columns = np.array(terms, dtype=np.int64).T
        detail, base, stride, sign = (np.ascontiguousarray(column) for column in columns)
        self._terms = (self._first, detail, base, stride, sign)
        self.has_details = bool(columns[0].any())
        self._factor: Yields = np.array([quantity.factor for quantity in self._quantities])

    def start_tree(self, root: Fixed, details: Details, features: Fixed) -> Fixed | None:
        """Fix the units of a tree that may cut on these features: after this the root has s = b = 1.

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
        factor[0] /= s
        factor[1 : 2 + self._n_sources] /= b
        if self._has_mc:
            # One unit of a weight and of a squared weight is 2^−SUM_BITS each.
            factor[2 + self._n_sources] *= math.ldexp(1.0, SUM_BITS) / float(b) ** 2
        self._factor = factor
        leading = self._leading(root, np.array([s, b], dtype=np.int64), features)[0]
        return np.asarray(total_sums(root, self._details(details, leading)[0], int(leading[0]), *self._terms))

    def _leading(self, histogram: Fixed, sums: Fixed, features: Fixed) -> tuple[Fixed, Yields]:
        """Return the feature with the largest bound on Q_L + Q_R, and the bounds of all."""
        bounds = np.asarray(bound_features(histogram, sums, self._factor, *self._terms, features, self._n_cuts))
        at = int(np.argmax(bounds))
        return features[at : at + 1], bounds

    def describe(self, sums: Fixed) -> Yield:
        """Yields, significance and output of a node."""
        s, b = float(sums[0] * self._factor[0]), float(sums[1] * self._factor[1])
        sigma2 = float(node_variance(sums, self._factor, self._n_sources, self._has_mc))
        q = float(significance_value(s, b, sigma2))
        return Yield(s, b, sigma2, q, 2.0 * purity_value(s, b, sigma2) - 1.0)

    def promise(self, histogram: Fixed, sums: Fixed, q: float, features: Fixed) -> float:
        """Return what ΔQ of a node cannot pass, found without details."""
        return float(self._leading(histogram, sums, features)[1].max()) - q

    def best_split(self, histogram: Fixed, details: Details, sums: Fixed, q: float, features: Fixed) -> Split:
        """Largest ΔQ over all cuts on some features; ties go to the first feature, then the lowest cut.

        ΔQ without systematics is a bound that needs no details. They are asked for where that bound is largest, and
        then for the features that could still do better: usually few, where σ_b is small against √b.
        """
        if not self.has_details:
            return self._scan(histogram, details, sums, q, features)
        leading, bounds = self._leading(histogram, sums, features)
        best = self._scan(histogram, details, sums, q, leading)
        rest = (bounds - q >= best.gain) & (bounds > -np.inf) & (features != leading)
        if rest.any():
            other = self._scan(histogram, details, sums, q, features[rest])
            best = max(best, other, key=lambda split: (split.gain, -split.feature))
        return best

    def _scan(self, histogram: Fixed, details: Details, sums: Fixed, q: float, features: Fixed) -> Split:
        """Judge these features, given in increasing order, exactly."""
        parts = np.array_split(np.arange(len(features)), max(1, min(self._workers.n_threads, len(features) // 2)))
        given = self._details(details, features)
        lefts = np.zeros((len(parts), len(self._quantities)), dtype=np.int64)
        rules = (sums, q, self._factor, self._n_sources, self._has_mc, self._min_entries, *self._terms)
        shares = [
            (histogram, given[part], *rules, features[part], self._n_cuts, lefts[i]) for i, part in enumerate(parts)
        ]
        found = [Split(*one, left) for one, left in zip(self._workers.run(scan_features, shares), lefts, strict=True)]
        return max(found, key=lambda split: (split.gain, -split.feature))

    def _details(self, details: Details, features: Fixed) -> Fixed:
        return details(features) if self.has_details else np.empty((len(features), 0), dtype=np.int64)
