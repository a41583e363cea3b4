"""Families of weights: uncertainties as LHAPDF defines them, kept by few components."""

import awkward as ak
import numpy as np
import pytest

from qbdt.data import Dataset, Events, Expression, Role, Sample, Systematic
from qbdt.data.families import FamilyKind, FamilyRows, FamilySampler, WeightFamily, find_basis, make_sources
from qbdt.errors import DataError

N, MEMBERS = 3000, 60


@pytest.fixture(scope="module")
def events():
    random = np.random.default_rng(3)
    x = random.normal(size=N)
    shapes = np.stack([np.ones(N), x, x**2 - 1, np.sin(3 * x)])
    size = random.normal(0, [0.05, 0.03, 0.02, 0.002], (MEMBERS, 4))
    factors = (1 + size @ shapes).T + random.normal(0, 1e-4, (N, MEMBERS))
    return x, random.uniform(0.5, 1.5, N), factors


def family(kind="replicas", **options):
    return WeightFamily("pdf", FamilyKind(kind), Expression("pdf"), **options)


def sources(kind, events, **options):
    _, weight, factors = events
    one, rows = family(kind, **options), FamilySampler(family(kind, **options))
    shifts = rows.project(factors, np.ones(N), "file")
    basis = find_basis(one, rows.n_weights, {"ttbar": FamilyRows(weight, shifts)})
    columns = basis.project(factors, np.ones(N), "file")
    return basis, make_sources("pdf", basis, {"ttbar": list(columns.T)})


def bin_errors(events, found):
    """Error of the yields in bins of x, from the sources, up and down."""
    x, weight, _ = events
    nominal = Events({"x": x}, weight)
    bins = np.digitize(x, [-1.5, -0.5, 0.5, 1.5])
    moved = [one.up["ttbar"].apply(nominal).weight - weight for one in found]
    return np.sqrt(np.sum([np.bincount(bins, m) ** 2 for m in moved], axis=0))


def member_yields(events):
    x, weight, factors = events
    bins = np.digitize(x, [-1.5, -0.5, 0.5, 1.5])
    return np.array([np.bincount(bins, weight * factors[:, j]) for j in range(MEMBERS)]), np.bincount(bins, weight)


def test_replicas_give_their_standard_deviation(events):
    basis, found = sources("replicas", events, keep=0.9999)
    yields, _ = member_yields(events)
    np.testing.assert_allclose(bin_errors(events, found), yields.std(axis=0, ddof=1), rtol=1e-2)
    assert [one.name for one in found] == [f"pdf#{k + 1}" for k in range(basis.n_components)]
    assert basis.n_components < 10 < MEMBERS
    assert all(one.two_sided for one in found)


def test_few_components_keep_the_wanted_share(events):
    basis, found = sources("replicas", events)
    assert basis.n_components == 3
    assert 0.99 <= basis.kept["ttbar"] < 1
    yields, _ = member_yields(events)
    np.testing.assert_allclose(bin_errors(events, found), yields.std(axis=0, ddof=1), rtol=0.03)
    assert sources("replicas", events, most=1)[0].n_components == 1
    assert sources("replicas", events, keep=1.0)[0].n_components == MEMBERS - 1  # their shifts from the mean add to 0


def test_symmetric_eigenvectors_add_in_quadrature(events):
    _, found = sources("hessian", events, keep=1.0)
    yields, nominal = member_yields(events)
    np.testing.assert_allclose(bin_errors(events, found), np.sqrt(np.sum((yields - nominal) ** 2, axis=0)), rtol=1e-4)


def test_pairs_of_eigenvectors_at_another_confidence_level(events):
    _, found = sources("hessian", events, keep=1.0, symmetric=False, confidence=0.90)
    yields, _ = member_yields(events)
    expected = np.sqrt(np.sum((yields[0::2] - yields[1::2]) ** 2, axis=0)) / 2 / 1.6448536
    np.testing.assert_allclose(bin_errors(events, found), expected, rtol=1e-4)


def test_the_envelope_is_one_source_with_two_sides(events):
    x, weight, factors = events
    _, (found,) = sources("envelope", events)
    nominal = Events({"x": x}, weight)
    assert found.name == "pdf"
    np.testing.assert_allclose(found.up["ttbar"].apply(nominal).weight, weight * factors.max(axis=1), rtol=1e-6)
    np.testing.assert_allclose(found.down["ttbar"].apply(nominal).weight, weight * factors.min(axis=1), rtol=1e-6)


def test_a_small_signal_keeps_its_own_directions(events):
    x, weight, _ = events
    random = np.random.default_rng(1)
    first, second = (random.normal(0, 0.1, (20, 1)) for _ in range(2))
    signal, background = (np.outer(1 + 0 * x, a) + 1 for a in (first, second))
    one = family(keep=0.99)
    rows = {
        "higgs": FamilyRows(1e-4 * weight, one.shifts(signal, np.ones(N))),
        "ttbar": FamilyRows(1e4 * weight, one.shifts(background, np.ones(N))),
    }
    basis = find_basis(one, 20, rows)
    assert basis.n_components == 2
    assert min(basis.kept.values()) > 0.99


def test_selected_joined_and_scaled_shifts_follow_their_rows(events):
    x, weight, _ = events
    source = Systematic.rescaling("pdf#1", {"ttbar": np.linspace(-0.1, 0.1, N, dtype=np.float32)})
    data = Dataset([Sample("ttbar", Role.BACKGROUND, Events({"x": x}, weight))], [source])
    chosen = data.select(lambda events: events.column("x") > 0).scaled(2.0)
    expected = 2 * (data.varied("pdf#1", "down")["ttbar"].weight)[x > 0]
    np.testing.assert_allclose(chosen.varied("pdf#1", "down")["ttbar"].weight, expected, rtol=1e-12)
    other = Dataset(data.samples)
    joined = Dataset.concatenate([other, data]).varied("pdf#1", "up")["ttbar"].weight
    np.testing.assert_allclose(joined, np.concatenate([weight, data.varied("pdf#1", "up")["ttbar"].weight]), rtol=1e-12)


def test_replicas_that_do_not_vary_are_said_not_to():
    basis = find_basis(family(), 4, {"ttbar": FamilyRows(np.ones(5), np.zeros((5, 4)))})
    assert basis.kept == {}
    assert basis.n_components == 1


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([[1.0, 2.0], [1.0]], {}, "file: event 1 has 1 weights, event 0 has 2"),
        ([[1.0, 2.0], [1.0, np.nan]], {}, "file: 1 events have weights that are not finite, first selected event 1"),
        ([1.0, 2.0], {}, "file has one value per event: a family has a list of weights"),
    ],
)
def test_bad_weights(values, options, message):
    with pytest.raises(DataError, match=message):
        family(**options).read_members({"pdf": ak.Array(values)}, 2, "file")


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((3, 5), {"members": (1, 5)}, "pdf: members 1 to 5, but there are 5 weights"),
        ((3, 1), {}, "pdf: 1 weights; replicas needs at least 2"),
        ((3, 5), {"kind": "hessian", "symmetric": False}, "5 weights do not make pairs of plus and minus"),
    ],
)
def test_bad_members(shape, options, message):
    with pytest.raises(DataError, match=message):
        FamilySampler(family(**options)).project(np.ones(shape), np.ones(3), "file")


def test_lists_of_another_length_in_another_file():
    sampler = FamilySampler(family())
    sampler.project(np.ones((2, 5)), np.ones(2), "a.root")
    with pytest.raises(DataError, match=r"b.root: pdf has 4 weights per event, 5 in files read before"):
        sampler.project(np.ones((2, 4)), np.ones(2), "b.root")
