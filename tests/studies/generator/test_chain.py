"""Pythia's part of the chain and the detector: shower, tau decays, smearing."""

import math

import numpy as np
import pytest

from qbdt.data.samples.objects.reconstruction import SHAPES, Reconstruction
from qbdt.errors import DataError
from qbdt.studies.generator.constants import HIGGS_MASS, TAU_MASS
from qbdt.studies.generator.detector import MET_RESOLUTION, Truth, select, smear, tau_resolution
from qbdt.studies.generator.matrix_elements import dot
from qbdt.studies.generator.partons import FLAVOURS, PartonDensities
from qbdt.studies.generator.processes import BackgroundProcess, SignalProcess
from qbdt.studies.generator.shower import Shower, quiet_pythia
from qbdt.studies.generator.tau_decays import CHUNK, HADRONIC, LEPTONIC, TauLibrary, decay_chunk, library_chunks
from tests.studies.generator.kinematics import toy_densities

pytest.importorskip("pythia8mc")

PION_MASS = 0.13957


@pytest.fixture(scope="module")
def library() -> TauLibrary:
    size = 1_000
    return TauLibrary.join(size, [decay_chunk(mode, h, n, 11 + k) for mode, h, n, k in library_chunks(size)])


def test_densities_are_those_of_pythia():
    pythia = quiet_pythia(("ProcessLevel:all = off",))
    pythia.init()
    pdf, table = pythia.getPDFPtr(2212), PartonDensities.from_pythia(pythia, n_x=200, n_q=20)
    rng = np.random.default_rng(1)
    x, q = np.exp(rng.uniform(math.log(1e-4), math.log(0.3), 50)), rng.uniform(20, 500, 50)
    exact = np.array([[pdf.xf(code, a, b * b) for code in FLAVOURS] for a, b in zip(x, q, strict=True)])
    # Bilinear interpolation in the logarithms on this coarse grid.
    assert table.xf(x, q) == pytest.approx(exact, rel=0.03, abs=1e-4)


@pytest.mark.parametrize("resonance", [False, True])
def test_shower_boosts_the_event_and_depends_on_the_seed_only(resonance):
    process = SignalProcess(toy_densities()) if resonance else BackgroundProcess(toy_densities())
    events = process.propose(np.random.default_rng(1), 2_000)[0][:150]
    shower = Shower(resonance=resonance)
    first, other, again = (shower.run(events, seed) for seed in (5, 6, 5))
    assert len(first.rows) > 140
    assert np.array_equal(first.photon, again.photon)
    assert not np.array_equal(first.photon, other.photon)
    before = events[first.rows]
    for a, b, was_a, was_b in (
        (first.tau, first.antitau, before.tau, before.antitau),
        (first.tau, first.photon, before.tau, before.photon),
    ):
        # Invariants survive the recoil; Pythia's own boosts lose digits at high rapidity.
        assert dot(a, b) == pytest.approx(dot(was_a, was_b), rel=1e-5, abs=1e-2)
    total = first.tau + first.antitau + first.photon
    recoil = np.hypot(total[:, 1], total[:, 2])
    assert 5 < np.median(recoil) < 80
    if resonance:
        assert np.sqrt(dot(total, total)) == pytest.approx(HIGGS_MASS, rel=1e-6)


def test_library_is_cut_into_chunks_that_cover_it():
    chunks = library_chunks(CHUNK + 7)
    assert [n for _, _, n, _ in chunks] == [CHUNK, 7] * 4
    assert [offset for *_, offset in chunks] == list(range(8))
    assert {(mode, h) for mode, h, _, _ in chunks} == {(m, h) for m in (LEPTONIC, HADRONIC) for h in (-1, 1)}


def test_library_has_the_spin_effects_of_the_tau(library):
    across, along, mass = library.visible[HADRONIC].transpose(2, 0, 1)
    pions = np.abs(mass - PION_MASS) < 1e-3
    cosine = along / np.hypot(across, along)
    for side, helicity in enumerate((-1, +1)):
        n = pions[side].sum()
        # τ⁻ → π⁻ν: 1 + P cos θ, mean P/3, spread 1/√3.
        assert cosine[side][pions[side]].mean() == pytest.approx(helicity / 3, abs=4 / math.sqrt(3 * n))
    leptonic = library.visible[LEPTONIC]
    assert leptonic[0, :, 1].mean() > 0 > leptonic[1, :, 1].mean(), "left-handed taus give the harder leptons"
    assert set(np.unique(library.flavour)) == {11, 13}
    assert leptonic[..., 2].max() < 0.106
    assert mass.max() < TAU_MASS


