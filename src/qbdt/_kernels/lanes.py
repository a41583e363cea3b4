"""Several columns of a row at once, which the compiler does not find by itself in a histogram's inner loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from qbdt.dtypes import Columns, Fixed

__all__ = ["LANES", "add_lanes", "aligned_zeros", "copy_lanes"]

LANES = 4
"""Columns treated at once: 256 bits of sums; where registers are smaller the compiler uses two."""

CACHE_LINE = 64
"""Bytes that memory moves at once: vectors that straddle two lines cost twice."""


def aligned_zeros(shape: tuple[int, ...], kind: Any) -> Any:
    """Return an array of zeros that starts with a cache line."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    first = -memory.ctypes.data % CACHE_LINE
    return memory[first : first + size].view(kind).reshape(shape)


def add_lanes(out: Fixed, at: np.uint64, columns: Columns, source: np.uint64) -> None:
    """Add four columns from `source` on to the four sums from `at` on.

    This is what runs where kernels are not compiled; compiled ones get vectors.
    """
    for lane in range(LANES):
        out[int(at) + lane] += columns[int(source) + lane]


def copy_lanes(out: Columns, at: np.uint64, columns: Columns, source: np.uint64) -> None:
    """Copy four columns from `source` on to where `at` says."""
    for lane in range(LANES):
        out[int(at) + lane] = columns[int(source) + lane]


def _vector(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Return a pointer to four integers of an array."""
    data = context.make_array(kind)(context, builder, array).data
    vector = ir.VectorType(ir.IntType(kind.dtype.bitwidth), LANES)
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


@intrinsic
def _add_vector(typing: Any, out: Any, at: Any, columns: Any, source: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = _vector(context, builder, signature.args[0], *arguments[:2])
        given = builder.load(_vector(context, builder, signature.args[2], *arguments[2:]), align=4)
        sums = builder.add(builder.load(target, align=8), builder.sext(given, target.type.pointee))
        builder.store(sums, target, align=8)
        return context.get_dummy_value()

    return types.void(out, at, columns, source), generate


@intrinsic
def _copy_vector(typing: Any, out: Any, at: Any, columns: Any, source: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = _vector(context, builder, signature.args[0], *arguments[:2])
        given = builder.load(_vector(context, builder, signature.args[2], *arguments[2:]), align=4)
        builder.store(given, target, align=4)
        return context.get_dummy_value()

    return types.void(out, at, columns, source), generate


@overload(add_lanes)
def _compiled_add_lanes(out: Any, at: Any, columns: Any, source: Any) -> Any:
    def add(out: Any, at: Any, columns: Any, source: Any) -> None:
        _add_vector(out, at, columns, source)  # type: ignore[call-arg]  # numba gives the first argument

    return add


@overload(copy_lanes)
def _compiled_copy_lanes(out: Any, at: Any, columns: Any, source: Any) -> Any:
    def copy(out: Any, at: Any, columns: Any, source: Any) -> None:
        _copy_vector(out, at, columns, source)  # type: ignore[call-arg]  # numba gives the first argument

    return copy
