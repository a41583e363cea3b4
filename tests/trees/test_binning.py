"""Where features may be cut."""

import numpy as np
import pytest

from qbdt.data.events import Events
from qbdt.errors import ConfigError
from qbdt.threads import Workers
from qbdt.trees.binning import Binning, make_binning


def binning_of(signal, background, choice="quantile", max_bins=256, s_weight=None, b_weight=None):
    pieces = []
    for table, weight in ((signal, s_weight), (background, b_weight)):
        columns = {f"x{i}": table[:, i] for i in range(table.shape[1])}
        pieces.append([Events(columns, np.ones(len(table)) if weight is None else weight)])
    with Workers(2) as workers:
        return make_binning(choice, max_bins, tuple(pieces[0][0].features), pieces[0], pieces[1], workers)


def same(one: Binning, other: Binning) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.edges, other.edges, strict=True))


def test_few_values_are_all_told_apart():
    edges = binning_of(np.array([[1.0], [2.0]]), np.array([[2.0], [5.0], [np.nan]])).edges[0]
    assert edges.tolist() == [1.5, 3.5]


def test_quantiles_count_each_class_as_one():
    rng = np.random.default_rng(1)
    signal, background = rng.uniform(0, 1, (2000, 1)), rng.uniform(1, 2, (20_000, 1))
    edges = binning_of(signal, background, max_bins=101).edges[0]
    assert len(edges) == 99
    assert 48 <= (edges < 1).sum() <= 51  # half of the edges for each class, whatever their numbers of events


def test_weights_and_repeated_rows_are_the_same():
    rng = np.random.default_rng(2)
    signal, background = rng.normal(size=(3000, 2)), rng.normal(size=(3000, 2))
    repeats = rng.integers(0, 4, 3000)
    one = binning_of(signal, background, s_weight=repeats.astype(float))
    assert same(one, binning_of(np.repeat(signal, repeats, axis=0), background))


def test_order_and_scale_do_not_matter_where_rows_are_sampled():
    rng = np.random.default_rng(3)
    signal, background = rng.normal(size=(100_000, 2)), rng.normal(size=(50_000, 2))
    weight = rng.normal(1, 0.5, 50_000)
    plain = binning_of(signal, background, b_weight=weight)
    order = rng.permutation(50_000)
    assert same(plain, binning_of(signal[::-1], background[order], b_weight=weight[order] * 2.0**30))
    swapped = binning_of(signal[:, ::-1], background[:, ::-1], b_weight=weight)
    assert np.array_equal(plain.edges[0], swapped.edges[1])
    assert len(plain.edges[0]) == 254


def test_a_constant_or_missing_feature_has_no_edge():
    table = np.array([[1.0, np.nan], [1.0, np.nan]])
    assert [edges.size for edges in binning_of(table, table).edges] == [0, 0]


def test_neighbouring_floats_are_told_apart():
    low = 1.0
    high = np.nextafter(low, 2)
    binning = binning_of(np.array([[low]]), np.array([[high]]))
    codes = binning.codes(Events({"x0": [low, high]}, np.ones(2)))
    assert codes[:, 0].tolist() == [0, 1]


def test_fixed_bins_leave_out_the_last_inner_edge():
    table = np.zeros((3, 1))
    edges = binning_of(table, table, choice=[(5, 0.0, 10.0)]).edges[0]
    assert edges.tolist() == [2.0, 4.0, 6.0]
    assert binning_of(table, table, choice={"x0": (5, 0.0, 10.0)}).edges[0].tolist() == edges.tolist()


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("even", "binning='even'"),
        ([(5, 0, 1), (5, 0, 1)], "2 entries for 1 features"),
        ([(2, 0, 1)], "n_bins=2"),
        ([(257, 0, 1)], "n_bins=257"),
        ([(5.5, 0, 1)], r"n_bins=5\.5"),
        ([(5, 1, 0)], "low < high"),
        ([(5, 0, np.inf)], "finite"),
        ([5], "must be"),
        ({"y": (5, 0, 1)}, "other features"),
    ],
)
def test_bad_choices_are_named(choice, message):
    with pytest.raises(ConfigError, match=message):
        binning_of(np.zeros((2, 1)), np.zeros((2, 1)), choice=choice)


@pytest.mark.parametrize("max_bins", [2, 257])
def test_number_of_bins_is_limited(max_bins):
    with pytest.raises(ConfigError, match=f"max_bins={max_bins}"):
        binning_of(np.zeros((2, 1)), np.zeros((2, 1)), max_bins=max_bins)
