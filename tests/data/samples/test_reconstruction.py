"""From objects to variables: a naive twin with plain four-vectors, migration, and the paper's missing momentum."""

import math

import numpy as np
import pytest

from qbdt.data.folds import ModuloFolds
from qbdt.data.samples.objects import Objects
from qbdt.data.samples.objects.reconstruction import (
    FEATURES,
    NOMINAL,
    SHAPES,
    SOURCES,
    ObjectShift,
    Reconstruction,
    build_dataset,
    efficiency_weight,
)
from qbdt.errors import DataError


def random_objects(n: int, seed: int = 0) -> Objects:
    rng = np.random.default_rng(seed)

    def f(values):
        return values.astype(np.float32)

    kinematics = []
    for low in (19.0, 19.0, 9.5):
        kinematics.append(
            (f(low + rng.exponential(15, n)), f(rng.uniform(-2.6, 2.6, n)), f(rng.uniform(-3.14, 3.14, n)))
        )
    lepton, tau, photon = kinematics
    met, residual = f(rng.normal(0, 25, (2, n))), f(rng.normal(0, 10, (2, n)))
    flavour = rng.choice(np.array([11, 13], dtype=np.int8), n)
    mass = f(rng.uniform(0.1, 1.6, n))
    return Objects(np.arange(n), flavour, *lepton, *tau, mass, *photon, *met, *residual)


def naive(objects: Objects, i: int, shift: ObjectShift) -> tuple[bool, list[float]]:
    """One event with plain Python four-vectors: the slow, obvious version."""

    def vector(name, mass, factor):
        pt, eta, phi = (float(getattr(objects, f"{name}_{what}")[i]) for what in ("pt", "eta", "phi"))
        p = (pt * math.cos(phi), pt * math.sin(phi), pt * math.sinh(eta))
        energy = math.sqrt(sum(x * x for x in p) + mass**2)
        return [factor * x for x in (energy, *p)], (pt * factor, eta, phi)

    lepton_mass = 0.000511 if objects.lepton_flavour[i] == 11 else 0.10566
    tau_mass = float(objects.tau_mass[i])
    (lepton, l3), (tau, t3), (photon, g3) = (
        vector("lepton", lepton_mass, shift.lepton),
        vector("tau", tau_mass, shift.tau),
        vector("photon", 0.0, shift.photon),
    )
    original = [vector("lepton", lepton_mass, 1)[0], vector("tau", tau_mass, 1)[0], vector("photon", 0, 1)[0]]
    met = []
    for axis, (value, residual) in enumerate(
        ((objects.met_x[i], objects.residual_x[i]), (objects.met_y[i], objects.residual_y[i]))
    ):
        moved = sum(new[axis + 1] - old[axis + 1] for new, old in zip((lepton, tau, photon), original, strict=True))
        met.append(float(value) + (shift.residual - 1) * float(residual) - moved)
    neutrinos = [math.hypot(*met), *met, 0.0]

    def mass(*parts):
        e, x, y, z = (sum(part[k] for part in parts) for k in range(4))
        return math.sqrt(max(e * e - x * x - y * y - z * z, 0.0))

    def apart(a, b):
        turn = abs(a[2] - b[2])
        return math.hypot(a[1] - b[1], min(turn, 2 * math.pi - turn)) > 0.4

    passed = l3[0] > 20 and t3[0] > 20 and g3[0] > 10 and all(abs(o[1]) < 2.5 for o in (l3, t3, g3))
    passed = passed and apart(l3, t3) and apart(l3, g3) and apart(t3, g3)
    return passed, [
        l3[0],
        t3[0],
        g3[0],
        neutrinos[0],
        mass(lepton, tau),
        mass(lepton, tau, neutrinos),
        mass(lepton, tau, photon),
        mass(lepton, tau, photon, neutrinos),
    ]


