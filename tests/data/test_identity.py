"""Where identifiers stop being usable: the largest whole numbers, one value too few, one value too many."""

import numpy as np
import pytest

from qbdt.data.identity import (
    are_distinct,
    are_shared_by_few,
    bits_column,
    hash_columns,
    list_identifiers,
    mix_salt,
    number_identifiers,
    take_bits,
    whole_numbers,
)
from qbdt.errors import DataError
from tests.data.test_folds import splitmix64


@pytest.mark.parametrize(
    "values",
    [
        np.array([True, False]),
        np.array([-3, 7], np.int8),
        np.array([0, 2**63 - 1], np.uint64),
        np.array([1 - 2.0**53, 2.0**53 - 1]),
        np.array([1 - 2.0**24, 2.0**24 - 1], np.float32),
    ],
)
def test_whole_numbers_are_kept_up_to_the_largest(values):
    found = whole_numbers("event", values)
    assert found.dtype == np.int64
    assert found.tolist() == [int(value) for value in values]


def test_integers_are_not_copied():
    values = np.array([1, 2])
    assert whole_numbers("event", values) is values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1, 2**63], np.uint64), "9223372036854775808 in row 1: a whole number that 64 bits hold with a sign"),
        (np.array([0.0, 2.0**53]), "in row 1: a whole number that float64 holds exactly"),
        (np.array([0.0, 2.0**24], np.float32), "in row 1: a whole number that float32 holds exactly"),
        (np.array([np.inf, 1.0]), "value inf in row 0"),
        (np.array([np.nan, 1.0]), "value nan in row 0"),
        (np.array(["a"]), "has type"),
    ],
)
def test_no_whole_numbers(values, message):
    with pytest.raises(DataError, match=f"identifier column event .*{message}"):
        whole_numbers("event", values)


def test_numbers_that_are_not_whole_are_told_apart_by_their_bits():
    values = np.array([2.0**53 - 1, 1 - 2.0**53, 2.0**53, -0.5, -0.0])
    expected = [2**53 - 1, 1 - 2**53, *values[2:4].view(np.int64).tolist(), 0]
    assert number_identifiers("eta", values).tolist() == expected
    assert number_identifiers("event", np.array([3])).tolist() == [3]
    with pytest.raises(DataError, match="eta has the value nan in row 1: every event needs an identifier"):
        number_identifiers("eta", np.array([1.0, np.nan]))


def test_bits_are_the_same_for_one_value_however_it_is_written():
    other_nan = np.array([0x7FF8000000000001]).view(np.float64)
    assert take_bits(other_nan) == take_bits(np.array([np.nan]))
    assert take_bits(np.array([-0.0])) == take_bits(np.array([0.0])) == 0
    assert take_bits(np.array([1, 2])).tolist() == np.array([1.0, 2.0]).view(np.int64).tolist()
    assert bits_column("bits(eta) ") is None


@pytest.mark.parametrize(("event_id", "shape"), [([1, 2], r"\(2,\)"), (np.zeros((3, 0)), r"\(3, 0\)"), (1, r"\(\)")])
def test_an_identifier_for_each_row(event_id, shape):
    with pytest.raises(DataError, match=rf"signal: event_id has shape {shape}: each of the 3 rows needs"):
        list_identifiers(event_id, 3, "signal: ")


def test_columns_of_identifiers_are_numbered():
    assert list_identifiers([5, 6], 2)["event_id(0)"].tolist() == [5, 6]
    found = list_identifiers([[1, 2], [3, 4]], 2)
    assert {name: values.tolist() for name, values in found.items()} == {"event_id(0)": [1, 3], "event_id(1)": [2, 4]}
    with pytest.raises(DataError, match="event_id has shape"):
        list_identifiers(np.zeros((2, 1, 1)), 2)


@pytest.mark.parametrize(("told", "share"), [(are_distinct, 2), (are_shared_by_few, 20)])
def test_how_many_rows_may_share_an_identifier(told, share):
    """At the limit still; with one row more no longer."""
    at_limit = np.repeat(np.arange(4, dtype=np.uint64), share)
    assert told(at_limit)
    assert not told(np.append(at_limit, at_limit[:1]))


@pytest.mark.parametrize("salt", [0, 1, 7, 2**63 - 1, 2**63, 2**63 + 7, -1])
def test_salts_are_spread_over_all_bits(salt):
    assert mix_salt(salt) == splitmix64(salt % 2**63)


@pytest.mark.parametrize("salt", [-1, 2**64, 2**64 + 7])
def test_salts_have_64_bits(salt):
    assert hash_columns([np.array([3])], salt).tolist() == [splitmix64(salt % 2**64 ^ 3)]
