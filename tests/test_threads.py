"""How work is shared."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbdt.errors import ConfigError
from qbdt.threads import MIN_ROWS_PER_SHARE, UNEVEN, Workers, group_ranges, share_ranges


@given(st.lists(st.integers(0, 5 * MIN_ROWS_PER_SHARE), min_size=1, max_size=6), st.integers(1, 8))
def test_shares_cover_all_rows_once_and_evenly(sizes, n_shares):
    ends = np.cumsum(sizes)
    ranges = np.column_stack([np.arange(len(sizes)), ends - sizes, ends])
    shares = share_ranges(ranges, n_shares)
    assert len(shares) <= n_shares
    seen = np.zeros(sum(sizes), int)
    for share in shares:
        for label, begin, end in share:
            assert ranges[label, 1] <= begin <= end <= ranges[label, 2]
            seen[begin:end] += 1
    assert np.all(seen == 1)
    amounts = [int((share[:, 2] - share[:, 1]).sum()) for share in shares]
    assert max(amounts) - min(amounts) <= 1


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8), st.integers(1, 5))
def test_groups_of_whole_ranges_are_even_or_none(sizes, n_groups):
    ends = np.cumsum(sizes)
    groups = group_ranges(np.column_stack([np.arange(len(sizes)), ends - sizes, ends]), n_groups)
    if n_groups == 1:
        assert groups is not None
    if groups is not None:
        assert sorted(np.concatenate(groups).tolist()) == list(range(len(sizes)))
        assert max(np.array(sizes)[group].sum() for group in groups) * n_groups <= UNEVEN * sum(sizes) or n_groups == 1


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_results_come_in_order(n_threads):
    with Workers(n_threads) as workers:
        assert workers.run(lambda x: x * x, [(i,) for i in range(20)]) == [i * i for i in range(20)]


def test_an_error_in_any_thread_comes_out():
    def fail_on_three(x):
        if x == 3:
            raise ValueError("three")

    with Workers(2) as workers, pytest.raises(ValueError, match="three"):
        workers.run(fail_on_three, [(i,) for i in range(8)])


def test_no_threads_are_refused():
    numbers: tuple[Any, ...] = (0, -1, 1.5, "two")
    for number in numbers:
        with pytest.raises(ConfigError, match=f"n_threads={number}: must be at least 1"):
            Workers(number)
