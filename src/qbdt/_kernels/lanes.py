"""Four 64-bit integers at once, which the compiler does not find by itself in a histogram's inner loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from qbdt.dtypes import Fixed

__all__ = ["LANES", "add_lanes", "aligned_zeros", "copy_lanes"]

LANES = 4
"""Integers of one vector: 256 bits; where registers are smaller the compiler uses two."""

CACHE_LINE = 64
"""Bytes that memory moves at once: vectors that straddle two lines cost twice."""


def aligned_zeros(*shape: int) -> Fixed:
    """Return an array of zeros that starts with a cache line."""
    size = int(np.prod(shape))
    memory: Fixed = np.zeros(size + CACHE_LINE // 8, dtype=np.int64)
    first = -memory.ctypes.data % CACHE_LINE // 8
    return memory[first : first + size].reshape(shape)


def add_lanes(out: Fixed, at: np.uint64, weights: Fixed, source: np.uint64) -> None:
    """Add four weights from `source` on to the four sums from `at` on; the arrays do not overlap.

    This is what runs where kernels are not compiled; compiled ones get vectors.
    """
    for lane in range(LANES):
        out[int(at) + lane] += weights[int(source) + lane]


def copy_lanes(out: Fixed, at: np.uint64, weights: Fixed, source: np.uint64) -> None:
    """Copy four weights from `source` on to where `at` says."""
    for lane in range(LANES):
        out[int(at) + lane] = weights[int(source) + lane]


def _vector(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Return a pointer to four integers of an array."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), ir.VectorType(ir.IntType(64), LANES).as_pointer())


@intrinsic
def _add_vector(typing: Any, out: Any, at: Any, weights: Any, source: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = _vector(context, builder, signature.args[0], *arguments[:2])
        given = _vector(context, builder, signature.args[2], *arguments[2:])
        sums = builder.add(builder.load(target, align=8), builder.load(given, align=8))
        builder.store(sums, target, align=8)
        return context.get_dummy_value()

    return types.void(out, at, weights, source), generate


@intrinsic
def _copy_vector(typing: Any, out: Any, at: Any, weights: Any, source: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = _vector(context, builder, signature.args[0], *arguments[:2])
        given = _vector(context, builder, signature.args[2], *arguments[2:])
        builder.store(builder.load(given, align=8), target, align=8)
        return context.get_dummy_value()

    return types.void(out, at, weights, source), generate


@overload(add_lanes)
def _compiled_add_lanes(out: Any, at: Any, weights: Any, source: Any) -> Any:
    def add(out: Any, at: Any, weights: Any, source: Any) -> None:
        _add_vector(out, at, weights, source)

    return add


@overload(copy_lanes)
def _compiled_copy_lanes(out: Any, at: Any, weights: Any, source: Any) -> Any:
    def copy(out: Any, at: Any, weights: Any, source: Any) -> None:
        _copy_vector(out, at, weights, source)

    return copy
