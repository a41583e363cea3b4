"""Sampling of both processes: kinematics, cuts, and cross sections that do not depend on how they are sampled."""

import math

import numpy as np
import pytest
from scipy import integrate

from qbdt.studies.generator.constants import CUTS, HIGGS_BR_TAUTAU, HIGGS_CUTS, HIGGS_MASS, GeneratorCuts
from qbdt.studies.generator.matrix_elements import dot, higgs_dalitz
from qbdt.studies.generator.partons import GLUON, PartonDensities
from qbdt.studies.generator.phase_space import ChannelSettings, accept, sample_points
from qbdt.studies.generator.processes import GLUON_FUSION, ROOT_S, BackgroundProcess, SignalProcess, run_pilot, unweight
from tests.studies.generator.kinematics import toy_densities


@pytest.fixture(scope="module")
def densities() -> PartonDensities:
    return toy_densities()


def test_points_are_massless_conserve_momentum_and_pass_the_cuts():
    points = sample_points(np.random.default_rng(1), 20_000)
    assert len(points) > 4_000
    total = points.tau + points.antitau + points.photon
    for p in (points.tau, points.antitau, points.photon):
        assert np.abs(dot(p, p)).max() < 1e-6 * points.s_hat.max()
    assert dot(total, total) == pytest.approx(points.s_hat, rel=1e-9)
    assert 2 * dot(points.tau, points.antitau) == pytest.approx(points.s_pair, rel=1e-7)
    assert np.hypot(total[:, 1], total[:, 2]).max() < 1e-6
    assert np.arctanh(total[:, 3] / total[:, 0]) == pytest.approx(points.rapidity, abs=1e-9)
    assert accept(points.tau, points.antitau, points.photon, CUTS).all()
    assert np.sqrt(2 * np.minimum(dot(points.tau, points.photon), dot(points.antitau, points.photon))).min() > 1.7


@pytest.mark.parametrize(
    "channels",
    [
        ChannelSettings(shares=(0.1, 0.4, 0.1, 0.4)),
        ChannelSettings(shares=(0.25, 0.25, 0.25, 0.25), mass_power=1.3, gap_power=1.3),
        ChannelSettings(mass_power=2.0, gap_power=2.0),
    ],
)
def test_cross_section_does_not_depend_on_the_sampling(densities, channels):
    rng = np.random.default_rng(5)
    default = run_pilot(BackgroundProcess(densities), rng, 150_000)
    other = run_pilot(BackgroundProcess(densities, channels=channels), rng, 150_000)
    assert default.error / default.cross_section < 0.01
    # Four standard deviations of the difference: a wrong density is off by far more than 3 %.
    assert abs(default.cross_section - other.cross_section) < 4 * math.hypot(default.error, other.error)


def test_tighter_cuts_are_a_subset(densities):
    tight = GeneratorCuts(photon_pt=10.0, tau_pt=15.0, eta=2.5, delta_r_photon=0.5)
    rng = np.random.default_rng(8)
    direct = run_pilot(BackgroundProcess(densities, tight), rng, 150_000)
    n = 300_000
    total = squares = 0.0
    for _ in range(6):
        events, weight = BackgroundProcess(densities).propose(rng, n // 6)
        weight = weight[accept(events.tau, events.antitau, events.photon, tight)]
        total, squares = total + weight.sum(), squares + np.square(weight).sum()
    assert abs(direct.cross_section - total / n) < 4 * math.hypot(direct.error, math.sqrt(squares) / n)


def test_background_flavours_and_helicities(densities):
    events, weight = BackgroundProcess(densities).propose(np.random.default_rng(2), 20_000)
    assert (weight > 0).all()
    assert (events.id1 == -events.id2).all()
    assert set(np.abs(events.id1)) == {1, 2, 3, 4, 5}
    assert (events.tau_helicity == -events.antitau_helicity).all()
    assert events.x1 * events.x2 * ROOT_S**2 == pytest.approx(events.scale**2, rel=1e-9)
    forward = (np.abs(events.id1) <= 2) & (events.x1 > events.x2)
    assert weight[forward & (events.id1 > 0)].sum() > 1.2 * weight[forward & (events.id1 < 0)].sum(), "valence quarks"


def test_signal_cross_section_equals_the_integral(densities):
    pilot = run_pilot(SignalProcess(densities), np.random.default_rng(3), 100_000)
    y = np.linspace(-1, 1, 20_001) * math.log(ROOT_S / HIGGS_MASS)
    scale = np.full(len(y), HIGGS_MASS)
    luminosity = np.prod([densities.xf(HIGGS_MASS / ROOT_S * np.exp(s * y), scale)[:, GLUON] for s in (1, -1)], axis=0)
    gluons = integrate.trapezoid(luminosity, y)
    least = HIGGS_CUTS.min_s_tau_photon / HIGGS_MASS**2
    middle = np.array([0.5])

    def over_ratio(x):
        return higgs_dalitz(np.array([x]), middle)[0] / 4 * 2 * math.log(x / least - 1)

    rate, _ = integrate.quad(over_ratio, HIGGS_CUTS.x_min, 1)
    expected = GLUON_FUSION * HIGGS_BR_TAUTAU * gluons * rate
    assert pilot.cross_section == pytest.approx(expected, abs=4 * pilot.error)


def test_signal_events_have_the_higgs_mass_and_equal_helicities(densities):
    events, weight = SignalProcess(densities).propose(np.random.default_rng(2), 5_000)
    events = events[weight > 0]
    total = events.tau + events.antitau + events.photon
    assert np.sqrt(dot(total, total)) == pytest.approx(HIGGS_MASS, rel=1e-9)
    assert (events.tau_helicity == events.antitau_helicity).all()
    lightest = 2 * np.minimum(dot(events.tau, events.photon), dot(events.antitau, events.photon)).min()
    assert lightest > HIGGS_CUTS.min_s_tau_photon * (1 - 1e-9)


def test_unweighting_keeps_the_cross_section(densities):
    process = BackgroundProcess(densities)
    pilot = run_pilot(process, np.random.default_rng(1), 100_000)
    n = 120_000
    pieces, weight_sum, clipped = unweight(process, np.random.default_rng(2), n, pilot.largest)
    kept = sum(len(piece) for piece in pieces)
    assert clipped / weight_sum < 1e-3
    assert pilot.largest * kept / n == pytest.approx(weight_sum / n, rel=4 / math.sqrt(kept))
