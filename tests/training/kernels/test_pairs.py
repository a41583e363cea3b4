"""Histograms of pairs and their scan, against numpy and against trying every cut."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbdt.arrays import BINS, FEATURES_PER_WORD, MISSING, MISSING_LEFT, MISSING_RIGHT, NONE_MISSING
from qbdt.training.kernels.pairs import RowWords, add_pairs, first_largest, scan_pairs


def packed(codes):
    """Codes (row, feature) as words (word, row)."""
    n_rows, n_features = codes.shape
    n_words = -(-n_features // FEATURES_PER_WORD)
    padded = np.zeros((n_rows, n_words * FEATURES_PER_WORD), dtype=np.uint8)
    padded[:, :n_features] = codes
    return np.ascontiguousarray(padded.reshape(n_rows, n_words, FEATURES_PER_WORD).transpose(1, 0, 2)).view(np.uint64)[
        ..., 0
    ]


def naive_histogram(codes, pairs, rows):
    hist = np.zeros((codes.shape[1], BINS, 2), dtype=np.int64)
    for row in rows:
        for feature, code in enumerate(codes[row]):
            hist[feature, code] += pairs[row]
    return hist


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32), n_features=st.integers(1, 19), whole=st.booleans())
def test_a_histogram_holds_the_sums_of_both_numbers(seed, n_features, whole):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    codes = rng.integers(0, BINS, (n, n_features)).astype(np.uint8)
    pairs = rng.integers(-(2**40), 2**40, (n, 2))
    rows = np.arange(n, dtype=np.int32) if whole else np.sort(rng.permutation(n)[: n // 2 + 1]).astype(np.int32)
    out = np.zeros(2 * n_features * BINS, dtype=np.int64)
    share = np.array([[0, 0, len(rows) // 2], [1, len(rows) // 2, len(rows)]])
    words = packed(codes)
    expected = naive_histogram(codes, pairs, rows)
    for laid_out in (RowWords(words.ravel(), 1, n), RowWords(words.T.ravel(), len(words), 1)):
        out[:] = 0
        add_pairs(laid_out, pairs.ravel(), n_features, rows, whole, share, out)
        assert np.array_equal(out.reshape(n_features, BINS, 2), expected)


@given(st.lists(st.sampled_from([-np.inf, 0.0, 1e-300, 0.5, 0.75, 3.0, 1e300])))
def test_the_first_of_the_largest_numbers_is_found(values):
    best = max(values, default=-np.inf)
    assert first_largest(np.array(values)) == (best, values.index(best) + 1 if best >= 0 else 0)


def naive_scan(hist, total, node_value, factor, ridge, least, n_cuts):
    best = (-np.inf, -1, 0, NONE_MISSING)

    def value(sums):
        top, bottom = sums[0] * factor[0], sums[1] * factor[1]
        return None if bottom < least or bottom + ridge <= 0 else top * top / (bottom + ridge)

    for feature, bins in enumerate(hist):
        seen = bool(bins[MISSING].any())
        for option in (MISSING_RIGHT, MISSING_LEFT) if seen else (MISSING_RIGHT,):
            for cut in range(1, n_cuts[feature] + 1):
                left = bins[:cut].sum(axis=0) + (bins[MISSING] if option == MISSING_LEFT else 0)
                sides = [value(left), value(total - left)]
                if None in sides:
                    continue
                gain = sides[0] + sides[1] - node_value
                if gain > best[0]:
                    best = (gain, feature, cut, option if seen else NONE_MISSING)
    return best


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    missing=st.booleans(),
    ridge=st.sampled_from([0.0, 1.0]),
    least=st.sampled_from([0.0, 5.0]),
    negative=st.booleans(),
)
def test_the_scan_finds_the_best_cut(seed, missing, ridge, least, negative):
    rng = np.random.default_rng(seed)
    n_cuts = rng.integers(0, 12, 4)
    hist = np.zeros((4, BINS, 2), dtype=np.int64)
    for feature, cuts in enumerate(n_cuts):
        hist[feature, : cuts + 1, 0] = rng.integers(-50, 50, cuts + 1)
        hist[feature, : cuts + 1, 1] = rng.integers(-5 if negative else 0, 50, cuts + 1)
        hist[feature, MISSING] = rng.integers(0, 9, 2) if missing else 0
    total = hist[0].sum(axis=0)
    factor = np.array([0.5, 0.25])
    features, left = np.arange(4), np.zeros(2, dtype=np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):  # as plain Python: cuts with such quotients are not taken
        found = scan_pairs(hist.ravel(), total, 1.5, factor, ridge, least, features, n_cuts, left)
    expected = naive_scan(hist, total, 1.5, factor, ridge, least, n_cuts)
    assert tuple(found) == expected
    if found[1] >= 0:
        own = hist[found[1]]
        assert np.array_equal(left, own[: found[2]].sum(axis=0) + (own[MISSING] if found[3] == MISSING_LEFT else 0))
