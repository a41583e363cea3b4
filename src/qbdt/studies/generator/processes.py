"""Parton-level events of both processes: weights, unweighting, flavours and helicities.

In: parton densities and a random generator. Out: `HardEvents`, unweighted, from a fixed number of phase-space points,
so that the cross section of what survives is `largest weight × survivors / points` without further bookkeeping. The
largest weight is fixed once by a pilot run; larger weights are clipped, and the share this loses is measured and
recorded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.studies.generator.constants import (
    ALPHA_S,
    BEAM_ENERGY_SQUARED,
    CUTS,
    FERMI,
    GEV2_TO_FB,
    HIGGS_BR_TAUTAU,
    HIGGS_CUTS,
    HIGGS_MASS,
    GeneratorCuts,
    HiggsCuts,
)
from qbdt.studies.generator.matrix_elements import DOWN, UP, background_matrix_element, higgs_dalitz
from qbdt.studies.generator.partons import FLAVOURS, GLUON, PartonDensities
from qbdt.studies.generator.phase_space import DEFAULT_CHANNELS, ChannelSettings, decay, sample_points

QUARKS = (1, 2, 3, 4, 5)
ROOT_S = math.sqrt(BEAM_ENERGY_SQUARED)
GLUON_FUSION = GEV2_TO_FB * FERMI * ALPHA_S**2 / (288 * math.sqrt(2) * math.pi)
"""Leading order, heavy top: dσ(gg → h)/dY = G_F α_s² / (288 √2 π) x₁g(x₁) x₂g(x₂), here in fb.

H. Georgi et al., Phys. Rev. Lett. 40 (1978) 692. Higher orders are 2.6 times this."""


@dataclass(frozen=True, slots=True)
class HardEvents:
    """Events before the shower: lab momenta (E, px, py, pz) without transverse recoil."""

    # id1, id2, x1, x2: pDG codes and momentum fractions of the incoming partons
    id1: NDArray[np.int64]
    id2: NDArray[np.int64]
    x1: Floats
    x2: Floats
    scale: Floats  # Factorisation scale, in GeV
    # tau, antitau, photon: momenta of τ⁻, τ⁺ and γ
    tau: Floats
    antitau: Floats
    photon: Floats
    # tau_helicity, antitau_helicity: ±1
    tau_helicity: NDArray[np.int64]
    antitau_helicity: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.x1)

    def __getitem__(self, rows: NDArray[np.bool_] | NDArray[np.intp] | slice) -> HardEvents:
        return HardEvents(*(getattr(self, name)[rows] for name in self.__slots__))


class HardProcess(Protocol):
    """A process that proposes weighted parton-level events."""

    def propose(self, rng: np.random.Generator, n: int) -> tuple[HardEvents, Floats]:
        """Return the proposals of `n` points inside the cuts, and dσ/density of each in fb (others weigh nothing)."""
        ...


@dataclass(frozen=True, slots=True)
class BackgroundProcess:
    """Propose q q̄ → τ⁻ τ⁺ γ; the factorisation scale is the mass of the three."""

    densities: PartonDensities
    cuts: GeneratorCuts = CUTS
    channels: ChannelSettings = DEFAULT_CHANNELS

    def propose(self, rng: np.random.Generator, n: int) -> tuple[HardEvents, Floats]:
        """Draw points, sum over flavours, directions and helicities, and choose among them in proportion."""
        points = sample_points(rng, n, self.cuts, self.channels)
        scale = np.sqrt(points.s_hat)
        x1, x2 = scale / ROOT_S * np.exp(points.rapidity), scale / ROOT_S * np.exp(-points.rapidity)
        element = background_matrix_element(_beam(x1, +1), _beam(x2, -1), points.tau, points.antitau, points.photon)
        # dσ = Σ x₁f x₂f |M|² / (2ŝ) dΦ₃ dŝ dY / ŝ with dΦ₃ = ds_ττ/2π · dΦ₂(ŝ; s_ττ, 0) dΦ₂(s_ττ; 0, 0) and
        # dΦ₂ = (1 − s_ττ/ŝ) dΩ / 32π² for a massless photon, dΩ / 32π² for two massless taus.
        phase_space = (1 - points.s_pair / points.s_hat) / (2 * math.pi * (32 * math.pi**2) ** 2)
        common = GEV2_TO_FB * phase_space / (2 * points.s_hat**2 * points.density)
        terms = common * self._luminosities(x1, x2, scale)[:, :, None] * element[_TYPES]
        total, chosen = _choose(rng, terms.reshape(-1, len(points)))
        flavour, swapped, right = np.unravel_index(chosen, terms.shape[:3])
        quark = np.asarray(QUARKS)[flavour] * (1 - 2 * swapped)
        helicity = 2 * right - 1
        events = HardEvents(
            quark, -quark, x1, x2, scale, points.tau, points.antitau, points.photon, helicity, -helicity
        )
        return events, total

    def _luminosities(self, x1: Floats, x2: Floats, scale: Floats) -> Floats:
        """x₁f x₂f of quark and antiquark: shape (5, 2, n), quark in beam 1 or in beam 2."""
        f1, f2 = self.densities.xf(x1, scale), self.densities.xf(x2, scale)
        quarks, antiquarks = ([FLAVOURS.index(sign * q) for q in QUARKS] for sign in (+1, -1))
        return np.stack([f1[:, quarks] * f2[:, antiquarks], f1[:, antiquarks] * f2[:, quarks]]).transpose(2, 0, 1)


_TYPES = np.array([UP if quark in (2, 4) else DOWN for quark in QUARKS])


@dataclass(frozen=True, slots=True)
class SignalProcess:
    """Propose g g → h → τ⁻ τ⁺ γ on the mass shell, isotropic, at leading order like the background."""

    densities: PartonDensities
    cuts: HiggsCuts = HIGGS_CUTS

    def propose(self, rng: np.random.Generator, n: int) -> tuple[HardEvents, Floats]:
        """Draw rapidity, the Dalitz variables with their soft and collinear densities, and directions."""
        u = rng.random((6, n))
        # x = 2E_γ/m_h with density ∝ 1/x (soft); r = s_τγ/(m_h² x) with density ∝ 1/(r(1 − r)) (collinear to a tau):
        # r = (1 − tanh y)/2 with y flat. Cuts: x > x_min, and s_τγ > s_min, that is r_min/x < r < 1 − r_min/x.
        x_min, r_min = self.cuts.x_min, self.cuts.min_s_tau_photon / HIGGS_MASS**2
        x = x_min ** (1 - u[0])
        reach = np.arctanh(np.maximum(0.0, 1 - 2 * r_min / x))
        inner = np.tanh((2 * u[1] - 1) * reach)
        ratio = 0.5 * (1 - inner)
        density = 1 / (x * -math.log(x_min)) / (reach * (1 - inner**2))
        # Y is flat between −ln(√s/m_h) and +ln(√s/m_h); 2·half in the weight is the length of that interval.
        half = math.log(ROOT_S / HIGGS_MASS)
        rapidity = (2 * u[2] - 1) * half
        luminosity, x1, x2 = self._luminosity(rapidity)
        weight = GLUON_FUSION * HIGGS_BR_TAUTAU * luminosity * 2 * half * higgs_dalitz(x, ratio) / density
        momenta = decay(
            np.full(n, HIGGS_MASS**2), HIGGS_MASS**2 * (1 - x), rapidity, 2 * u[3] - 1, 2 * math.pi * u[4], inner,
            2 * math.pi * u[5],
        )  # fmt: skip
        photon_pt = np.hypot(momenta[2][:, 1], momenta[2][:, 2])
        weight = np.where((reach > 0) & np.isfinite(weight) & (photon_pt > self.cuts.photon_pt), weight, 0.0)
        # A scalar decays into taus of the same helicity, left and right equally often.
        helicity = 2 * rng.integers(0, 2, n) - 1
        gluon = np.full(n, 21)
        events = HardEvents(gluon, gluon, x1, x2, np.full(n, HIGGS_MASS), *momenta, helicity, helicity)
        return events, weight

    def _luminosity(self, rapidity: Floats) -> tuple[Floats, Floats, Floats]:
        x1, x2 = HIGGS_MASS / ROOT_S * np.exp(rapidity), HIGGS_MASS / ROOT_S * np.exp(-rapidity)
        scale = np.full(len(rapidity), HIGGS_MASS)
        return self.densities.xf(x1, scale)[:, GLUON] * self.densities.xf(x2, scale)[:, GLUON], x1, x2


def _beam(x: Floats, sign: int) -> Floats:
    energy, zero = 0.5 * ROOT_S * x, np.zeros_like(x)
    return np.stack([energy, zero, zero, sign * energy], axis=1)


def _choose(rng: np.random.Generator, terms: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return the sum over the first axis and, per column, one index chosen in proportion to its term."""
    running = np.cumsum(terms, axis=0)
    chosen = (running < rng.random(terms.shape[1]) * running[-1]).sum(axis=0)
    return running[-1], np.minimum(chosen, len(terms) - 1)


