"""Bin codes against searchsorted, and the order-free hash of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qbdt.arrays import MISSING
from qbdt.data.events import Events
from qbdt.trees.binning import Binning
from qbdt.trees.kernels.codes import hash_rows

ANY = st.floats(allow_nan=True, allow_infinity=False, width=64)


@settings(max_examples=100)
@given(
    hnp.arrays(np.float64, st.integers(1, 40), elements=ANY),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=40, unique=True),
)
def test_codes_equal_searchsorted(values, edges):
    edges = np.unique(np.array(edges, dtype=float))
    with np.errstate(over="ignore", under="ignore"):
        values = np.concatenate([values, edges, np.nextafter(edges, -np.inf)])
    values = values[~np.isinf(values)]
    codes = Binning(("x",), (edges,)).codes(Events({"x": values}, np.ones(values.size)))[:, 0]
    expected = np.where(np.isnan(values), MISSING, np.searchsorted(edges, values, side="right"))
    assert codes.tolist() == expected.tolist()


@pytest.mark.parametrize("stretch", [1.0, 1e9])  # a far edge puts all others into one cell: searched by halving
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F", "columns", "rows"])
def test_codes_of_any_layout(stretch, dtype, order):
    rng = np.random.default_rng(1)
    table = rng.normal(size=(500, 10)).astype(dtype)
    edges = tuple(np.append(np.sort(rng.normal(size=100)), 10 * stretch) for _ in range(10))
    names = tuple(f"x{i}" for i in range(10))
    if order == "columns":
        columns = {name: table[:, i].copy() for i, name in enumerate(names)}
    else:
        table = np.asarray(table, order="F" if order == "F" else "C")
        columns = {name: table[:, i] for i, name in enumerate(names)}
    events = Events(columns, np.ones(500))
    keep = np.arange(500)
    if order == "rows":
        keep = rng.permutation(500)[:200]
        events = events[keep]
    expected = [np.searchsorted(edges[i], table[keep, i].astype(float), side="right") for i in range(10)]
    assert np.array_equal(Binning(names, edges).codes(events), np.stack(expected, axis=1))


def test_slices_with_steps_are_read_in_place():
    x = np.arange(100.0)
    events = Events({"x": x, "y": -x}, np.ones(100))[90:10:-7]
    codes = Binning(("x", "y"), (np.array([50.0]), np.array([-50.0]))).codes(events)
    assert np.array_equal(codes[:, 0], x[90:10:-7] >= 50)
    assert np.array_equal(codes[:, 1], -x[90:10:-7] >= -50)


def test_hash_does_not_see_the_order():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(50, 4))
    rows = np.arange(50, dtype=np.int32)

    def hashes(values):
        out = np.zeros(50, np.uint64)
        with np.errstate(over="ignore"):
            hash_rows(values, rows, out)
        return out

    plain = hashes(table)
    assert len(set(plain.tolist())) == 50
    assert np.array_equal(hashes(np.ascontiguousarray(table[:, [2, 0, 3, 1]])), plain)
    assert np.array_equal(hashes(np.ascontiguousarray(table[::-1]))[::-1], plain)
