import numpy as np
import pytest

from qbdt.data.samples.inferno import inferno
from qbdt.errors import DataError


def test_moments_are_those_of_the_definition():
    data = inferno(200_000, seed=3)
    background = data.sample("background").events
    x0, x1, x2 = (background.column(f"x{i}") for i in range(3))
    # tolerances are five standard errors at 200 000 events
    assert x0.mean() == pytest.approx(2, abs=5 * np.sqrt(5 / 2e5))
    assert x0.var() == pytest.approx(5, rel=5 * np.sqrt(2 / 2e5))
    assert x1.var() == pytest.approx(9, rel=5 * np.sqrt(2 / 2e5))
    assert x2.mean() == pytest.approx(1 / 3, rel=5 / np.sqrt(2e5))
    assert data.sample("signal").events.column("x2").mean() == pytest.approx(1 / 2, rel=5 / np.sqrt(2e5))


def test_shifts_act_on_the_same_background_rows():
    data = inferno(100, seed=3)
    nominal, r, rate = data.sample("background").events, data.varied("r", "up"), data.varied("rate", "down")
    np.testing.assert_allclose(r["background"].column("x0"), nominal.column("x0") + 0.4, rtol=1e-15)
    np.testing.assert_allclose(rate["background"].column("x2"), nominal.column("x2") * 1.5, rtol=1e-15)


def test_seed_decides():
    first, again, other = inferno(50, seed=1), inferno(50, seed=1), inferno(50, seed=2)
    np.testing.assert_array_equal(first.sample("signal").events.matrix(), again.sample("signal").events.matrix())
    assert (first.sample("signal").events.matrix() != other.sample("signal").events.matrix()).any()


@pytest.mark.parametrize(("options", "message"), [({"n": 0}, "n=0"), ({"rate_size": 3}, "rate_size=3")])
def test_bad_arguments(options, message):
    with pytest.raises(DataError, match=message):
        inferno(**options)
