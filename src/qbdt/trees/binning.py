"""Bin edges of every feature, and bin codes of events.

Flows in: `Events`. Flows out: a `Binning` (edges per feature) and byte codes that kernels read. Edges are where a tree
may cut: x < edge goes left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import BINS, FEATURES_PER_WORD, MISSING, Categories, Codes, Floats, Indices
from qbdt.data import Events
from qbdt.errors import ConfigError, DataError
from qbdt.threads import Workers
from qbdt.trees.event_matrices import chunk_matrices, chunk_ranges
from qbdt.trees.kernels.codes import GUIDE_CELLS, encode
from qbdt.trees.quantiles import QuantileSketch, quantile_edges

FixedBins: TypeAlias = tuple[int, float, float]
"""Number of equal-width bins, low edge, high edge."""

BinningChoice: TypeAlias = str | Sequence[FixedBins] | Mapping[str, FixedBins]


@dataclass(frozen=True, eq=False)
class Binning:
    """Where each feature may be cut.

    Examples
    --------
    >>> binning = Binning(("pt",), (np.array([20.0, 40.0]),))
    >>> binning.codes(Events({"pt": [10.0, 20.0, 50.0, np.nan]}, np.ones(4)))[:, 0]
    array([  0,   1,   2, 255], dtype=uint8)
    >>> years = np.array([2016.0, 2018.0])
    >>> binning = Binning(("year",), (category_edges(years),), {"year": years})
    >>> binning.codes(Events({"year": [2016, 2017, 2018]}, np.ones(3)))[:, 0]
    array([  0, 255,   1], dtype=uint8)
    """

    features: tuple[str, ...]  # Feature names
    # For each feature, increasing edges, at most 254; a value's code is the number of edges at or below it
    edges: tuple[Floats, ...]
    # For each categorical feature the values that have a code of their own, increasing; its edges are those of
    # `category_edges`. All other values count as missing.
    categories: Categories = field(default_factory=dict)

    @property
    def n_cuts(self) -> Indices:
        """Number of edges of each feature."""
        return np.array([edges.size for edges in self.edges], dtype=np.int64)

    @property
    def categories_by_number(self) -> dict[int, Floats]:
        """Values of categorical features by number of the feature, as trees have them."""
        return {self.features.index(name): values for name, values in self.categories.items()}

    @cached_property
    def lookup(self) -> tuple[Floats, Floats, Floats, NDArray[np.uint8], Indices]:
        """Edges in the form that the kernel reads, and the cells that shorten its search."""
        n = len(self.edges)
        padded = np.full((n, BINS), np.nan)
        low, inverse = np.zeros(n), np.ones(n)
        guides, most = np.zeros((n, GUIDE_CELLS + 3), dtype=np.uint8), np.zeros(n, dtype=np.int64)
        for i, edges in enumerate(self.edges):
            padded[i, : edges.size] = edges
            if edges.size:
                low[i] = edges[0]
            if edges.size > 1:
                with np.errstate(over="ignore"):
                    per_cell = GUIDE_CELLS / (edges[-1] - edges[0])
                low[i], inverse[i] = (edges[0], per_cell) if 0 < per_cell < np.inf else (0.0, 0.0)
            # A guide is the number of edges in the cells below; cells as the kernel finds them.
            with np.errstate(over="ignore", invalid="ignore"):
                place = (edges - low[i]) * inverse[i] + 1.0
            cells = np.minimum(np.fmax(place, 0.0), GUIDE_CELLS + 1.0).astype(np.int64)
            in_cell = np.bincount(cells + 1, minlength=GUIDE_CELLS + 3)
            guides[i], most[i] = np.cumsum(in_cell), in_cell.max()
        return padded, low, inverse, guides, most

    @cached_property
    def _value_of_code(self) -> dict[int, Floats]:
        """For each categorical feature, by number, the value of each code; NaN where a code has none."""
        found = {}
        for feature, values in self.categories_by_number.items():
            found[feature] = padded = np.full(BINS, np.nan)
            padded[: values.size] = values
        return found

    def encode(self, events: Events, out: Codes, start: int, workers: Workers) -> None:
        """Write the codes of events into `out` (word, row, feature in word) from row `start` on."""

        def encode_chunk(begin: int, end: int) -> None:
            self.encode_rows(events, begin, end, out, start + begin)

        workers.run(encode_chunk, chunk_ranges(events.n_rows))

    def encode_rows(self, events: Events, begin: int, end: int, out: Codes, start: int) -> None:
        """Write the codes of rows begin … end − 1 into `out` from row `start` on."""
        flat, places, step = _flat_places(out, len(self.features), start)
        for matrix, columns, rows in chunk_matrices(events, self.features, begin, end):
            with np.errstate(over="ignore"):
                encode(matrix, rows, columns, *self.lookup, flat, places, step)
            for place, feature in enumerate(columns.tolist() if self.categories else ()):
                if feature in self._value_of_code:
                    codes = out[feature // FEATURES_PER_WORD, start : start + rows.size, feature % FEATURES_PER_WORD]
                    codes[self._value_of_code[feature][codes] != matrix[rows, place]] = MISSING

    def codes(self, events: Events) -> NDArray[np.uint8]:
        """Return the codes of events as (row, feature)."""
        n_words = -(-len(self.features) // 8)
        out = np.zeros((n_words, events.n_rows, 8), dtype=np.uint8)
        with Workers(1) as workers:
            self.encode(events, out, 0, workers)
        return out.transpose(1, 0, 2).reshape(events.n_rows, -1)[:, : len(self.features)]


def _flat_places(codes: Codes, n_features: int, start: int) -> tuple[NDArray[np.uint8], Indices, int]:
    """Return the memory of codes (word, row, feature in word), the place of each feature's row `start`, and the step.

    Features may be next to each other in memory, as in training, or rows, as in scoring.
    """
    order = sorted(range(3), key=lambda axis: -codes.strides[axis])
    memory = codes.transpose(order)
    assert memory.flags.c_contiguous
    words, within = np.divmod(np.arange(n_features), FEATURES_PER_WORD)
    per_word, step, per_feature = codes.strides
    return memory.reshape(-1), words * per_word + within * per_feature + start * step, step


def make_binning(
    choice: BinningChoice,
    max_bins: int,
    features: tuple[str, ...],
    signal: Sequence[Events],
    background: Sequence[Events],
    workers: Workers,
    categories: Categories | None = None,
) -> Binning:
    """Edges by weighted quantiles, or of equal width as given.

    Parameters
    ----------
    choice
        "quantile", or one (number of bins, low, high) per feature, in order or by name.
    max_bins
        For quantiles: most bins, one of them for missing values.
    signal, background
        Nominal events; for quantiles each class counts as one event in all.
    categories
        Values of categorical features, each of which has a bin of its own.
    """
    categories = categories or {}
    if not isinstance(choice, str):
        _require_few_categories(categories, max_bins)
        return Binning(features, _make_fixed_edges(choice, features, categories), categories)
    if choice != "quantile":
        raise ConfigError(f"binning={choice!r}: must be 'quantile' or one (n_bins, low, high) per feature")
    if not 3 <= max_bins <= BINS:
        raise ConfigError(f"max_bins={max_bins}: must be from 3 to {BINS}, one of them for missing values")
    sketches = [QuantileSketch.of(events, workers) for events in (signal, background)]
    return quantile_binning(max_bins, features, sketches[0], sketches[1], workers, categories)


def _require_few_categories(categories: Categories, max_bins: int) -> None:
    """Refuse a feature with more categories than there are bins, one of which is for missing values."""
    for name, values in categories.items():
        if values.size > max_bins - 1:
            raise DataError(
                f"feature {name} is categorical and has {values.size} categories: at most {max_bins - 1} "
                "(max_bins - 1) are possible; merge rare ones, or do not declare it categorical"
            )


def category_edges(values: Floats) -> Floats:
    """Edges half-way between neighbouring categories."""
    return np.asarray(values[:-1] + 0.5 * np.diff(values))


def quantile_binning(
    max_bins: int,
    features: tuple[str, ...],
    signal: QuantileSketch,
    background: QuantileSketch,
    workers: Workers,
    categories: Categories | None = None,
) -> Binning:
    """Edges by weighted quantiles of two classes, each counting as one event in all; categories as they are."""
    known = categories or {}
    _require_few_categories(known, max_bins)
    n_signal, n_background = len(signal.hashes), len(background.hashes)
    weights = np.zeros((2, n_signal + n_background), dtype=np.int64)
    weights[0, :n_signal], weights[1, n_signal:] = signal.fixed_weights(), background.fixed_weights()

    def edges(i: int) -> Floats:
        if features[i] in known:
            return category_edges(known[features[i]])
        values = np.concatenate([signal.column(features[i]), background.column(features[i])])
        return quantile_edges(values, weights, max_bins - 1)

    return Binning(features, tuple(workers.run(edges, [(i,) for i in range(len(features))])), known)


def _make_fixed_edges(
    choice: Sequence[FixedBins] | Mapping[str, FixedBins], features: tuple[str, ...], categories: Categories
) -> tuple[Floats, ...]:
    """Inner edges of equal-width bins; the last is left out, as in the paper's program."""
    numbers = [name for name in features if name not in categories]
    if isinstance(choice, Mapping):
        if set(choice) != set(numbers):
            odd = sorted(set(choice) ^ set(numbers))
            raise ConfigError(
                f"binning names other features than the data (categorical ones have none): {', '.join(odd)}"
            )
        choice = [choice[name] for name in numbers]
    if len(choice) != len(numbers):
        raise ConfigError(f"binning has {len(choice)} entries for {len(numbers)} features that are not categorical")
    edges = {name: category_edges(values) for name, values in categories.items()}
    for name, bins in zip(numbers, choice, strict=True):
        n_bins, low, high = _check_bins(name, bins)
        edges[name] = low + (high - low) * np.arange(1, n_bins - 1) / n_bins
    return tuple(edges[name] for name in features)


def _check_bins(name: str, bins: FixedBins) -> FixedBins:
    try:
        n_bins, low, high = bins
        whole = int(n_bins)
        low, high = float(low), float(high)
    except (TypeError, ValueError):
        raise ConfigError(f"binning of {name}: {bins!r}: must be (n_bins, low, high)") from None
    if whole != n_bins or not 3 <= whole <= BINS:
        raise ConfigError(f"binning of {name}: n_bins={n_bins}: must be a whole number from 3 to {BINS}")
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ConfigError(f"binning of {name}: low={low}, high={high}: two finite numbers, low < high, are needed")
    return whole, low, high
