from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from qbdt.data.events import Events
from qbdt.errors import DataError


def make(n: int, seed: int = 0) -> Events:
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {"a": random.normal(size=n), "b": random.normal(size=n).astype(np.float32)}
    return Events(columns, random.normal(size=n), {"event": np.arange(n)})


slices = st.builds(
    slice,
    st.one_of(st.none(), st.integers(-12, 12)),
    st.one_of(st.none(), st.integers(-12, 12)),
    st.sampled_from([None, 1, 2, 3, -1, -2]),
)
selections = st.one_of(slices, st.just("mask"), st.just("index"))


@given(n=st.integers(0, 10), steps=st.lists(selections, max_size=4), seed=st.integers(0, 99))
def test_any_chain_of_selections_equals_numpy(n, steps, seed):
    random = np.random.default_rng(seed)
    events = make(n)
    weight, a, ids = events.weight, events.column("a"), events.identifier("event")
    for step in steps:
        if step == "mask":
            step = random.random(len(weight)) < 0.5
        elif step == "index":
            step = random.integers(-len(weight), max(len(weight), 1), size=5 if len(weight) else 0)
        events, weight, a, ids = events[step], weight[step], a[step], ids[step]
    np.testing.assert_array_equal(events.weight, weight)
    np.testing.assert_array_equal(events.column("a"), a)
    np.testing.assert_array_equal(events.identifier("event"), ids)
    assert events.n_rows == len(weight)


@given(n=st.integers(1, 40), size=st.integers(1, 50))
def test_chunks_joined_are_the_whole(n, size):
    events = make(n)
    joined = Events.concatenate(list(events.chunks(size)))
    np.testing.assert_array_equal(joined.matrix(), events.matrix())
    np.testing.assert_array_equal(joined.weight, events.weight)


def test_contiguous_slices_share_memory_and_masks_copy_no_feature():
    events = make(10)
    assert np.shares_memory(events[2:7].column("a"), events.column("a"))
    masked = events[events.column("a") > 0]
    assert masked._columns is events._columns


def test_arrays_are_read_only_but_the_callers_stay_writable():
    values = np.zeros(3)
    events = Events({"a": values}, np.ones(3))
    values[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        events.column("a")[0] = 2.0


def test_types():
    events = Events({"flag": np.array([True, False]), "n": np.array([1, 2], np.int16), "big": [1, 2]}, [1, 1])
    assert [events.column(name).dtype for name in events.features] == [np.float32, np.float32, np.float64]


@pytest.mark.parametrize(
    ("columns", "weight", "ids", "message"),
    [
        ({"a": [1, 2]}, [1], {}, "column a has 2 rows, the weights have 1"),
        ({"a": [[1, 2]]}, [1], {}, r"column a has shape \(1, 2\)"),
        ({"a": ["x"]}, [1], {}, "column a has type"),
        ({"a": [1]}, [np.nan], {}, "weight of row 0 is nan"),
        ({"a": [1, 1]}, [1, -np.inf], {}, "weight of row 1 is -inf"),
        ({"a": [1]}, ["x"], {}, "weights have type"),
        ({"a": [1]}, [1], {"id": [1, 2]}, "column id has 2 rows"),
    ],
)
def test_bad_input(columns, weight, ids, message):
    with pytest.raises(DataError, match=message):
        Events(columns, weight, ids)


def test_unknown_names_are_told():
    events = make(3)
    with pytest.raises(DataError, match="no feature c; there are: a, b"):
        events.column("c")
    with pytest.raises(DataError, match="no identifier column run; there are: event"):
        events.identifier("run")
    with pytest.raises(DataError, match="a mask of 2 entries for 3 rows"):
        events[np.array([True, False])]
    with pytest.raises(DataError, match="cannot join"):
        Events.concatenate([events, events.with_features(["a"])])


def test_rows_are_counted_alike_in_features_and_weights_for_any_type_of_index():
    events = make(400)[::2]
    picked = events[np.array([150, 180], dtype=np.uint8)]
    np.testing.assert_array_equal(picked.identifier("event"), [300, 360])
    np.testing.assert_array_equal(picked.weight, events.weight[[150, 180]])
    for wrong, message in ((3, "slice"), ([0.5], "float64"), ([400], "row 400 is asked for; there are 200")):
        with pytest.raises(DataError, match=message):
            events[wrong]  # type: ignore[index]
    with pytest.raises(DataError, match="size=0"):
        list(events.chunks(0))


def test_effective_entries():
    assert Events({"a": np.zeros(2)}, np.full(2, 1e200)).effective_entries == pytest.approx(2, rel=1e-15)
    assert make(0).effective_entries == 0
    assert Events({"a": np.zeros(4)}, np.full(4, 2.5)).effective_entries == pytest.approx(4, rel=1e-15)
