"""Vector instructions for the inner loop of histograms, which the compiler does not find by itself.

Several columns of a row at once, and memory that is asked for before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from qbdt.arrays import BINS, FEATURES_PER_WORD, Columns, Fixed

LANES = 4
"""Columns treated at once: 256 bits of sums; where registers are smaller the compiler uses two."""

AHEAD = 64
"""Rows between the one in use and the one that is prefetched: what is done with them takes longer than memory does."""

CACHE_LINE = 64
"""Bytes that memory moves at once: vectors that straddle two lines cost twice."""


def aligned_zeros(shape: tuple[int, ...], kind: Any) -> Any:
    """Return an array of zeros that starts with a cache line."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    first = -memory.ctypes.data % CACHE_LINE
    return memory[first : first + size].view(kind).reshape(shape)


def prefetch(values: Any, index: np.uint64) -> None:
    """Ask for the cache line of a number that will be needed soon; without a compiler this does nothing."""


def add_weight_word(out: Fixed, word: np.uint64, weight: np.int64) -> None:
    """Add the weight of a row to the bins of a word's eight features; sums are (feature, bin)."""
    for feature in range(FEATURES_PER_WORD):
        out[feature * BINS + (int(word) >> (8 * feature) & 255)] += weight


def add_word(out: Fixed, word: np.uint64, columns: Columns, source: np.uint64, double: bool) -> None:
    """Add four columns of a row, from `source` on, or eight where `double`, to the bins of a word's eight features.

    Sums are laid out as (feature, bin, column). This is what runs where kernels are not compiled; compiled ones get
    vectors, which stay in registers for all features.
    """
    n_columns = 2 * LANES if double else LANES
    for feature in range(FEATURES_PER_WORD):
        at = (feature * BINS + (int(word) >> (8 * feature) & 255)) * n_columns
        for c in range(n_columns):
            out[at + c] += columns[int(source) + c]


def add_pair(out: Fixed, word: np.uint64, pairs: Fixed, source: np.uint64) -> None:
    """Add the pair of a row, from `source` on, to the bin of a word's first feature; sums are (bin, pair)."""
    at = 2 * (int(word) & 255)
    out[at] += pairs[int(source)]
    out[at + 1] += pairs[int(source) + 1]


def add_pair_word(out: Fixed, word: np.uint64, pairs: Fixed, source: np.uint64) -> None:
    """Add the pair of a row to the bins of a word's eight features; sums are (feature, bin, pair)."""
    for feature in range(FEATURES_PER_WORD):
        add_pair(out[2 * BINS * feature :], np.uint64(int(word) >> (8 * feature)), pairs, source)


def copy_lanes(out: Columns, at: np.uint64, columns: Columns, source: np.uint64) -> None:
    """Copy four columns from `source` on to where `at` says."""
    for lane in range(LANES):
        out[int(at) + lane] = columns[int(source) + lane]


