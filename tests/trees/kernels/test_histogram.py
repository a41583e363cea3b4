"""Histogram and partition kernels against the obvious loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from qbdt.arrays import BINS, FEATURES_PER_WORD
from qbdt.trees.kernels.histogram import PLANE, add_rows, add_systematics
from qbdt.trees.kernels.lanes import add_weight_word, aligned_zeros, prefetch
from qbdt.trees.kernels.node_division import copy_divided, divide_in_place, divide_rows

SPANS = [1.0, -1.0, 0.0, 1e-12, 1e12, -3.7e11]


def binned(rng, n_rows, n_features):
    codes = rng.integers(0, BINS, (n_rows, n_features)).astype(np.uint8)
    n_words = -(-n_features // 8)
    packed = np.zeros((n_words, n_rows, 8), np.uint8)
    for feature in range(n_features):
        packed[feature // 8, :, feature % 8] = codes[:, feature]
    return codes, np.ascontiguousarray(packed).view(np.uint64)[:, :, 0].copy()


def naive_histogram(codes, weights, chosen):
    """Python integers: no overflow, no order. Weights are (row, column); returns (feature, bin, column)."""
    hist = np.zeros((codes.shape[1], BINS, weights.shape[1]), dtype=object)
    for row in np.flatnonzero(chosen):
        for feature in range(codes.shape[1]):
            hist[feature, codes[row, feature]] += weights[row].astype(object)
    return hist


def chosen_rows(rng, starts, sizes, whole):
    chosen = np.ones(sum(sizes), bool) if whole else rng.random(sum(sizes)) < 0.4
    rows, share = np.empty(sum(sizes), np.int32), []
    for j, (start, n) in enumerate(zip(starts, sizes, strict=True)):
        found = np.flatnonzero(chosen[start : start + n]) + start
        rows[start : start + found.size] = found
        share.append((j, start, start + found.size))
    return chosen, rows, np.array(share)


@pytest.mark.parametrize("n_features", [1, 3, 8, 11, 28])
@pytest.mark.parametrize("whole", [True, False])
def test_histogram_equals_the_naive_one(n_features, whole):
    rng = np.random.default_rng(n_features)
    sizes, starts = [50, 70], [0, 50]
    codes, words = binned(rng, 120, n_features)
    weights = np.rint(rng.choice(SPANS, 120) * 2.0**20).astype(np.int64)
    chosen, rows, share = chosen_rows(rng, starts, sizes, whole)
    out = np.zeros(2 * n_features * BINS, np.int64)
    for part in (share[:1], share[1:]):
        add_rows(words, weights, n_features, rows, whole, part, out)
    for j, (start, n) in enumerate(zip(starts, sizes, strict=True)):
        own = chosen & (np.arange(120) >= start) & (np.arange(120) < start + n)
        expected = naive_histogram(codes, weights[:, None], own).ravel()
        assert np.array_equal(out.reshape(2, -1)[j].astype(object), expected)


def test_scattered_rows_of_several_blocks():
    """More rows than are gathered at a time, and than memory is asked for ahead."""
    rng = np.random.default_rng(5)
    n = 6000
    codes, words = binned(rng, n, 11)
    weights = rng.integers(-(2**40), 2**40, n)
    chosen, rows, share = chosen_rows(rng, [0], [n], False)
    out = np.zeros(11 * BINS, np.int64)
    add_rows(words, weights, 11, rows, False, share, out)
    expected = np.zeros((11, BINS), np.int64)
    for feature in range(11):
        np.add.at(expected[feature], codes[chosen, feature], weights[chosen])
    assert out.tolist() == expected.ravel().tolist()


def test_what_runs_without_a_compiler_is_the_same():
    rng = np.random.default_rng(6)
    word, weight = rng.integers(0, 2**64, dtype=np.uint64), np.int64(-7)
    plain, compiled = np.zeros((2, FEATURES_PER_WORD * BINS), np.int64)
    add_weight_word(plain, word, weight)

    @njit
    def add(out, word, weight):
        prefetch(out, np.uint64(0))
        add_weight_word(out, word, weight)

    add(compiled, word, weight)
    prefetch(plain, np.uint64(0))
    assert plain.tolist() == compiled.tolist()
    assert plain.sum() == 8 * weight


def naive_planes(histogram, width):
    """Return (feature, bin, column) as planes of at most eight columns, flat, with room for eight features."""
    full = np.zeros((FEATURES_PER_WORD, BINS, width), dtype=object)
    full[: len(histogram)] = histogram
    return np.concatenate([full[:, :, i : i + PLANE].ravel() for i in range(0, width, PLANE)] or [full.ravel()])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("width", [0, 4, 8, 12, 20])
def test_details_equal_the_naive_ones(width, whole):
    rng = np.random.default_rng(width)
    sizes, starts = [40, 60, 50], np.array([0, 40, 100])  # signal, background with further columns, variation
    codes, words = binned(rng, 150, 11)
    weights = np.rint(rng.choice(SPANS, 150) * 2.0**20).astype(np.int64)
    columns = rng.integers(-(2**30), 2**30, (60, width), dtype=np.int32, endpoint=True)
    chosen, rows, share = chosen_rows(rng, starts, sizes, whole)
    widths, offsets = np.array([0, width, 0]), np.array([0, 0, 60 * width])
    bases = FEATURES_PER_WORD * BINS * np.array([0, 0, width])
    out = np.zeros((2, FEATURES_PER_WORD * BINS * (width + 1)), np.int64)
    asked = share[1:] if width else share[2:]
    places = (starts, offsets, widths, bases)
    add_systematics(words, np.array([1, 0]), 11, weights, columns.ravel(), *places, rows, whole, asked, out)
    table = np.zeros((150, width), np.int64)
    table[40:100] = columns
    for row, features in zip(out, (slice(8, 11), slice(0, 8)), strict=True):
        background = naive_histogram(codes[:, features], table, chosen & (np.arange(150) < 100))
        variation = naive_histogram(codes[:, features], weights[:, None], chosen & (np.arange(150) >= 100))
        expected = np.concatenate([naive_planes(background, width), naive_planes(variation, 1)])
        real = np.concatenate([naive_planes(np.ones_like(part), part.shape[2]) for part in (background, variation)])
        assert np.array_equal(np.where(real, row, 0).astype(object), expected)


def test_memory_starts_with_a_cache_line():
    for n in (1, 5, 1000):
        for kind in (np.int32, np.int64):
            array = aligned_zeros((n, 3), kind)
            assert array.ctypes.data % 64 == 0
            assert array.shape == (n, 3)
            assert array.dtype == kind
            assert not array.any()


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.booleans())
def test_partition_equals_the_naive_one(seed, whole):
    rng = np.random.default_rng(seed)
    codes, words = binned(rng, 60, 9)
    codes_of = codes[:, 8].copy()
    rows = np.sort(rng.permutation(60)).astype(np.int32)
    share = np.array([[0, 0, 25], [1, 25, 60]])
    scratch = np.empty(60, np.int32)
    table = rng.integers(0, 2, BINS).astype(np.uint8)
    counts = divide_rows(words, 8, table, rows, whole, share, scratch)
    right = table[codes_of] == 1
    assert counts.tolist() == [int((~right[a:b]).sum()) for _, a, b in share]
    out = np.empty(60, np.int32)
    lefts = np.array([0, 25])
    copy_divided(scratch, share, counts, lefts, lefts + counts, out)
    expected = [np.concatenate([np.flatnonzero(~right[a:b]), np.flatnonzero(right[a:b])]) + a for _, a, b in share]
    assert out.tolist() == np.concatenate(expected).tolist()
    for of_feature, step in ((codes_of, 1), (words[1].view(np.uint8), 8)):
        own = rows.copy()
        middles = divide_in_place(of_feature, step, table, own, whole, share, scratch)
        assert middles.tolist() == (lefts + counts).tolist()
        assert own.tolist() == out.tolist()
