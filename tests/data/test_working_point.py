"""Events at a working point: yields and Δ_k of any region are those of the fit's interpolation."""

import numpy as np
import pytest
from hypothesis import given, strategies

from qbdt import Dataset, Events, Sample, Systematic
from qbdt.data import Role
from qbdt.errors import DataError

N = 400
EDGES = np.linspace(-2.5, 2.5, 6)


def make_dataset():
    """Return a background with a shape, a weight, a one-sided weight and two normalisations, and one beside it."""
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=N), rng.uniform(0.5, 1.5, N)

    def events(x, rows=slice(None)):
        return Events({"x": x[rows]}, w[rows])

    sources = [
        Systematic.shape("scale", {"b": events(x + 0.4)}, {"b": events(x - 0.2, x > -1)}),
        Systematic.weight("tag", {"b": w * (1 + 0.3 * (x > 0))}, {"b": w * (1 - 0.1 * (x > 0))}),
        Systematic.weight("one", {"b": w * (1 + 0.1 * x**2)}),
        Systematic.norm("xs", {"b": 0.1, "c": (-0.2, 0.3)}),
        Systematic.norm("lumi", 0.05, processes=["b", "c"]),
        Systematic.shape("other", {"c": events(x)}, {"c": events(x + 0.1)}),
    ]
    samples = [Sample("b", Role.BACKGROUND, events(x)), Sample("c", Role.BACKGROUND, events(2 * x))]
    return Dataset(samples, sources)


def fill(events):
    return np.histogram(events.column("x"), EDGES, weights=events.weight)[0]


def sides(dataset, source, process):
    found = [dataset.varied(source, way)[process] for way, _ in dataset.systematic(source).directions]
    return [fill(one) for one in (dataset.sample(process).events, *found)]


def expect(dataset, process, at):
    """Histogram at a working point, and its derivative by every source: the slow, obvious version, for templates."""
    factors = {"xs": (0.1, -0.1) if process == "b" else (0.3, -0.2), "lumi": (0.05, -0.05)}
    nominal = fill(dataset.sample(process).events)
    value, slopes = nominal.copy(), {}
    factor, logs = 1.0, {}
    for source in dataset.systematics:
        theta = at.get(source.name, 0.0)
        inside = np.clip(theta, -1, 1)
        bend = inside * (30 - 40 * inside**2 + 18 * inside**4) / 16
        if process not in source.processes:
            continue
        if source.name in factors:
            up, down = factors[source.name]
            change = max(theta, 0) * up + max(-theta, 0) * down
            factor *= 1 + change
            logs[source.name] = ((up - down) / 2 + bend * (up + down)) / (1 + change)
            continue
        _, up, *rest = sides(dataset, source.name, process)
        down = rest[0] if rest else 2 * nominal - up
        value += max(theta, 0) * (up - nominal) + max(-theta, 0) * (down - nominal)
        slopes[source.name] = (up - down) / 2 + bend * (up + down - 2 * nominal)
    value = factor * value
    return value, {k: factor * s for k, s in slopes.items()} | {k: s * value for k, s in logs.items()}


VALUES = strategies.sampled_from([-1.0, -0.5, 0.0, 0.3, 1.0, 1.5])


@given(values=strategies.tuples(VALUES, VALUES, VALUES, VALUES))
def test_yields_and_shifts_are_those_of_the_interpolation(values):
    dataset, at = make_dataset(), dict(zip(("scale", "tag", "one", "xs"), values, strict=True))
    moved = dataset.at_working_point(at)
    for process in ("b", "c"):
        value, slopes = expect(dataset, process, at)
        assert fill(moved.sample(process).events) == pytest.approx(value)
        for source, slope in slopes.items():
            shift = Systematic.shift(*sides(moved, source, process))
            assert shift == pytest.approx(slope, abs=1e-9), source


def test_processes_and_sources_beside_those_that_move_stay():
    dataset = make_dataset()
    moved = dataset.at_working_point({"scale": 0.5})
    assert moved.systematic("other") is dataset.systematic("other")
    assert np.array_equal(moved.sample("c").events.weight, dataset.sample("c").events.weight)


def test_copies_of_an_event_stay_near_each_other():
    x = np.arange(100.0)
    sample = Sample("b", Role.BACKGROUND, Events({"x": x}, np.ones(100)))
    source = Systematic.shape("scale", {"b": Events({"x": x}, np.ones(100))})
    moved = Dataset([sample], [source]).at_working_point({"scale": 0.5}).sample("b").events
    assert np.array_equal(moved.column("x"), np.repeat(x, 2))
    assert np.array_equal(moved.weight, np.full(200, 0.5))


def test_a_source_that_is_not_there_is_named():
    with pytest.raises(DataError, match="at: no source scala; did you mean scale"):
        make_dataset().at_working_point({"scala": 1.0})


def test_a_process_that_is_scaled_to_nothing_is_refused():
    events = Events({"x": [1.0, 2.0]}, [1.0, 2.0])
    dataset = Dataset([Sample("b", Role.BACKGROUND, events)], [Systematic.norm("n", 0.5, processes=["b"])])
    with pytest.raises(DataError, match="at: n: sample b expects 0 events there: choose a point where all processes"):
        dataset.at_working_point({"n": -2.0})
