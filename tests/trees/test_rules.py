"""Sets of categories: the scan over categories in order finds what trying every set finds."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbdt.arrays import BINS, MISSING
from qbdt.data import Events
from qbdt.statistics import significance
from qbdt.threads import Workers
from qbdt.training.paper.channels import Quantities, Quantity
from qbdt.training.paper.criterion import PaperCriterion
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.trees.growth.feature_rules import FREE, FeatureRules, Limits, category_order
from qbdt.trees.rows import Channel, Layout, Segment, Side

CATEGORIES = 6
NO_EVENTS = Events({"x": [], "y": []}, [])


def subsets():
    return [c for size in range(1, CATEGORIES) for c in combinations(range(CATEGORIES), size)]


def histogram(seed, missing):
    """Bins as (feature, bin, s and b), the second of two features categorical; some categories are not there.

    All others have background: signal alone could not be on one side of a cut, but with any category that has a little.
    """
    rng = np.random.default_rng(seed)
    hist = np.zeros((2, BINS, 2), dtype=np.int64)
    hist[1, :CATEGORIES] = rng.integers((0, 1), 60, (CATEGORIES, 2)) * (rng.random((CATEGORIES, 1)) < 0.8)
    hist[1, MISSING] = (7, 9) if missing else 0
    hist[0, 0] = hist[1].sum(axis=0)
    return hist


RULES = FeatureRules(np.array([0, CATEGORIES - 1]), frozenset({1}), np.zeros(2, dtype=np.int64))


def check(split, hist, value, node):
    """No set of categories gains more than the one that was found, and the sums are those of its codes."""
    own, total = hist[1], hist[1].sum(axis=0)
    best = -np.inf
    there = {int(code) for code in np.flatnonzero(own[:CATEGORIES].any(axis=1))}
    for chosen in subsets():
        if not there & set(chosen) or there <= set(chosen):
            continue  # only missing values would be on one side
        for missing_left in (False, True) if own[MISSING].any() else (False,):
            left = own[list(chosen)].sum(axis=0) + missing_left * own[MISSING]
            sides = [value(left), value(total - left)]
            if None not in sides:
                best = max(best, sum(sides) - node)
    # Missing values stay on one side as a whole, so the best set need not follow the order: one in 4000 gains more.
    if own[MISSING].any():
        assert split.gain <= best + 1e-9
    else:
        assert split.gain == pytest.approx(best, rel=1e-9, abs=1e-9)
    if split.feature >= 0:
        left = own[split.codes].sum(axis=0) + (split.missing == 1) * own[MISSING]
        assert split.left.tolist() == left.tolist()
        assert own[split.codes].any(axis=1).all()  # categories that are not there stay right


@given(st.integers(0, 2**32), st.booleans())
def test_no_set_gains_more_in_significance(seed, missing):
    hist = histogram(seed, missing)
    total = hist[1].sum(axis=0)
    if not total.all():
        return
    flat = np.ascontiguousarray(hist.transpose(2, 0, 1)).ravel()
    segments = tuple(Segment(side.name, side, NO_EVENTS) for side in Side)
    quantities = Quantities(segments, Quantity((Channel(0),)), Quantity((Channel(1),)))
    with Workers(1) as workers:
        criterion = PaperCriterion(quantities, Layout(segments, 2), 0.0, RULES, workers)
        before = flat.copy()
        sums = criterion.normalise(flat, lambda words: [], np.arange(2))
        assert sums is not None
        q = criterion.describe(sums).q
        split = criterion.best_split(flat, lambda words: [], sums, q, np.arange(2))
        bounds = criterion.upper_bounds(flat, sums, q, np.arange(2))
    assert np.array_equal(flat, before)
    assert split.gain <= bounds[1] or split.feature < 0

    def value(sums):
        return None if sums[1] <= 0 else float(significance(sums[0] / total[0], sums[1] / total[1]))

    check(split, hist, value, q)


@given(st.integers(0, 2**32), st.booleans())
def test_no_set_gains_more_in_squares(seed, missing):
    hist = histogram(seed, missing)
    hist[1, :, 0] -= hist[1, :, 1] // 2
    hist[0, 0] = hist[1].sum(axis=0)
    with Workers(1) as workers:
        criterion = NewtonCriterion(0.0, 1.0, RULES, workers)
        sums = criterion.start_tree(hist.ravel(), np.ones(2))
        q = criterion.describe(sums).q
        split = criterion.best_split(hist.ravel(), lambda words: [], sums, q, np.arange(2))

    def value(sums):
        return None if sums[1] < 1 else sums[0] ** 2 / sums[1]

    check(split, hist, value, q)


def test_categories_are_in_the_order_of_their_ratio():
    top, bottom = np.array([1.0, 3.0, 2.0, 0.0, 2.0]), np.array([1.0, 1.0, 1.0, 0.0, 1.0])
    assert category_order(top, bottom, bottom > 0).tolist() == [0, 2, 4, 1, 3]  # equal ones by code
    angles = np.linspace(-3.1, 3.1, 40)
    shuffled = np.random.default_rng(1).permutation(40)
    order = category_order(np.sin(angles)[shuffled], np.cos(angles)[shuffled], np.ones(40, dtype=bool))
    assert shuffled[order].tolist() == list(range(40))


@given(st.floats(-5, 5), st.floats(-5, 5), st.sampled_from([-1, 1]))
def test_limits_of_children_do_not_overlap(one, other, direction):
    left, right = Limits(-1.0, 2.0).split(one, other, direction)
    below, above = (left, right) if direction > 0 else (right, left)
    assert -1.0 == below.low <= below.high == above.low <= above.high == 2.0
    assert below.clip(one) <= above.clip(other)
    assert FREE.split(one, other, 0) == (FREE, FREE)
