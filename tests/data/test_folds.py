from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from qbdt.data.events import Events
from qbdt.data.folds import FoldRule, HashFolds, ModuloFolds, SplitFolds
from qbdt.errors import DataError


def events_with(**ids) -> Events:
    n = len(next(iter(ids.values())))
    return Events({"x": np.zeros(n)}, np.ones(n), {name: np.asarray(values) for name, values in ids.items()})


integers = arrays(np.int64, st.integers(1, 30), elements=st.integers(-(2**62), 2**62))


@given(event=integers, k=st.integers(2, 7), salt=st.integers(0, 2**64 - 1))
def test_every_event_has_one_fold_that_depends_on_its_identifiers_only(event, k, salt):
    order = np.random.default_rng(0).permutation(len(event))
    for rule in (ModuloFolds(k, "event"), HashFolds(k, ("event", "run"), salt)):
        fold = rule.assign(events_with(event=event, run=event // 3))
        assert ((fold >= 0) & (fold < k)).all()
        np.testing.assert_array_equal(rule.assign(events_with(event=event[order], run=event[order] // 3)), fold[order])
        assert FoldRule.from_dict(rule.to_dict()) == rule


def splitmix64(x: int) -> int:
    """One round of the published generator, in plain whole numbers."""
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


@given(integers, st.integers(0, 2**64 - 1))
def test_hash_equals_its_naive_twin(event, salt):
    expected = [splitmix64(splitmix64(salt ^ (e % 2**64)) ^ (7 * e % 2**64)) % 5 for e in event.tolist()]
    with np.errstate(over="ignore"):
        seven = event * 7
    assert HashFolds(5, ("event", "seven"), salt).assign(events_with(event=event, seven=seven)).tolist() == expected


def test_hash_is_fixed_for_ever():
    # Models are applied in other programs and years later: these folds must never change.
    fold = HashFolds(5, ("run", "event"), 7).assign(events_with(run=[1, 1, 2, 2], event=[10, 11, 10, -1]))
    assert fold.tolist() == [3, 1, 3, 0]


def test_salt_is_zero_where_none_is_given():
    rule = HashFolds(5, ("event",), 0)
    assert HashFolds(5, ("event",)) == FoldRule.from_dict({"by": "hash", "columns": ["event"], "k": 5}) == rule
    assert HashFolds.by_content(5, ("x",)).salt == HashFolds.by_position(5).salt == 0


def test_hash_is_even():
    fold = HashFolds(4, ("event",)).assign(events_with(event=np.arange(100_000)))
    counts = np.bincount(fold, minlength=4)
    assert abs(counts - 25_000).max() < 4 * np.sqrt(100_000 * 0.25 * 0.75)  # four binomial standard deviations


def test_whole_floats_are_accepted_and_others_refused():
    assert ModuloFolds(2, "event").assign(events_with(event=[3.0, 4.0])).tolist() == [1, 0]
    with pytest.raises(DataError, match=r"identifier column event has the value 0\.5 in row 1"):
        ModuloFolds(2, "event").assign(events_with(event=[3.0, 0.5]))
    with pytest.raises(DataError, match="that float32 holds exactly is needed"):
        ModuloFolds(2, "event").assign(events_with(event=np.array([2**25], np.float32)))
    with pytest.raises(DataError, match="identifier column event has type"):
        ModuloFolds(2, "event").assign(events_with(event=["a"]))
    with pytest.raises(DataError, match="identifier column event has the value 18446744073709551615"):
        ModuloFolds(2, "event").assign(events_with(event=np.array([2**64 - 1], np.uint64)))


def test_numbers_of_numpy_become_plain_ones():
    hashed: Any = HashFolds  # that a checker of types refuses
    modulo: Any = ModuloFolds
    rule = hashed(np.int64(3), np.array(["event", "run"]), np.uint32(7))
    assert (type(rule.k), type(rule.salt)) == (int, int)
    assert rule == HashFolds(3, ("event", "run"), 7)
    assert type(modulo(np.float64(2.0), "event").k) is int
    assert hashed(2, "event").columns == ("event",)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (ModuloFolds, ("event", 2), "k='event': must be a whole number"),
        (ModuloFolds, (2.5, "event"), "k=2.5: must be a whole number"),
        (ModuloFolds, (True, "event"), "k=True: must be a whole number"),
        (ModuloFolds, (2, 3), "3: names of columns are needed"),
        (SplitFolds, (2, ""), "'': names of columns are needed"),
        (HashFolds, (2, ()), "no column: names of columns are needed"),
        (HashFolds, (2, None), "None: names of columns are needed"),
        (HashFolds, (2, ("e", "e")), "column e is named twice"),
        (HashFolds, (2, ("e",), 0.5), "salt=0.5: must be a whole number"),
        (HashFolds, (2, ("e",), True), "salt=True: must be a whole number"),
    ],
)
def test_rules_that_no_file_can_hold_are_refused(kind, arguments, message):
    with pytest.raises(DataError) as caught:
        kind(*arguments)
    assert str(caught.value) == f"folds: {message}"


def test_split_column():
    assert SplitFolds(2, "part").assign(events_with(part=[0, 1, 1])).tolist() == [0, 1, 1]
    with pytest.raises(DataError, match="column part has the value 2; with k=2 it must be 0 … 1"):
        SplitFolds(2, "part").assign(events_with(part=[0, 2]))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"by": "modulo", "columns": ["a"], "k": 1}, "k=1: at least 2"),
        ({"by": "modulo", "columns": ["a", "b"], "k": 2}, "takes one column, not 2"),
        ({"by": "luck", "columns": ["a"], "k": 2}, "by='luck'"),
    ],
)
def test_bad_rules(rule, message):
    with pytest.raises(DataError, match=message):
        FoldRule.from_dict(rule)
