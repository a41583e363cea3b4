"""The matrix elements against traces of Dirac matrices, the QED formula of Berends et al., and general principles."""

import math

import numpy as np
import pytest
from scipy import integrate

from qbdt.studies.generator.matrix_elements import (
    CHARGES,
    DOWN,
    LEFT,
    RIGHT,
    UP,
    Couplings,
    background_matrix_element,
    higgs_dalitz,
)
from tests.studies.generator.kinematics import beams, three_body

METRIC = np.array([1.0, -1.0, -1.0, -1.0])
PAULI = [np.array([[0, 1], [1, 0]]), np.array([[0, -1j], [1j, 0]]), np.array([[1, 0], [0, -1]])]
GAMMA = [np.diag([1, 1, -1, -1]).astype(complex)] + [np.kron(np.array([[0, 1], [-1, 0]]), s) for s in PAULI]
GAMMA5 = 1j * GAMMA[0] @ GAMMA[1] @ GAMMA[2] @ GAMMA[3]
CHIRAL = {LEFT: (np.eye(4) - GAMMA5) / 2, RIGHT: (np.eye(4) + GAMMA5) / 2}
QED = Couplings(z_weight=0.0)


def mdot(p, q):
    return float(p @ (METRIC * q))


def slash(p):
    return sum(METRIC[m] * p[m] * GAMMA[m] for m in range(4))


def bar(matrix):
    return GAMMA[0] @ matrix.conj().T @ GAMMA[0]


def by_traces(momenta, kind, tau_helicity, couplings):
    """|M|² from the Feynman diagrams, spins summed by traces, averaged over initial spins and colours."""
    quark, antiquark, tau, antitau, photon = momenta
    e = math.sqrt(4 * math.pi * couplings.alpha)
    s, s_pair = 2 * mdot(quark, antiquark), 2 * mdot(tau, antitau)
    total = 0.0
    for quark_helicity in (LEFT, RIGHT):
        exchange = [
            couplings.propagator(np.array([value]), kind, quark_helicity, tau_helicity)[0] / value
            for value in (s_pair, s)
        ]
        terms = []
        for m in range(4):
            q_vertex, l_vertex = GAMMA[m] @ CHIRAL[quark_helicity], GAMMA[m] @ CHIRAL[tau_helicity]
            for a in range(4):
                initial = (
                    GAMMA[m] @ propagator(quark - photon) @ GAMMA[a]
                    + GAMMA[a] @ propagator(photon - antiquark) @ GAMMA[m]
                )
                final = (
                    GAMMA[a] @ propagator(tau + photon) @ GAMMA[m] - GAMMA[m] @ propagator(antitau + photon) @ GAMMA[a]
                )
                terms.append((a, METRIC[m] * CHARGES[kind] * exchange[0], initial @ CHIRAL[quark_helicity], l_vertex))
                terms.append((a, METRIC[m] * -1.0 * exchange[1], q_vertex, final @ CHIRAL[tau_helicity]))
        for a1, c1, q1, l1 in terms:
            for a2, c2, q2, l2 in terms:
                if a1 == a2:
                    hadronic = np.trace(slash(antiquark) @ q1 @ slash(quark) @ bar(q2))
                    leptonic = np.trace(slash(tau) @ l1 @ slash(antitau) @ bar(l2))
                    total += (-METRIC[a1] * c1 * np.conj(c2) * hadronic * leptonic).real
    return e**6 * total / 12


def propagator(p):
    return slash(p) / mdot(p, p)


def element(p1, p2, tau, antitau, photon, couplings=None):
    p1, p2, tau, antitau, photon = (p[None] for p in (p1, p2, tau, antitau, photon))
    return background_matrix_element(p1, p2, tau, antitau, photon, couplings)[..., 0]


@pytest.mark.parametrize("energy", [60.0, 91.19, 400.0])
@pytest.mark.parametrize("kind", [UP, DOWN])
def test_equals_the_feynman_diagrams_for_each_tau_helicity(energy, kind):
    rng = np.random.default_rng(int(energy))
    p1, p2 = beams(energy)
    final = three_body(rng, energy)
    ours = element(p1, p2, *final)[kind]
    for helicity in (LEFT, RIGHT):
        for direction, (quark, antiquark) in enumerate([(p1, p2), (p2, p1)]):
            reference = by_traces((quark, antiquark, *final), kind, helicity, Couplings())
            # The traces cancel over a few orders of magnitude; both sides are double precision.
            assert ours[direction, helicity] == pytest.approx(reference, rel=1e-9)