@pytest.mark.parametrize(
    "shift", [NOMINAL, ObjectShift(1.3, 0.7, 1.2, 1.5), *(shift for pair in SHAPES.values() for shift in pair)]
)
def test_equals_the_naive_twin(shift):
    objects = random_objects(60)
    events = Reconstruction(objects)
    passed, variables = events.passes(shift), events.variables(shift)
    for i in range(60):
        expected_pass, expected = naive(objects, i, shift)
        assert passed[i] == expected_pass
        # The result is stored as float32.
        assert [variables[name][i] for name in FEATURES] == pytest.approx(expected, rel=1e-6, abs=1e-4)


def test_events_migrate_across_the_threshold_that_the_source_moves():
    objects = random_objects(1)
    row = {name: getattr(objects, name) for name in Objects.__slots__}
    apart = {"lepton_eta": 0.0, "tau_eta": 1.0, "photon_eta": -1.0, "lepton_pt": 30.0, "photon_pt": 15.0}
    row |= {name: np.array([value], dtype=np.float32) for name, value in apart.items()}
    low = Objects(**(row | {"tau_pt": np.array([19.8], dtype=np.float32)}))
    high = Objects(**(row | {"tau_pt": np.array([20.2], dtype=np.float32)}))
    up, down = SHAPES["tes"]
    assert [Reconstruction(low).passes(shift)[0] for shift in (NOMINAL, up, down)] == [False, True, False]
    assert [Reconstruction(high).passes(shift)[0] for shift in (NOMINAL, up, down)] == [True, True, False]


def test_efficiencies_follow_the_papers_table():
    pt = np.array([39.0, 41.0, 99.0, 101.0], dtype=np.float32)
    assert efficiency_weight("tauid", pt, -1) == pytest.approx([0.95] * 4)
    assert efficiency_weight("phoid", pt, +1) == pytest.approx([1.02, 1.01, 1.01, 1.01])
    assert efficiency_weight("lepid", pt, +1) == pytest.approx([1.002, 1.002, 1.002, 1.005])
    with pytest.raises(DataError, match="source='met': must be one of tauid, lepid, phoid"):
        efficiency_weight("met", pt, 1)


def test_the_papers_missing_momentum_has_a_random_direction():
    objects = random_objects(20_000)
    zeros = np.zeros(len(objects), dtype=np.float32)
    columns = {name: getattr(objects, name) for name in Objects.__slots__}
    fixed = Objects(**(columns | {"met_x": zeros + 50, "met_y": zeros, "residual_x": zeros, "residual_y": zeros}))
    events = Reconstruction(fixed, paper_met=True)
    azimuth = np.arctan2(events._met[1], events._met[0])
    # Uniform: mean cosine and sine vanish within four standard errors.
    assert abs(np.cos(azimuth).mean()) < 4 / math.sqrt(2 * len(objects))
    assert abs(np.sin(azimuth).mean()) < 4 / math.sqrt(2 * len(objects))
    size = events.variables()["pt_met"]
    assert np.square(size, dtype=np.float64).mean() == pytest.approx(50**2 + 2 * 10**2 * 2, rel=0.02)
    again = Reconstruction(fixed, paper_met=True).variables()["pt_met"]
    assert np.array_equal(size, again)


def test_dataset_has_seven_two_sided_sources_on_both_processes():
    processes = {"signal": (random_objects(400, 1), 0.5), "background": (random_objects(600, 2), 2.0)}
    data = build_dataset(processes, ModuloFolds(5, "event_number"))
    assert data.features == FEATURES
    assert tuple(source.name for source in data.systematics) == SOURCES
    for source in data.systematics:
        assert source.two_sided
        assert set(source.processes) == {"signal", "background"}
    nominal, up = data.sample("background").events, data.varied("tes", "up")["background"]
    assert up.n_rows > nominal.n_rows
    assert data.varied("met", "up")["background"].n_rows == nominal.n_rows
    assert np.isin(nominal.identifier("event_number"), up.identifier("event_number")).all()
    assert data.varied("tauid", "down")["signal"].total == pytest.approx(0.95 * data.total("signal"))
