"""The physics inputs of the generator, each once: couplings, masses, beams, generator cuts, normalisations.

Owns numbers only. Everything is in GeV unless the name says otherwise; cross sections are in fb.
"""

from __future__ import annotations

from dataclasses import dataclass

BEAM_ENERGY_SQUARED = 13_000.0**2
"""s of the proton beams: the LHC at 13 TeV."""

Z_MASS = 91.188
Z_WIDTH = 2.441404
ALPHA = 1 / 132.507
"""Of all three electromagnetic vertices: the G_μ value."""
SIN2_THETA = 0.22225
"""1 − M_W²/M_Z². These four are MadGraph's default model, with which the paper's events were made: the width is the
leading-order one, so that the branching ratios of the Z boson are right."""

HIGGS_MASS = 125.0
FERMI = 1.16638e-5
"""G_F in GeV⁻² (PDG)."""
ALPHA_S = 0.130
"""α_s(M_Z) of the leading-order parton densities; it sets the leading-order cross section of g g → h."""
HIGGS_BR_TAUTAU = 0.0627
"""Of a Higgs boson of 125 GeV: LHC Higgs Cross Section Working Group, arXiv:1610.07922."""

TAU_MASS = 1.77686
BR_LEPTONIC = 0.1782 + 0.1739
"""τ → eνν and τ → μνν (PDG)."""
BR_HADRONIC = 1 - BR_LEPTONIC
DECAY_MODE_FRACTION = 2 * BR_LEPTONIC * BR_HADRONIC
"""Share of tau pairs with one leptonic and one hadronic decay."""

LUMINOSITY = 80.0
"""Integrated luminosity that the event weights are for, in fb⁻¹."""
GEV2_TO_FB = 3.893793721e11
"""(ħc)²: 1 GeV⁻² in fb."""


@dataclass(frozen=True, slots=True)
class GeneratorCuts:
    """Cuts on the tau leptons and the photon before shower, decay and detector; they bound the phase space.

    They lie well below the selection on visible objects, because the shower's recoil and the resolution move events up.
    """

    photon_pt: float = 4.0
    tau_pt: float = 9.0
    eta: float = 3.5
    delta_r_photon: float = 0.3
    delta_r_taus: float = 0.2
    tau_pair_mass: float = 5.0

    @property
    def min_s_tau_photon(self) -> float:
        """Smallest invariant mass squared of a tau and the photon that the cuts allow.

        From 2 pT pT' (cosh Δη − cos Δφ) with Δη² + Δφ² = R² and the series of both functions, R⁴ term included.
        """
        r2 = self.delta_r_photon**2
        # At fixed R the bracket is least for Δη = 0: 1 − cos R = R²/2 − R⁴/24 + …
        return 2 * self.photon_pt * self.tau_pt * (r2 / 2 - r2 * r2 / 24)


CUTS = GeneratorCuts()


@dataclass(frozen=True, slots=True)
class HiggsCuts:
    """Cuts on h → ττγ: energy and mass in the Higgs boson's frame, transverse momentum before the shower.

    The Higgs boson recoils against hard jets, which can lift a photon of low transverse momentum but high energy over
    any threshold: cuts on invariants lose nothing, cuts on transverse momenta before the shower would.
    """

    photon_energy: float = 3.0
    tau_photon_mass: float = 6.0
    photon_pt: float = 0.0

    @property
    def x_min(self) -> float:
        """Least photon energy in units of half the Higgs boson's mass."""
        return 2 * self.photon_energy / HIGGS_MASS

    @property
    def min_s_tau_photon(self) -> float:
        """Least mass squared of a tau and the photon."""
        return self.tau_photon_mass**2


HIGGS_CUTS = HiggsCuts()
