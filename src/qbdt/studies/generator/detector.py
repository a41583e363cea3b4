"""The toy detector: from momenta after tau decay to smeared `Objects`, and the selection that decides what is stored.

Energies are smeared by Gaussians after the performance of ATLAS; directions are exact. The missing momentum is the
neutrinos' sum plus a residual of 10 GeV per axis. An event is stored if any variation selects it, after rounding to the
stored precision, so that reading a file back selects exactly what was counted here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data.samples.objects import NOMINAL, SHAPES, Objects, Reconstruction, round_mantissa

MET_RESOLUTION = 10.0
"""Of the missing momentum, per axis, in GeV."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Momenta (E, px, py, pz) before the detector; `neutrinos` is the sum of all of them."""

    lepton: Floats
    flavour: NDArray[np.int8]
    tau: Floats
    photon: Floats
    neutrinos: Floats


def electromagnetic_resolution(energy: Floats) -> Floats:
    """Relative resolution of electrons and photons: 10 %/√E ⊕ 0.7 %."""
    return np.sqrt(0.1**2 / energy + 0.007**2)


def muon_resolution(pt: Floats) -> Floats:
    """Relative resolution of muons: 1.8 % ⊕ 10⁻⁴ pT."""
    return np.sqrt(0.018**2 + (1e-4 * pt) ** 2)


def tau_resolution(pt: Floats) -> Floats:
    """Relative resolution of hadronic taus: 40 %/√pT ⊕ 3 %."""
    return np.sqrt(0.4**2 / pt + 0.03**2)


def smear(rng: np.random.Generator, truth: Truth) -> Objects:
    """Smear everything and round to the stored precision; event numbers are those of the rows."""
    n = len(truth.lepton)
    noise, residual = rng.standard_normal((3, n)), rng.normal(0.0, MET_RESOLUTION, (2, n))
    pt, eta, phi = zip(*(_polar(p) for p in (truth.lepton, truth.tau, truth.photon)), strict=True)
    is_electron = truth.flavour == 11
    relative = (
        np.where(is_electron, electromagnetic_resolution(truth.lepton[:, 0]), muon_resolution(pt[0])),
        tau_resolution(pt[1]),
        electromagnetic_resolution(truth.photon[:, 0]),
    )
    smeared = [p * np.maximum(1 + width * g, 0.0) for p, width, g in zip(pt, relative, noise, strict=True)]
    mass = np.sqrt(np.maximum(truth.tau[:, 0] ** 2 - np.square(truth.tau[:, 1:]).sum(axis=1), 0.0))
    floats = (
        *(smeared[0], eta[0], phi[0]),
        *(smeared[1], eta[1], phi[1], mass),
        *(smeared[2], eta[2], phi[2]),
        *(truth.neutrinos[:, 1:3].T + residual),
        *residual,
    )
    return Objects(np.arange(n, dtype=np.int64), truth.flavour, *(round_mantissa(values) for values in floats))


def _polar(momenta: Floats) -> tuple[Floats, Floats, Floats]:
    """Return pT, η and φ."""
    pt = np.hypot(momenta[:, 1], momenta[:, 2])
    return pt, np.arcsinh(momenta[:, 3] / pt), np.arctan2(momenta[:, 2], momenta[:, 1])


def select(objects: Objects) -> tuple[Objects, NDArray[np.bool_]]:
    """Keep the events that any variation selects; return them and which of them are selected nominally."""
    events = Reconstruction(objects)
    nominal = events.passes(NOMINAL)
    wanted = nominal.copy()
    for shifts in SHAPES.values():
        for shift in shifts:
            wanted |= events.passes(shift)
    return objects[wanted], nominal[wanted]
