"""Rows that try every cut of a model: exactly at it, just below and just above, missing and infinite values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Events, FoldRule, SplitFolds
from qbdt.models.export.comparison import Rows, float32_at_least
from qbdt.training import Model, SingleModel
from qbdt.trees import Tree

BATCH = 50_000
"""Rows compared at a time."""

RANDOM_ROWS = 500
"""Rows of random values around the cuts, besides those that are led to a node."""


def make_probes(model: Model, seed: int = 0, *, fractions: bool = True) -> Iterator[Rows]:
    """Rows that reach every inner node of every tree, with values around its cut; in batches.

    The rows for the model of one fold have identifiers of that fold, drawn over all 64-bit numbers. `fractions` says
    whether categorical features take values that are no whole numbers too, which XGBoost cuts off.
    """
    rng = np.random.default_rng(seed)
    for fold, member in enumerate(model.members):
        pools = _Pools(member, fractions)
        rows: list[Floats] = [_draw_rows(pools, rng)]
        for tree in member.trees:
            rows += _reach_nodes(tree, pools, rng)
            if sum(map(len, rows)) > BATCH:
                yield _join(model, rows, fold, rng)
                rows = []
        if rows:
            yield _join(model, rows, fold, rng)


def draw_identifiers(rule: FoldRule, fold: int, n: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """Draw identifiers of events in one fold, with the extremes of 64-bit numbers among them where they are in it."""
    if isinstance(rule, SplitFolds):
        return {rule.column: np.full(n, fold, dtype=np.int64)}
    limits = np.iinfo(np.int64)
    extremes = np.array([limits.min, limits.max, -1, 0, 1, 2**32, -(2**32)], dtype=np.int64)
    found: list[NDArray[np.int64]] = []
    while sum(map(len, found)) < max(n, 1):
        drawn = rng.integers(limits.min, limits.max, size=(40 * rule.k, len(rule.columns)), dtype=np.int64)
        drawn[: len(extremes)] = extremes[:, None] if not found else drawn[: len(extremes)]
        ids = dict(zip(rule.columns, drawn.T, strict=True))
        found.append(drawn[rule.assign(Events({}, np.ones(len(drawn)), ids)) == fold])
    pool = np.concatenate(found)
    chosen = pool[np.arange(n) % len(pool)]
    return dict(zip(rule.columns, np.ascontiguousarray(chosen.T), strict=True))


def _join(model: Model, rows: list[Floats], fold: int, rng: np.random.Generator) -> Rows:
    values = np.concatenate(rows)
    if model.folds is None:
        return Rows(values, {})
    return Rows(values, draw_identifiers(model.folds, fold, len(values), rng))


def _surround(threshold: float) -> Floats:
    """Values that a comparison with a threshold could get wrong, in double and in single precision."""
    single = float32_at_least(np.array([threshold]))[0]
    with np.errstate(over="ignore", under="ignore"):
        singles = [np.nextafter(single, np.float32(-np.inf)), single, np.nextafter(single, np.float32(np.inf))]
        doubles = [np.nextafter(threshold, -np.inf), threshold, np.nextafter(threshold, np.inf)]
    return np.array([*doubles, *singles, np.nan, -np.inf, np.inf], dtype=np.float64)


def _surround_categories(known: list[float], fractions: bool) -> Floats:
    """All categories, values between, below and above them, missing and infinite ones."""
    steps = (-1.0, -0.5, 0.25, 1.0) if fractions else (-1.0, 1.0)
    unknown = {value + step for value in known for step in steps} - set(known)
    return np.array([*known, *sorted(unknown), np.nan, -np.inf, np.inf])


class _Pools:
    """For every feature the values around its cuts, to draw from."""

    def __init__(self, member: SingleModel, fractions: bool) -> None:
        cuts: list[set[float]] = [set() for _ in member.features]
        known: dict[int, set[float]] = {}
        for tree in member.trees:
            for node in tree.nodes[~tree.is_leaf & ~tree.is_set]:
                cuts[node["feature"]].add(float(node["threshold"]))
            for feature, values in tree.categories.items():
                known.setdefault(feature, set()).update(values.tolist())
        self.categories = {feature: _surround_categories(sorted(found), fractions) for feature, found in known.items()}
        pools = [np.concatenate([_surround(cut) for cut in sorted(found)] or [np.zeros(1)]) for found in cuts]
        pools = [self.categories.get(feature, pool) for feature, pool in enumerate(pools)]
        self.n = len(pools)
        self._sizes = np.array([len(pool) for pool in pools])
        self._values = np.zeros((self.n, self._sizes.max()))
        for values, pool in zip(self._values, pools, strict=True):
            values[: len(pool)] = pool

    def draw(self, rng: np.random.Generator, n_rows: int) -> Floats:
        """Draw rows as (row, feature)."""
        place = (rng.random((n_rows, self.n)) * self._sizes).astype(np.intp)
        return np.asarray(self._values[np.arange(self.n), place])


class _Place(NamedTuple):
    """A node, and what leads to it: limits of features, and values of categorical ones."""

    node: int
    low: Floats
    high: Floats
    categories: dict[int, Floats]


def _draw_rows(pools: _Pools, rng: np.random.Generator) -> Floats:
    rows = pools.draw(rng, RANDOM_ROWS)
    for i, value in enumerate((np.nan, np.inf, -np.inf, 0.0)):
        rows[i] = value
    return rows


def _reach_nodes(tree: Tree, pools: _Pools, rng: np.random.Generator) -> list[Floats]:
    """Rows that reach each inner node of a tree, if any can, with the values around its cut."""
    rows = []
    todo = [_Place(0, np.full(pools.n, -np.inf), np.full(pools.n, np.inf), pools.categories)]
    while todo:
        at, low, high, categories = todo.pop()
        node = tree.nodes[at]
        if node["feature"] < 0:
            continue
        feature, threshold = int(node["feature"]), float(node["threshold"])
        base = pools.draw(rng, 1)[0]
        bound = (low > -np.inf) | (high < np.inf)
        inside = (base >= low) & (base < high)
        edge = np.where(low > -np.inf, low, np.nextafter(high, -np.inf))
        base = np.where(inside | ~bound, base, edge)
        for other, values in categories.items():
            base[other] = rng.choice(values) if len(values) else base[other]
        tried = pools.categories[feature] if tree.is_set[at] else _surround(threshold)
        block = np.tile(base, (len(tried), 1))
        block[:, feature] = tried
        rows.append(block)
        below, above = high.copy(), low.copy()
        if tree.is_set[at]:
            own = categories[feature]
            left = tree.goes_left(at, own)
            ways = [{**categories, feature: own[side]} for side in (left, ~left)]
        else:
            below[feature], above[feature] = min(high[feature], threshold), max(low[feature], threshold)
            ways = [categories, categories]
        todo.append(_Place(int(node["left"]), low, below, ways[0]))
        todo.append(_Place(int(node["right"]), above, high, ways[1]))
    return rows
