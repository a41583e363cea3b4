"""Normalisations of any size, asymmetric, by process, and sources that are of another kind for another process."""

from typing import Any

import numpy as np
import pytest

from qbdt import Dataset, Events, Sample, Systematic
from qbdt.data import Role
from qbdt.errors import DataError
from qbdt.inference.templates import ScoreBins, fill


def dataset(source):
    signal = Sample("s", Role.SIGNAL, Events({"score": [0.9]}, [1.0]))
    others = [Sample(name, Role.BACKGROUND, Events({"score": [0.2, 0.8]}, [10.0, 5.0])) for name in ("W", "tt")]
    return Dataset([signal, *others], [source])


def factors(source, process):
    return fill(dataset(source), ScoreBins.of([0, 0.5, 1])).process(process).shifts[source.name].factors


def test_sizes_of_each_process():
    source = Systematic.norm("xs", {"W": (-0.3, 0.6), "tt": 3.0})
    assert factors(source, "W") == pytest.approx((0.7, 1.6))
    assert factors(source, "tt") == pytest.approx((0.25, 4.0))


def test_a_size_of_a_flat_table():
    source = Systematic.norm("xs", 1.0)
    assert (source.up[0], source.down[0]) == (1.0, -0.5)


def test_a_norm_joins_a_source_of_another_kind():
    tilt = Systematic.weight("tag", {"W": [11.0, 4.0]}, {"W": [9.0, 6.0]})
    both = Systematic.join([tilt, Systematic.norm("tag", (-0.1, 0.2), processes=["tt"])])
    assert factors(both, "W") is None
    assert factors(both, "tt") == pytest.approx((0.9, 1.2))


def test_a_symmetric_norm_joins_a_one_sided_source():
    tilt = Systematic.weight("tag", {"W": np.array([11.0, 4.0])})
    both = Systematic.join([tilt, Systematic.norm("tag", 0.2, processes=["tt"])])
    assert not both.two_sided
    assert factors(both, "tt") == pytest.approx((0.8, 1.2))


def test_joined_datasets_may_have_other_sizes():
    """Such as two eras, or two processes that are subtracted from one background."""
    one, other = (dataset(Systematic.norm("xs", size, processes=["W"])) for size in (0.1, (-0.2, 0.3)))
    joined = Dataset.concatenate([one, other])
    source, nominal = joined.systematic("xs"), joined.sample("W").events
    n = one.sample("W").events.n_rows
    assert source.kind == "weight"  # it scales no longer all events alike
    up, down = (effect["W"].apply(nominal).weight / nominal.weight for _, effect in source.directions)
    np.testing.assert_allclose(up, np.repeat([1.1, 1.3], [n, n]))
    np.testing.assert_allclose(down, np.repeat([0.9, 0.8], [n, n]))
    assert Dataset.concatenate([one, one]).systematic("xs").kind == "norm"


norm: Any = Systematic.norm  # also of types that it refuses


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: norm("xs", -1.5, processes=["W"]), r"size=-1\.5: a relative size above"),
        (lambda: norm("xs", (0.1, np.inf), processes=["W"]), "two relative changes above"),
        (lambda: norm("xs", (0.1,), processes=["W"]), "two relative changes above"),
        (lambda: norm("xs", 10**400, processes=["W"]), "a relative size above"),
        (lambda: norm("xs", (0.1, 10**400), processes=["W"]), "two relative changes above"),
        (lambda: norm("xs", "big", processes=["W"]), "size='big': a number"),
        (lambda: norm("xs", {"W": 0.1}, processes=["W"]), "give one of them"),
        (lambda: norm("xs", {}), "acts on no process"),
        (
            lambda: Systematic.join([norm("xs", {"W": 0.1}), norm("xs", {"W": 0.2})]),
            "only sources of one name and different processes",
        ),
        (
            lambda: Systematic.join([Systematic.weight("xs", {"tt": [1.0]}), norm("xs", {"W": 2.0})]),
            "one-sided on tt only",
        ),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()