def _vector(builder: Any, data: Any, index: Any, bits: int, lanes: int = LANES) -> Any:
    """Return a pointer to some integers, four unless told."""
    number = ir.IntType(bits)
    vector = ir.VectorType(number, lanes) if lanes > 1 else number
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _memory(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _load_columns(builder: Any, columns: Any, source: Any, n_vectors: int) -> list[Any]:
    """Load so many times four columns, as 64-bit integers."""
    given = []
    for vector in range(n_vectors):
        index = builder.add(source, ir.Constant(ir.IntType(64), LANES * vector))
        narrow = builder.load(_vector(builder, columns, index, 32), align=4)
        given.append(builder.sext(narrow, ir.VectorType(ir.IntType(64), LANES)))
    return given


def _add_vectors(builder: Any, sums: Any, word: Any, given: list[Any], lanes: int, n_features: int) -> None:
    """Add vectors, which lie side by side in each bin, to the bins of a word's first features."""
    whole = ir.IntType(64)
    for feature in range(n_features):
        code = builder.and_(builder.lshr(word, ir.Constant(whole, 8 * feature)), ir.Constant(whole, 255))
        row = builder.add(code, ir.Constant(whole, BINS * feature))
        for vector, addend in enumerate(given):
            at = builder.add(
                builder.mul(row, ir.Constant(whole, lanes * len(given))), ir.Constant(whole, lanes * vector)
            )
            target = _vector(builder, sums, at, 64, lanes)
            builder.store(builder.add(builder.load(target, align=8), addend), target, align=8)


def _generate_add(n_vectors: int) -> Callable[..., Any]:
    """Return the code of `add_word` for so many times four columns."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums, columns = (_memory(context, builder, signature.args[i], arguments[i]) for i in (0, 2))
        given = _load_columns(builder, columns, arguments[3], n_vectors)
        _add_vectors(builder, sums, arguments[1], given, LANES, FEATURES_PER_WORD)
        return context.get_dummy_value()

    return generate


def _generate_pair(n_features: int) -> Callable[..., Any]:
    """Return the code of `add_pair` for so many features."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums, pairs = (_memory(context, builder, signature.args[i], arguments[i]) for i in (0, 2))
        given = builder.load(_vector(builder, pairs, arguments[3], 64, 2), align=8)
        _add_vectors(builder, sums, arguments[1], [given], 2, n_features)
        return context.get_dummy_value()

    return generate


@intrinsic
def _add_weight_word(typing: Any, out: Any, word: Any, weight: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums = _memory(context, builder, signature.args[0], arguments[0])
        _add_vectors(builder, sums, arguments[1], [arguments[2]], 1, FEATURES_PER_WORD)
        return context.get_dummy_value()

    return types.void(out, word, weight), generate


@intrinsic
def _prefetch(typing: Any, values: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _memory(context, builder, signature.args[0], arguments[0])
        line, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        target = builder.bitcast(builder.gep(data, [arguments[1]]), line)
        kind = ir.FunctionType(ir.VoidType(), [line, number, number, number])
        # To be read, into all caches, as data.
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", [line], kind), [target, *map(number, (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(values, index), generate


@intrinsic
def _add_four(typing: Any, out: Any, word: Any, columns: Any, source: Any) -> Any:
    return types.void(out, word, columns, source), _generate_add(1)


@intrinsic
def _add_eight(typing: Any, out: Any, word: Any, columns: Any, source: Any) -> Any:
    return types.void(out, word, columns, source), _generate_add(2)


@intrinsic
def _add_pair(typing: Any, out: Any, word: Any, pairs: Any, source: Any) -> Any:
    return types.void(out, word, pairs, source), _generate_pair(1)


@intrinsic
def _add_pair_word(typing: Any, out: Any, word: Any, pairs: Any, source: Any) -> Any:
    return types.void(out, word, pairs, source), _generate_pair(FEATURES_PER_WORD)


@intrinsic
def _copy_four(typing: Any, out: Any, at: Any, columns: Any, source: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, given = (_memory(context, builder, signature.args[i], arguments[i]) for i in (0, 2))
        row = builder.load(_vector(builder, given, arguments[3], 32), align=4)
        builder.store(row, _vector(builder, target, arguments[1], 32), align=4)
        return context.get_dummy_value()

    return types.void(out, at, columns, source), generate


# Numba gives an intrinsic its first argument.
@overload(prefetch)
def _compiled_prefetch(values: Any, index: Any) -> Any:
    def ask(values: Any, index: Any) -> None:
        _prefetch(values, index)  # type: ignore[call-arg]

    return ask


@overload(add_weight_word)
def _compiled_add_weight_word(out: Any, word: Any, weight: Any) -> Any:
    def add(out: Any, word: Any, weight: Any) -> None:
        _add_weight_word(out, word, weight)  # type: ignore[call-arg]

    return add


@overload(add_word)
def _compiled_add_word(out: Any, word: Any, columns: Any, source: Any, double: Any) -> Any:
    def add(out: Any, word: Any, columns: Any, source: Any, double: Any) -> None:
        if double:
            _add_eight(out, word, columns, source)  # type: ignore[call-arg]
        else:
            _add_four(out, word, columns, source)  # type: ignore[call-arg]

    return add


@overload(add_pair)
def _compiled_add_pair(out: Any, word: Any, pairs: Any, source: Any) -> Any:
    def add(out: Any, word: Any, pairs: Any, source: Any) -> None:
        _add_pair(out, word, pairs, source)  # type: ignore[call-arg]

    return add


@overload(add_pair_word)
def _compiled_add_pair_word(out: Any, word: Any, pairs: Any, source: Any) -> Any:
    def add(out: Any, word: Any, pairs: Any, source: Any) -> None:
        _add_pair_word(out, word, pairs, source)  # type: ignore[call-arg]

    return add


@overload(copy_lanes)
def _compiled_copy_lanes(out: Any, at: Any, columns: Any, source: Any) -> Any:
    def copy(out: Any, at: Any, columns: Any, source: Any) -> None:
        _copy_four(out, at, columns, source)  # type: ignore[call-arg]

    return copy
