"""Tau decays from a library: Pythia's decays with full spin structure, made once, drawn millions of times.

Owns the library and its use. For τ⁻ of each helicity it holds leptonic and hadronic decays in the tau's rest frame,
as the visible momentum across and along the helicity axis and the visible mass; the azimuth about the axis is drawn
anew each time. CP turns a τ⁻ of helicity h into a τ⁺ of helicity −h and leaves these three numbers as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.errors import DataError
from qbdt.studies.generator.constants import TAU_MASS
from qbdt.studies.generator.phase_space import direction
from qbdt.studies.generator.shower import quiet_pythia

LEPTONIC, HADRONIC = 0, 1
NEUTRINOS = (12, 14, 16)
BOOST = 20.0
"""Momentum of the taus that Pythia decays, in GeV: it defines the helicity axis; results are taken back to rest."""
TAUS_PER_EVENT = 20
CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class TauLibrary:
    """Decays of τ⁻ at rest."""

    # Shape (2, 2, n, 3): leptonic or hadronic; helicity −1 or +1; decay; visible momentum across and along the
    # helicity axis, visible mass. In GeV
    visible: NDArray[np.float32]
    flavour: NDArray[np.int8]  # Shape (2, n): PDG code of the lepton, 11 or 13, per helicity

    def __len__(self) -> int:
        return int(self.visible.shape[2])

    def save(self, path: Path) -> None:
        """Write to a compressed numpy archive."""
        with path.open("wb") as file:
            np.savez_compressed(file, visible=self.visible, flavour=self.flavour)

    @classmethod
    def load(cls, path: Path) -> TauLibrary:
        """Read what `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as archive:
                return cls(archive["visible"], archive["flavour"])
        except (OSError, KeyError, ValueError) as error:
            raise DataError(f"{path}: not a library of tau decays ({error}); delete it and it is made anew") from error

    @classmethod
    def join(cls, size: int, chunks: list[tuple[NDArray[np.float32], NDArray[np.int8]]]) -> TauLibrary:
        """Put the chunks of `library_chunks(size)`, in order, together."""
        visible = np.concatenate([chunk[0] for chunk in chunks]).reshape(2, 2, size, 3)
        flavour = np.concatenate([chunk[1] for chunk in chunks]).reshape(2, 2, size)[LEPTONIC]
        return cls(visible, flavour)

    def decay(
        self, rng: np.random.Generator, momenta: Floats, helicity: NDArray[np.int64], charge: int, mode: int
    ) -> tuple[Floats, NDArray[np.int8]]:
        """Decay taus in flight; return lab momenta of the visible products, and the lepton's PDG code (0 if hadronic).

        `momenta` (E, px, py, pz) are massless: the tau's mass is put in at fixed three-momentum. `helicity` and
        `charge` are ±1, `mode` is `LEPTONIC` or `HADRONIC`.
        """
        n = len(momenta)
        entry = rng.integers(0, len(self), n)
        # CP: a τ⁺ of helicity h decays like a τ⁻ of helicity −h.
        side = (helicity * -charge > 0).astype(np.intp)
        across, along, mass = self.visible[mode, side, entry].astype(np.float64).T
        flavour = self.flavour[side, entry] if mode == LEPTONIC else np.zeros(n, dtype=np.int8)
        azimuth = rng.uniform(0.0, 2 * math.pi, n)
        return _in_flight(momenta, across, along, mass, azimuth), flavour


def _in_flight(momenta: Floats, across: Floats, along: Floats, mass: Floats, azimuth: Floats) -> Floats:
    # Boost along the tau's direction with γ = E/m and γβ = p/m; what is across the axis stays.
    size = np.linalg.norm(momenta[:, 1:], axis=1)
    gamma, gamma_beta = np.hypot(size, TAU_MASS) / TAU_MASS, size / TAU_MASS
    energy = np.sqrt(across**2 + along**2 + mass**2)
    boosted = gamma * along + gamma_beta * energy
    total = np.hypot(across, boosted)
    axis = momenta[:, 1:] / size[:, None]
    cosine = np.clip(boosted / np.maximum(total, 1e-30), -1.0, 1.0)
    space = total[:, None] * direction(cosine, azimuth, axis)
    return np.concatenate([(gamma * energy + gamma_beta * along)[:, None], space], axis=1)


def library_chunks(size: int) -> list[tuple[int, int, int, int]]:
    """List the (mode, helicity, number of decays, seed offset) that make up a library, in order."""
    chunks = []
    for mode in (LEPTONIC, HADRONIC):
        for helicity in (-1, +1):
            chunks += [(mode, helicity, min(CHUNK, size - start)) for start in range(0, size, CHUNK)]
    return [(*chunk, offset) for offset, chunk in enumerate(chunks)]


def decay_chunk(mode: int, helicity: int, n: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Decay `n` τ⁻ of one helicity with Pythia; return rows (across, along, mass) and lepton flavours."""
    pythia = _decayer(mode, helicity, seed)
    energy = math.hypot(BOOST, TAU_MASS)
    record = pythia.event
    sums, flavour = np.empty((n, 4)), np.zeros(n, dtype=np.int8)
    for start in range(0, n, TAUS_PER_EVENT):
        record.reset()
        count = min(TAUS_PER_EVENT, n - start)
        for _ in range(count):
            record.append(15, 1, 0, 0, 0.0, 0.0, BOOST, energy, TAU_MASS)
        if not pythia.moreDecays():
            raise RuntimeError("Pythia failed to decay a tau lepton")
        for k in range(count):
            sums[start + k], flavour[start + k] = _visible(record, k + 1)
    # Back to the tau's rest frame: p_∥* = γ p_∥ − γβ E.
    along = (energy * sums[:, 3] - BOOST * sums[:, 0]) / TAU_MASS
    mass = np.sqrt(np.maximum(sums[:, 0] ** 2 - np.square(sums[:, 1:]).sum(axis=1), 0.0))
    return np.stack([np.hypot(sums[:, 1], sums[:, 2]), along, mass], axis=1).astype(np.float32), flavour


def _decayer(mode: int, helicity: int, seed: int) -> Any:
    """Return an initialised Pythia that decays taus, and only taus, in one mode."""
    pythia = quiet_pythia(
        (
            "ProcessLevel:all = off",
            "Check:event = off",
            "TauDecays:mode = 3",
            f"TauDecays:tauPolarization = {helicity}",
            f"15:m0 = {TAU_MASS}",
            *(f"{code}:mayDecay = off" for code in (111, 221, 223, 310, 333)),
            "Random:setSeed = on",
            f"Random:seed = {seed}",
        )
    )
    tau = pythia.particleData.findParticle(15)
    for index in range(tau.sizeChannels()):
        channel = tau.channel(index)
        products = {abs(channel.product(j)) for j in range(channel.multiplicity())}
        channel.onMode(int(bool(products & {11, 13}) == (mode == LEPTONIC)))
    if not pythia.init():
        raise RuntimeError("Pythia does not initialise for tau decays")
    return pythia


def _visible(record: Any, position: int) -> tuple[tuple[float, float, float, float], int]:
    """Sum the momenta (E, px, py, pz) of what is not a neutrino, and name the lepton."""
    tau = record[position]
    e = px = py = pz = 0.0
    flavour = 0
    for index in range(tau.daughter1(), tau.daughter2() + 1):
        product = record[index]
        code = product.idAbs()
        if code in NEUTRINOS:
            continue
        if code in (11, 13):
            flavour = code
        e, px, py, pz = e + product.e(), px + product.px(), py + product.py(), pz + product.pz()
    return (e, px, py, pz), flavour
