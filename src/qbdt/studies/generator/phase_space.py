"""Phase space of q q̄ → τ⁻ τ⁺ γ: four sampling channels over one set of variables, and their common density.

A point is (ŝ, s_ττ, Y, direction of the photon in the partonic frame, direction of the τ⁻ in the pair's frame). In:
random numbers. Out: `Points` with lab momenta and the density Σᵢ αᵢ gᵢ of the mixture in dŝ ds_ττ dY dΩ_γ dΩ_τ, so
that the estimate does not depend on which channel made a point.

Channels: radiation off the quarks (pair mass on the Z or falling like a power; photon flat in rapidity) and off the
taus (total mass on the Z or falling; photon collinear to a tau).

Every density is drawn by inverting its cumulative distribution. Reference for the mixture of channels: R. Kleiss,
R. Pittau, Weight optimization in multichannel Monte Carlo, Comput. Phys. Commun. 83 (1994) 141.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.studies.generator.constants import BEAM_ENERGY_SQUARED, CUTS, Z_MASS, Z_WIDTH, GeneratorCuts

S_MAX = BEAM_ENERGY_SQUARED * 0.25
"""Above 6.5 TeV there is nothing to sample at any size of interest (below 1e-9 of the cross section)."""
FIRST_MAX = 0.999 * S_MAX
"""Bound of the mass that is drawn first, a little lower so that the second has room."""


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """Shares of the four channels and the powers of their falling densities; results must not depend on them."""

    # Quark radiation with Z, with γ*; tau radiation with Z, with γ*. They sum to one
    shares: tuple[float, float, float, float] = (0.40, 0.20, 0.25, 0.15)
    mass_power: float = 1.6  # The γ* channels fall like (mass²)^−power
    gap_power: float = 1.6  # Channels off the quarks: density of ŝ − s_ττ


DEFAULT_CHANNELS = ChannelSettings()


@dataclass(frozen=True, slots=True)
class Points:
    """Phase-space points: lab momenta (E, px, py, pz), invariants and the sampling density."""

    s_hat: Floats
    s_pair: Floats
    rapidity: Floats
    tau: Floats
    antitau: Floats
    photon: Floats
    density: Floats

    def __len__(self) -> int:
        return len(self.s_hat)

    def __getitem__(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Points:
        return Points(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class _BreitWigner:
    """Density ∝ 1 / ((s − M²)² + M²Γ²) between two bounds."""

    low: float
    high: float

    def _angle(self, s: Floats | float) -> Floats:
        return np.asarray(np.arctan((np.asarray(s) - Z_MASS**2) / (Z_MASS * Z_WIDTH)))

    def draw(self, u: Floats) -> Floats:
        # The integral of a Breit–Wigner is an arctangent: flat in the angle, s = M² + MΓ tan(angle).
        a, b = self._angle(self.low), self._angle(self.high)
        return np.asarray(Z_MASS**2 + Z_MASS * Z_WIDTH * np.tan(a + u * (b - a)))

    def density(self, s: Floats) -> Floats:
        span = float(self._angle(self.high) - self._angle(self.low))
        return np.asarray(Z_MASS * Z_WIDTH / span / ((s - Z_MASS**2) ** 2 + (Z_MASS * Z_WIDTH) ** 2))


def _draw_power(u: Floats, low: Floats | float, high: Floats | float, power: float) -> Floats:
    """Draw x in [low, high] with density ∝ x^−power, power ≠ 1."""
    k = 1 - power
    low_k, high_k = np.asarray(low) ** k, np.asarray(high) ** k
    return np.asarray((low_k + u * (high_k - low_k)) ** (1 / k))


def _power_density(x: Floats, low: Floats | float, high: Floats | float, power: float) -> Floats:
    k = 1 - power
    return np.asarray(k * x**-power / (np.asarray(high) ** k - np.asarray(low) ** k))


class _Masses:
    """Joint densities of (ŝ, s_ττ): pair first for radiation off the quarks, total first for radiation off the taus."""

    def __init__(self, cuts: GeneratorCuts, settings: ChannelSettings) -> None:
        self.cut, self.settings = cuts.photon_pt, settings
        self.pair_min = cuts.tau_pair_mass**2
        self.hat_min = float(self.threshold(np.asarray(self.pair_min)))

    def threshold(self, s_pair: Floats) -> Floats:
        """Smallest ŝ at which a photon of the least transverse momentum fits."""
        return np.asarray((self.cut + np.sqrt(self.cut**2 + s_pair)) ** 2)

    def draw(self, channel: int, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Draw (ŝ, s_ττ) from two random numbers each; the quark channels are 0 and 1, the Breit–Wigners 0 and 2."""
        # The resonant mass first: s_ττ where the quarks radiate (the Z decays to the pair), ŝ where the taus do.
        low, high = self.pair_min if channel < 2 else self.hat_min, FIRST_MAX
        first = (
            _BreitWigner(low, high).draw(u) if channel % 2 == 0 else _draw_power(u, low, high, self.settings.mass_power)
        )
        if channel < 2:
            gap = _draw_power(v, *self._gap_range(first), self.settings.gap_power)
            return first + gap, first
        # ŝ − s_ττ = 2 E_γ sqrt(ŝ) falls like 1/E_γ, the soft singularity: flat in its logarithm.
        low_gap, high_gap = self._inner_range(first)
        return first, np.asarray(first - low_gap * (high_gap / low_gap) ** v)

    def _gap_range(self, s_pair: Floats) -> tuple[Floats, Floats]:
        return self.threshold(s_pair) - s_pair, S_MAX - s_pair

    def _inner_range(self, s_hat: Floats) -> tuple[Floats, Floats]:
        return 2 * self.cut * np.sqrt(s_hat), s_hat - self.pair_min

    def densities(self, s_hat: Floats, s_pair: Floats) -> list[Floats]:
        """Return the four densities at every point; the points of any channel lie inside the support of all."""
        gap, high = s_hat - s_pair, FIRST_MAX
        power = self.settings.mass_power
        outer = _power_density(gap, *self._gap_range(s_pair), self.settings.gap_power)
        low_gap, high_gap = self._inner_range(s_hat)
        inner = 1 / (gap * np.log(high_gap / low_gap))
        return [
            _BreitWigner(self.pair_min, high).density(s_pair) * outer,
            _power_density(s_pair, self.pair_min, high, power) * outer,
            _BreitWigner(self.hat_min, high).density(s_hat) * inner,
            _power_density(s_hat, self.hat_min, high, power) * inner,
        ]


