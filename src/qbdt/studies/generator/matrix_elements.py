"""Leading-order matrix elements: q q̄ → τ⁻ τ⁺ γ through γ*/Z, and h → τ⁻ τ⁺ γ.

In: massless four-momenta, arrays of shape (n, 4) ordered (E, px, py, pz). Out: |M|² in GeV⁻², per quark type, beam
direction and tau helicity. The background is the sum of initial- and final-state radiation with their interference, in
the MHV form: for a photon of positive helicity and left-handed lines the amplitude is

    2√2 e³ ⟨a3⟩² [ Q_q P(s₃₄) / (⟨a5⟩⟨5b⟩⟨34⟩) + Q_ℓ P(s₁₂) / (⟨ab⟩⟨35⟩⟨54⟩) ],
    P(s) = Q_q Q_ℓ + g_q g_ℓ s / (s − M_Z² + i M_Z Γ_Z),

with a, b the outgoing quark and antiquark (crossed to the beams), 3 and 4 the τ∓ and 5 the photon. The other helicities
change only which pair stands in the numerator, and complex-conjugate the brackets for the other photon helicity.

References: M. Mangano, S. Parke, Phys. Rept. 200 (1991) 301 (spinor products and MHV amplitudes with photons);
F. A. Berends, R. Kleiss, Nucl. Phys. B177 (1981) 237 (e⁺e⁻ → μ⁺μ⁻γ, with which the tests compare pure QED).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.studies.generator.constants import ALPHA, SIN2_THETA, Z_MASS, Z_WIDTH

UP, DOWN = 0, 1
"""Types of quarks: u, c and d, s, b."""
LEFT, RIGHT = 0, 1
"""Helicities −1/2 and +1/2 of a fermion."""
CHARGES = np.array([2 / 3, -1 / 3])
ISOSPINS = np.array([0.5, -0.5])
TAU_CHARGE = -1.0
TAU_ISOSPIN = -0.5
"""Electric charge in units of e, and third component of the weak isospin of the left-handed fermion."""


@dataclass(frozen=True, slots=True)
class Couplings:
    """Electroweak inputs of the background; `z_weight` = 0 leaves pure QED, for the checks."""

    alpha: float = ALPHA
    sin2_theta: float = SIN2_THETA
    z_mass: float = Z_MASS
    z_width: float = Z_WIDTH
    z_weight: float = 1.0

    def chiral(self, charge: float, isospin: float) -> tuple[float, float]:
        """Return the left- and right-handed Z couplings of a fermion in units of e."""
        # g_L = (T₃ − Q sin²θ) / (sinθ cosθ), g_R = −Q sin²θ / (sinθ cosθ)
        norm = math.sqrt(self.sin2_theta * (1 - self.sin2_theta))
        return (isospin - charge * self.sin2_theta) / norm, -charge * self.sin2_theta / norm

    def propagator(self, s: Floats, quark: int, quark_helicity: int, tau_helicity: int) -> NDArray[np.complex128]:
        """Return P(s), the photon and Z exchange times s."""
        g_quark = self.chiral(float(CHARGES[quark]), float(ISOSPINS[quark]))[quark_helicity]
        g_tau = self.chiral(TAU_CHARGE, TAU_ISOSPIN)[tau_helicity]
        z = s / (s - self.z_mass**2 + 1j * self.z_mass * self.z_width)
        return np.asarray(CHARGES[quark] * TAU_CHARGE + self.z_weight * g_quark * g_tau * z)


def dot(p: Floats, q: Floats) -> Floats:
    """Return the Minkowski product of two arrays of four-momenta."""
    return np.asarray(p[:, 0] * q[:, 0] - p[:, 1] * q[:, 1] - p[:, 2] * q[:, 2] - p[:, 3] * q[:, 3])


def _spinor_product(p: Floats, q: Floats) -> NDArray[np.complex128]:
    """Return ⟨pq⟩ times sqrt(p₊ q₊), with the light-cone axis along x so that the beams (along z) are regular."""
    # ⟨pq⟩ = (p_⊥ q₊ − q_⊥ p₊) / sqrt(p₊ q₊) with p₊ = E + p_x and p_⊥ = p_y + i p_z; |⟨pq⟩|² = 2 p·q
    return np.asarray((p[:, 2] + 1j * p[:, 3]) * (q[:, 0] + q[:, 1]) - (q[:, 2] + 1j * q[:, 3]) * (p[:, 0] + p[:, 1]))


@dataclass(frozen=True, slots=True)
class _Brackets:
    """Spinor products at a phase-space point that all helicities, quark types and both beam directions share."""

    initial: Floats  # |1 / (⟨a5⟩⟨5b⟩⟨34⟩)|²
    final: Floats  # |1 / (⟨ab⟩⟨35⟩⟨54⟩)|²
    mixed: NDArray[np.complex128]  # the first times the conjugate of the second
    numerators: Floats  # s_a3², s_a4², s_b3², s_b4²; shape (4, n)


def _brackets(quark: Floats, antiquark: Floats, tau: Floats, antitau: Floats, photon: Floats) -> _Brackets:
    # Crossing: the incoming antiquark is the outgoing quark a, the incoming quark is the outgoing antiquark b.
    a, b = antiquark, quark
    # `_spinor_product` leaves out 1/sqrt(p₊ q₊): in each bracket every particle stands once, the photon twice.
    plus = [p[:, 0] + p[:, 1] for p in (a, b, tau, antitau, photon)]
    scale = plus[4] * np.sqrt(plus[0] * plus[1] * plus[2] * plus[3])
    initial = scale / (_spinor_product(a, photon) * _spinor_product(photon, b) * _spinor_product(tau, antitau))
    final = scale / (_spinor_product(a, b) * _spinor_product(tau, photon) * _spinor_product(photon, antitau))
    # |⟨a3⟩²|² = s_a3² with s_ij = 2 p_i·p_j
    pairs = [dot(a, tau), dot(a, antitau), dot(b, tau), dot(b, antitau)]
    return _Brackets(np.abs(initial) ** 2, np.abs(final) ** 2, initial * final.conj(), 4 * np.square(pairs))


def background_matrix_element(
    beam1: Floats, beam2: Floats, tau: Floats, antitau: Floats, photon: Floats, couplings: Couplings | None = None
) -> Floats:
    """Return |M|² of q q̄ → τ⁻ τ⁺ γ, averaged over spins and colours.

    Parameters
    ----------
    beam1, beam2
        Incoming partons along +z and −z.
    tau, antitau, photon
        Outgoing τ⁻, τ⁺ and γ.
    couplings
        Electroweak inputs.

    Returns
    -------
    numpy.ndarray
        Shape (2, 2, 2, n): quark type (`UP`, `DOWN`), direction (0: the quark is beam 1, 1: beam 2) and helicity of the
        τ⁻ (`LEFT`, `RIGHT`; the τ⁺ has the opposite one). Sum over the last but one axis for the unpolarised result.
    """
    couplings = couplings or Couplings()
    shared = _brackets(beam1, beam2, tau, antitau, photon)
    s_hat, s_pair = 2 * dot(beam1, beam2), 2 * dot(tau, antitau)
    # |2√2 e³|² = 8 e⁶ with e² = 4πα; averages: 1/4 for the spins, 3/9 for the colours
    norm = 8 * (4 * math.pi * couplings.alpha) ** 3 / 12
    result = np.zeros((2, 2, 2, len(s_hat)))
    for quark in (UP, DOWN):
        for quark_helicity in (LEFT, RIGHT):
            for tau_helicity in (LEFT, RIGHT):
                # Radiation off the quarks has the pair's mass in the propagator, off the taus the total mass.
                at_pair = CHARGES[quark] * couplings.propagator(s_pair, quark, quark_helicity, tau_helicity)
                at_hat = TAU_CHARGE * couplings.propagator(s_hat, quark, quark_helicity, tau_helicity)
                for direction in (0, 1):
                    result[quark, direction, tau_helicity] += norm * _helicity_sum(
                        shared,
                        at_pair,
                        at_hat,
                        same=quark_helicity == tau_helicity,
                        flip=quark_helicity,
                        swap=direction,
                    )
    return result


def _helicity_sum(
    shared: _Brackets,
    at_pair: NDArray[np.complex128],
    at_hat: NDArray[np.complex128],
    *,
    same: bool,
    flip: int,
    swap: int,
) -> Floats:
    """Sum |amplitude|² over the photon's helicity for one quark and one tau helicity.

    Exchanging the beams exchanges a and b: the initial-state bracket stays, the final-state one changes sign.
    """
    # |A + B|² = |A|² + |B|² + 2 Re(A B*); the other photon helicity conjugates the brackets, not the propagators.
    diagonal = np.abs(at_pair) ** 2 * shared.initial + np.abs(at_hat) ** 2 * shared.final
    product = 2 * at_pair * at_hat.conj() * (-1 if swap else 1)
    plus = diagonal + (product * shared.mixed).real
    minus = diagonal + (product * shared.mixed.conj()).real
    a3, a4, b3, b4 = shared.numerators
    if swap:
        a3, a4, b3, b4 = b3, b4, a3, a4
    # Numerator: ⟨a3⟩² for photon helicity +, [b4]² for −, where quark and tau have the same helicity; else 3 ↔ 4.
    first, second = (a3, b4) if same else (a4, b3)
    if flip:
        first, second = second, first
    return np.asarray(plus * first + minus * second)


def higgs_dalitz(x_photon: Floats, x_ratio: Floats) -> Floats:
    """Return (1/Γ(h→ττ)) d²Γ(h → ττγ) / dx dr for massless taus.

    Parameters
    ----------
    x_photon
        2 E_γ / m_h in the rest frame, so that s_ττ = m_h² (1 − x).
    x_ratio
        r = s_{τ⁻γ} / (m_h² x), between 0 and 1.

    Notes
    -----
    From dΓ/Γ₀ = α/(2π) (1 + (1 − x)²) / ((1 − x₁)(1 − x₂)) dx₁ dx₂, which is the stated
    |M|² ∝ (m_h⁴ + s_ττ²) / (s_{τ⁻γ} s_{τ⁺γ}) with its normalisation fixed by the collinear limit (1 + z²)/(1 − z).

    Examples
    --------
    >>> float(higgs_dalitz(np.array([1.0]), np.array([0.5]))[0]) * 2 * math.pi * 132.507
    4.0
    """
    return np.asarray(ALPHA / (2 * math.pi) * (1 + (1 - x_photon) ** 2) / (x_photon * x_ratio * (1 - x_ratio)))