def current_squared(quark, antiquark, tau, antitau, photon, charge):
    current = charge * (antiquark / mdot(antiquark, photon) - quark / mdot(quark, photon)) - (
        tau / mdot(tau, photon) - antitau / mdot(antitau, photon)
    )
    return -mdot(current, current)


@pytest.mark.parametrize("kind", [UP, DOWN])
def test_equals_the_qed_formula_of_berends_et_al(kind):
    rng = np.random.default_rng(7)
    for energy in (30.0, 200.0):
        p1, p2 = beams(energy)
        tau, antitau, photon = three_body(rng, energy)
        invariants = sum(4 * mdot(p, q) ** 2 for p in (p1, p2) for q in (tau, antitau))
        born = invariants / (2 * mdot(p1, p2) * 2 * mdot(tau, antitau))
        radiation = current_squared(p1, p2, tau, antitau, photon, CHARGES[kind])
        reference = (4 * math.pi * QED.alpha) ** 3 * CHARGES[kind] ** 2 * born * radiation / 3
        ours = element(p1, p2, tau, antitau, photon, QED)[kind, 0].sum()
        assert ours == pytest.approx(reference, rel=1e-10)


def test_charge_conjugation_in_qed():
    rng = np.random.default_rng(3)
    p1, p2 = beams(120.0)
    tau, antitau, photon = three_body(rng, 120.0)
    direct, conjugate = element(p1, p2, tau, antitau, photon, QED), element(p1, p2, antitau, tau, photon, QED)
    assert direct[:, 0, LEFT] == pytest.approx(conjugate[:, 1, RIGHT], rel=1e-12)
    assert direct[:, 0, RIGHT] == pytest.approx(conjugate[:, 1, LEFT], rel=1e-12)


def test_charge_conjugation_with_parity_including_the_z():
    rng = np.random.default_rng(4)
    p1, p2 = beams(95.0)
    tau, antitau, photon = three_body(rng, 95.0)
    direct = element(p1, p2, tau, antitau, photon)
    mirrored = element(METRIC * p2, METRIC * p1, METRIC * antitau, METRIC * tau, METRIC * photon)
    assert direct == pytest.approx(mirrored, rel=1e-12)
    swapped = element(p1, p2, antitau, tau, photon)[:, ::-1, ::-1]
    assert direct != pytest.approx(swapped, rel=1e-2), "charge conjugation alone is broken by the Z boson"


def test_soft_photon_limit_is_the_classical_current_times_the_born_term():
    couplings = Couplings()
    energy, cosine = 150.0, 0.37
    p1, p2 = beams(energy)
    sine = math.sqrt(1 - cosine**2)
    tau = energy / 2 * np.array([1, sine, 0, cosine])
    antitau = energy / 2 * np.array([1, -sine, 0, -cosine])
    photon = 1e-6 * np.array([1, 0.6, 0.64, math.sqrt(1 - 0.36 - 0.4096)])
    ours = element(p1, p2, tau, antitau, photon)
    e2 = 4 * math.pi * couplings.alpha
    for kind in (UP, DOWN):
        radiation = e2 * current_squared(p1, p2, tau, antitau, photon, CHARGES[kind])
        for helicity in (LEFT, RIGHT):
            born = 0.0
            for quark_helicity in (LEFT, RIGHT):
                exchange = abs(couplings.propagator(np.array([energy**2]), kind, quark_helicity, helicity)[0]) ** 2
                angular = (1 + cosine) ** 2 if quark_helicity == helicity else (1 - cosine) ** 2
                born += e2**2 * exchange * angular / 12
            # Corrections are of the order of the photon's energy over the width of the Z boson.
            assert ours[kind, 0, helicity] == pytest.approx(born * radiation, rel=1e-4)


def test_higgs_dalitz_is_the_splitting_function_in_the_collinear_limit():
    x, r = 0.3, 1e-9
    z = 1 - x
    expected = Couplings().alpha / (2 * math.pi) * (1 + z * z) / (1 - z) / r
    assert higgs_dalitz(np.array([x]), np.array([r]))[0] == pytest.approx(expected, rel=1e-8)


def test_higgs_dalitz_integrates_to_a_known_rate():
    alpha, low = Couplings().alpha, 0.1
    rate, _ = integrate.dblquad(lambda r, x: higgs_dalitz(np.array([x]), np.array([r]))[0], low, 1, 0.01, 0.99)
    analytic = alpha / (2 * math.pi) * (2 * math.log(1 / low) - 2 * (1 - low) + (1 - low**2) / 2) * 2 * math.log(99)
    assert rate == pytest.approx(analytic, rel=1e-6)