def _frame(axis: Floats) -> tuple[Floats, Floats]:
    """Return two unit vectors that complete each axis to an orthonormal frame."""
    helper = np.where(np.abs(axis[:, 2:]) < 0.9, [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]])
    first = np.cross(helper, axis)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return first, np.cross(axis, first)


def direction(cosine: Floats, azimuth: Floats, axis: Floats | None = None) -> Floats:
    """Return unit vectors at polar angle and azimuth about an axis, by default the beam."""
    sine = np.sqrt(1 - cosine**2)
    if axis is None:
        return np.stack([sine * np.cos(azimuth), sine * np.sin(azimuth), cosine], axis=1)
    first, second = _frame(axis)
    return np.asarray(
        cosine[:, None] * axis + (sine * np.cos(azimuth))[:, None] * first + (sine * np.sin(azimuth))[:, None] * second
    )


def boost(momenta: Floats, gamma: Floats, gamma_beta: Floats) -> Floats:
    """Boost four-momenta by γ and the vector γβ."""
    along = np.einsum("ij,ij->i", momenta[:, 1:], gamma_beta)
    energy = gamma * momenta[:, 0] + along
    space = momenta[:, 1:] + gamma_beta * (momenta[:, 0] + along / (1 + gamma))[:, None]
    return np.concatenate([energy[:, None], space], axis=1)


def sample_points(
    rng: np.random.Generator, n: int, cuts: GeneratorCuts = CUTS, settings: ChannelSettings = DEFAULT_CHANNELS
) -> Points:
    """Draw `n` points from the mixture and keep those inside the cuts; the others count with weight zero."""
    masses = _Masses(cuts, settings)
    channel = rng.choice(4, size=n, p=settings.shares)
    u = rng.random((7, n))
    s_hat, s_pair = np.empty(n), np.empty(n)
    for k in range(4):
        rows = channel == k
        s_hat[rows], s_pair[rows] = masses.draw(k, u[0, rows], u[1, rows])
    inside = (s_pair > masses.pair_min) & (s_hat < S_MAX) & (s_hat > masses.threshold(s_pair))
    channel, s_hat, s_pair, u = channel[inside], s_hat[inside], s_pair[inside], u[:, inside]
    points = _build(channel < 2, s_hat, s_pair, u[2:], masses, cuts, settings)
    return points[accept(points.tau, points.antitau, points.photon, cuts)]


def _build(
    off_quarks: NDArray[np.bool_],
    s_hat: Floats,
    s_pair: Floats,
    u: Floats,
    masses: _Masses,
    cuts: GeneratorCuts,
    settings: ChannelSettings,
) -> Points:
    # Photon: energy in the partonic frame, and the largest |cos θ| that leaves it the least transverse momentum.
    # Off the quarks it is flat in rapidity, artanh(cos θ): density ∝ 1/(1 − cos²θ), the collinear singularity.
    energy = (s_hat - s_pair) / (2 * np.sqrt(s_hat))
    reach = np.sqrt(np.maximum(0.0, 1 - (cuts.photon_pt / energy) ** 2))
    flat = np.arctanh(reach)
    cosine = np.where(off_quarks, np.tanh((2 * u[0] - 1) * flat), (2 * u[0] - 1) * reach)

    # τ⁻ in the pair's frame, about the photon: s_τγ = (ŝ − s_ττ)(1 ∓ cos θ)/2, singular where it is collinear.
    edge = np.maximum(0.0, 1 - 2 * cuts.min_s_tau_photon / (s_hat - s_pair))
    span = np.arctanh(edge)
    inner = np.where(off_quarks, 2 * u[2] - 1, np.tanh((2 * u[2] - 1) * span))

    # Rapidity of the system: flat where both momentum fractions are below one, e^(2|Y|) < s/ŝ, and |Y| is below the
    # largest |η| of its three particles.
    half = np.minimum(cuts.eta, 0.5 * np.log(BEAM_ENERGY_SQUARED / s_hat))
    rapidity = (2 * u[4] - 1) * half
    density = _mixture(masses.densities(s_hat, s_pair), settings, (cosine, reach, flat), (inner, edge, span)) / (
        2 * half
    )
    momenta = decay(s_hat, s_pair, rapidity, cosine, 2 * math.pi * u[1], inner, 2 * math.pi * u[3])
    return Points(s_hat, s_pair, rapidity, *momenta, density)