def test_decay_in_flight_conserves_mass_and_keeps_neutrinos_physical(library):
    rng = np.random.default_rng(4)
    direction = rng.normal(size=(500, 3))
    momenta = np.concatenate(
        [np.full((500, 1), 40.0), 40.0 * direction / np.linalg.norm(direction, axis=1)[:, None]], 1
    )
    tau = momenta.copy()
    tau[:, 0] = math.hypot(40.0, TAU_MASS)
    for mode, charge in ((LEPTONIC, -1), (HADRONIC, +1)):
        visible, flavour = library.decay(rng, momenta, np.full(500, charge), charge, mode)
        neutrinos = tau - visible
        assert (neutrinos[:, 0] > 0).all()
        # Neutrinos have a real mass: zero for one, anything for two; the slack is float32 in the library.
        assert dot(neutrinos, neutrinos).min() > -2e-2
        assert (flavour > 0).all() if mode == LEPTONIC else (flavour == 0).all()


def test_charge_conjugate_taus_use_the_opposite_helicity(library):
    momenta = np.tile([50.0, 0.0, 0.0, 50.0], (300, 1))
    minus = library.decay(np.random.default_rng(1), momenta, np.full(300, +1), -1, HADRONIC)[0]
    plus = library.decay(np.random.default_rng(1), momenta, np.full(300, -1), +1, HADRONIC)[0]
    assert np.array_equal(minus, plus)


def test_library_round_trip_and_damage(library, tmp_path):
    path = tmp_path / "library.npz"
    library.save(path)
    assert np.array_equal(TauLibrary.load(path).visible, library.visible)
    path.write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"library\.npz: not a library of tau decays"):
        TauLibrary.load(path)


def truth(n: int) -> Truth:
    def beam(pt: float, eta: float, phi: float, mass: float) -> np.ndarray:
        p = np.array([pt * math.cos(phi), pt * math.sin(phi), pt * math.sinh(eta)])
        return np.tile([math.sqrt(p @ p + mass**2), *p], (n, 1))

    flavour = np.full(n, 13, dtype=np.int8)
    return Truth(beam(30, 0.5, 0.1, 0.1057), flavour, beam(25, -1, 2, 0.8), beam(12, 0.2, -2, 0), beam(20, 0, 1, 0))


def test_resolution_of_the_detector():
    n = 20_000
    objects = smear(np.random.default_rng(1), truth(n))
    widths = {"lepton_pt": 30 * math.hypot(0.018, 3e-3), "tau_pt": 25 * float(tau_resolution(np.array([25.0]))[0])}
    widths["photon_pt"] = 12 * math.hypot(0.1 / math.sqrt(12 * math.cosh(0.2)), 0.007)
    for name, width in widths.items():
        # Five standard errors of a standard deviation.
        assert getattr(objects, name).std() == pytest.approx(width, rel=5 / math.sqrt(2 * n))
    assert objects.residual_x.std() == pytest.approx(MET_RESOLUTION, rel=5 / math.sqrt(2 * n))
    neutrinos = objects.met_x - objects.residual_x
    assert neutrinos == pytest.approx(20 * math.cos(1), abs=0.01)
    assert objects.tau_mass == pytest.approx(0.8, rel=1e-4)


def test_stored_events_are_those_that_any_variation_selects():
    objects = smear(np.random.default_rng(2), truth(5_000))
    kept, nominal = select(objects)
    passed = [Reconstruction(objects).passes(shift) for shifts in SHAPES.values() for shift in shifts]
    wanted = np.any(passed, axis=0) | Reconstruction(objects).passes()
    assert np.array_equal(kept.event_number, np.flatnonzero(wanted))
    assert np.array_equal(nominal, Reconstruction(kept).passes())
    assert 0 < (~nominal).sum() < len(nominal)
