"""Histograms of scores over partitions: those of all rows sorted in one place."""

from typing import Any

import numpy as np
import pytest

from qbdt.data.events import Events
from qbdt.threads import Workers
from qbdt.training.partitions.local import InMemoryPartitions, OnePartition
from qbdt.training.profile.score_rows import HeldScores, ScoredSegment, ScoreRows, make_keys
from qbdt.training.profile.segments import ShiftSegment
from qbdt.trees.rows.layout import Segment, Side

SHARES = (0.0, 0.5)


def segments(rng, sizes):
    """Signal with a column, background, and background varied; g is rounded, so that scores tie."""
    found = []
    for i, (n, side) in enumerate(zip(sizes, (Side.SIGNAL, Side.BACKGROUND, Side.BACKGROUND), strict=True)):
        events = Events({"x": np.zeros(n)}, rng.uniform(-0.2, 1.0, n))
        column = rng.normal(size=n)
        columns = ((1, lambda column=column: column),) if i == 0 else ()
        one = ShiftSegment(Segment("", side, events, nominal=i < 2), rng.normal(size=2), columns)
        found.append(ScoredSegment(i, one, rng.normal(size=n).round(1), rng.normal(size=n).round(1)))
    return found


def cut(scored, number, count):
    """Return one of several shares of the rows."""
    found = []
    for number_, one, ratio, shift in scored:
        rows = slice(len(ratio) * number // count, len(ratio) * (number + 1) // count)
        events = one.segment.events[rows]
        columns = tuple((k, lambda column=column, rows=rows: column()[rows]) for k, column in one.columns)
        part = ShiftSegment(Segment("", one.segment.side, events, one.segment.nominal), one.factors, columns)
        found.append(ScoredSegment(number_, part, ratio[rows], shift[rows]))
    return found


def naive(scored, share, n_bins):
    scores = [one.ratio - share * one.shift for one in scored]
    weights = [one.segment.segment.events.weight for one in scored]
    order = np.argsort(scores[0], kind="stable")
    running = np.cumsum(np.abs(weights[0])[order])
    at = [np.flatnonzero(running >= i / n_bins * running[-1])[0] for i in range(1, n_bins)]
    edges = scores[0][order][at]
    bins = [np.searchsorted(edges, own, side="right") for own in scores]

    def filled(i, values):
        return np.bincount(bins[i], values, n_bins)

    shifts = sum(one.segment.factors[:, None] * filled(i, weights[i]) for i, one in enumerate(scored))
    shifts[1] += filled(0, scored[0].segment.columns[0][1]())
    variance = sum(filled(i, weights[i] + weights[i] ** 2) for i in (0, 1))
    return filled(0, weights[0]), shifts, variance


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("seed", range(4))
def test_templates_are_those_of_sorted_rows(seed, count):
    rng = np.random.default_rng(seed)
    scored = segments(rng, (37, 50, 20))
    described = [one.segment for one in scored]

    def build(number, dataset, workers, memory=None):
        return ScoreRows(cut(scored, number, count), described, SHARES, 2.0**50, workers)

    with Workers(1) as workers:
        nothing: Any = lambda: None  # noqa: E731
        rows: Any = OnePartition(nothing, workers) if count == 1 else InMemoryPartitions([nothing] * count, workers)
        rows.build(build)
        found = HeldScores(rows, described, len(SHARES)).templates(5)
    for share, one in zip(SHARES, found, strict=True):
        for mine, expected in zip(one, naive(scored, share, 5), strict=True):
            assert mine == pytest.approx(expected, abs=1e-12)  # the naive sums are rounded on the way


def test_nothing_is_below_the_smallest_key():
    scored = segments(np.random.default_rng(0), (5, 5, 5))
    with Workers(1) as workers:
        rows = ScoreRows(scored, [one.segment for one in scored], SHARES, 2.0**50, workers)
    lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    answer = rows.signal_up_to(np.array([[lowest, highest]] * 2))
    assert answer[:, 0].tolist() == [0, 0]
    assert answer[0, 1] == answer[1, 1] > 0


def test_keys_are_ordered_as_numbers():
    values = np.random.default_rng(1).normal(size=200) * 10.0 ** np.arange(-100, 100)
    assert np.array_equal(np.argsort(make_keys(values)), np.argsort(values))