def _mixture(
    mass: list[Floats],
    settings: ChannelSettings,
    photon: tuple[Floats, Floats, Floats],
    tau: tuple[Floats, Floats, Floats],
) -> Floats:
    """Return Σ αᵢ gᵢ in dŝ ds_ττ dΩ_γ dΩ_τ (both azimuths flat)."""
    (cosine, reach, flat), (inner, edge, span) = photon, tau
    # The flat direction of each channel is 1/2 in its cosine (τ⁻ off the quarks) or 1/(2 reach) (photon off the taus).
    azimuths = (2 * math.pi) ** -2
    with np.errstate(divide="ignore", invalid="ignore"):
        collinear_to_beam = 1 / ((1 - cosine**2) * 2 * flat) * 0.5
        collinear_to_tau = np.where(np.abs(inner) < edge, 1 / ((1 - inner**2) * 2 * span), 0.0) / (2 * reach)
    shares = settings.shares
    quarks = (shares[0] * mass[0] + shares[1] * mass[1]) * collinear_to_beam
    taus = (shares[2] * mass[2] + shares[3] * mass[3]) * collinear_to_tau
    return np.asarray((quarks + taus) * azimuths)


def decay(
    s_hat: Floats,
    s_pair: Floats,
    rapidity: Floats,
    cosine: Floats,
    azimuth: Floats,
    inner: Floats,
    inner_azimuth: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Return the lab momenta of τ⁻, τ⁺ and γ, all massless.

    The photon's direction is about the beam in the frame of the three, that of the τ⁻ (`inner`) about the photon's in
    the frame of the pair; `rapidity` is that of the three in the lab.
    """
    energy, mass = (s_hat - s_pair) / (2 * np.sqrt(s_hat)), np.sqrt(s_pair)
    photon_axis = direction(cosine, azimuth)
    tau_axis = direction(inner, inner_azimuth, photon_axis)
    one = np.ones((len(energy), 1))
    photon = energy[:, None] * np.concatenate([one, photon_axis], axis=1)
    half = 0.5 * mass[:, None] * np.concatenate([one, tau_axis], axis=1)
    # The pair recoils against the photon: γ = (sqrt(ŝ) − E_γ)/m_ττ, γβ = −p_γ/m_ττ; then along the beam to the lab.
    gamma, gamma_beta = (np.sqrt(s_hat) - energy) / mass, -photon[:, 1:] / mass[:, None]
    along_z = np.stack([np.zeros_like(mass), np.zeros_like(mass), np.sinh(rapidity)], axis=1)
    to_lab = np.cosh(rapidity)
    tau, antitau = (boost(boost(p, gamma, gamma_beta), to_lab, along_z) for p in (half, half * [1.0, -1.0, -1.0, -1.0]))
    return tau, antitau, boost(photon, to_lab, along_z)


def accept(tau: Floats, antitau: Floats, photon: Floats, cuts: GeneratorCuts) -> NDArray[np.bool_]:
    """Tell which events pass the generator cuts on transverse momenta, |η| and ΔR."""
    particles = (tau, antitau, photon)
    pt = [np.hypot(p[:, 1], p[:, 2]) for p in particles]
    passed = (pt[0] > cuts.tau_pt) & (pt[1] > cuts.tau_pt) & (pt[2] > cuts.photon_pt)
    with np.errstate(divide="ignore", invalid="ignore"):
        eta = [np.arcsinh(p[:, 3] / t) for p, t in zip(particles, pt, strict=True)]
    phi = [np.arctan2(p[:, 2], p[:, 1]) for p in particles]
    for value in eta:
        passed &= np.abs(value) < cuts.eta
    for i, j, least in ((0, 1, cuts.delta_r_taus), (0, 2, cuts.delta_r_photon), (1, 2, cuts.delta_r_photon)):
        turn = np.abs(phi[i] - phi[j])
        turn = np.minimum(turn, 2 * math.pi - turn)
        passed &= np.hypot(eta[i] - eta[j], turn) > least
    return passed