@dataclass(frozen=True, slots=True)
class Pilot:
    """Outcome of a pilot run: cross section inside the cuts and the weight that unweighting clips at, in fb."""

    cross_section: float
    error: float
    largest: float
    clipped: float


def run_pilot(process: HardProcess, rng: np.random.Generator, n: int) -> Pilot:
    """Integrate with `n` points and find the weight above which at most `CLIPPED` of the cross section lies."""
    weights = np.sort(np.concatenate([process.propose(rng, min(CHUNK, n))[1] for _ in range(-(-n // CHUNK))]))[::-1]
    n = -(-n // CHUNK) * min(CHUNK, n)
    # Clipping at the k-th largest weight w_k loses Σ_{i≤k} (w_i − w_k).
    above = np.cumsum(weights) - weights * np.arange(1, len(weights) + 1)
    last = int(np.searchsorted(above, CLIPPED * weights.sum(), side="right")) - 1
    mean = float(weights.sum() / n)
    error = math.sqrt(max(float(np.square(weights).sum()) / n - mean**2, 0.0) / n)
    return Pilot(mean, error, float(weights[last]), float(above[last] / weights.sum()))


CLIPPED = 1e-4
"""Largest share of a cross section that may lie above the largest weight."""

CHUNK = 50_000
"""Points that are held in memory at once."""


def unweight(
    process: HardProcess, rng: np.random.Generator, n_points: int, largest: float
) -> tuple[list[HardEvents], float, float]:
    """Unweight `n_points` points; return the survivors in pieces, the sum of weights and that of clipped excess."""
    kept, weight_sum, clipped_sum = [], 0.0, 0.0
    for start in range(0, n_points, CHUNK):
        events, weight = process.propose(rng, min(CHUNK, n_points - start))
        weight_sum += float(weight.sum())
        clipped_sum += float(np.maximum(weight - largest, 0.0).sum())
        # A point survives with probability weight/largest: survivors all have the same weight.
        kept.append(events[rng.random(len(weight)) * largest < weight])
    return kept, weight_sum, clipped_sum
