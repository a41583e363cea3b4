"""Initial-state shower: hard events handed to Pythia in memory, tau and photon momenta with their recoil handed back.

Owns the Pythia settings and the Les Houches interface. The continuum goes in as q q̄ → τ⁻ τ⁺ γ. The Higgs boson goes
in as one particle and its decay products are then boosted along, which is exact for a scalar, and faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.errors import require
from qbdt.studies.generator.constants import BEAM_ENERGY_SQUARED, HIGGS_MASS
from qbdt.studies.generator.phase_space import boost
from qbdt.studies.generator.processes import HardEvents

SETTINGS = (
    "Beams:frameType = 5",
    "PartonLevel:MPI = off",
    "HadronLevel:all = off",
    "ProcessLevel:resonanceDecays = off",
    # The photon is in the matrix element: any further QED radiation would count it twice.
    "SpaceShower:QEDshowerByQ = off",
    "SpaceShower:QEDshowerByL = off",
    "TimeShower:QEDshowerByQ = off",
    "TimeShower:QEDshowerByL = off",
    "TimeShower:QEDshowerByGamma = off",
    "TimeShower:QEDshowerByOther = off",
    # Showering the recoiling jets changes nothing that is kept.
    "TimeShower:QCDshower = off",
    # Nothing coloured is in the final state, so the shower may fill the whole phase space; by default the photon would
    # limit it to the factorisation scale, which is meant for QED radiation and leaves the recoil too soft.
    "SpaceShower:pTmaxMatch = 2",
    # Pythia would correct g g → h to its h + jet matrix element and leave q q̄ → ττγ alone. Both are treated alike, as
    # in the paper's chain; with the correction the Higgs boson's recoil is softer than in the paper's events.
    "SpaceShower:MEcorrections = off",
    # The matrix element is massless; momenta come back as they went in, boosted.
    "LesHouches:setLeptonMass = 0",
    "LesHouches:matchInOut = off",
    "Check:event = off",
)

BEAM_ENERGY = 0.5 * BEAM_ENERGY_SQUARED**0.5
NO_SCALE = -1.0
"""Production scale in `addParticle`: −1 means none given; 0 would silently stop the initial-state shower."""


def quiet_pythia(settings: tuple[str, ...]) -> Any:
    """Return a Pythia that prints nothing, with these settings, not yet initialised."""
    pythia = require("pythia8mc", "qbdt generate").Pythia("", False)
    for line in ("Print:quiet = on", *settings):
        if not pythia.readString(line):
            raise RuntimeError(f"Pythia does not know the setting {line!r}")
    return pythia


@dataclass(frozen=True, slots=True)
class Showered:
    """Momenta after the shower (E, px, py, pz), and which of the hard events they belong to (a few fail in Pythia)."""

    rows: NDArray[np.intp]
    tau: Floats
    antitau: Floats
    photon: Floats


class Shower:
    """Pythia for one process: events are one Higgs boson (`resonance`, the signal) or τ⁻ τ⁺ γ (the background)."""

    def __init__(self, *, resonance: bool) -> None:
        self._resonance = resonance
        self._feed = _make_feed()
        self._pythia = quiet_pythia((*SETTINGS, f"25:m0 = {HIGGS_MASS}"))
        self._pythia.setLHAupPtr(self._feed)
        if not self._pythia.init():
            raise RuntimeError("Pythia does not initialise")

    def run(self, events: HardEvents, seed: int) -> Showered:
        """Shower all events; the result depends on the events and the seed only, not on what was showered before."""
        self._pythia.rndm.init(seed)
        self._feed.load(_rows(events, resonance=self._resonance))
        n_outgoing = 1 if self._resonance else 3
        rows, momenta = [], []
        for index in range(len(events)):
            if not self._pythia.next():
                continue
            record = self._pythia.event
            for position in range(5, 5 + n_outgoing):
                particle = record[record[position].iBotCopy()]
                momenta.append((particle.e(), particle.px(), particle.py(), particle.pz()))
            rows.append(index)
        kept = np.asarray(rows, dtype=np.intp)
        outgoing = np.asarray(momenta, dtype=np.float64).reshape(-1, n_outgoing, 4)
        if self._resonance:
            return _boost(events, kept, outgoing[:, 0])
        return Showered(kept, outgoing[:, 0], outgoing[:, 1], outgoing[:, 2])


def _boost(events: HardEvents, rows: NDArray[np.intp], higgs: Floats) -> Showered:
    """Take the decay products to the boson's rest frame and from there along the showered boson."""
    before = (events.tau + events.antitau + events.photon)[rows]
    products = []
    for momenta in (events.tau, events.antitau, events.photon):
        at_rest = boost(momenta[rows], before[:, 0] / HIGGS_MASS, -before[:, 1:] / HIGGS_MASS)
        products.append(boost(at_rest, higgs[:, 0] / HIGGS_MASS, higgs[:, 1:] / HIGGS_MASS))
    return Showered(rows, *products)


def _rows(events: HardEvents, *, resonance: bool) -> list[tuple[Any, ...]]:
    """Return plain Python numbers per event: scale, codes and energies of the partons, then the outgoing particles."""
    if resonance:
        outgoing = [(25, events.tau + events.antitau + events.photon, HIGGS_MASS)]
    else:
        outgoing = [(15, events.tau, 0.0), (-15, events.antitau, 0.0), (22, events.photon, 0.0)]
    particles = [
        [(code, px, py, pz, e, mass) for e, px, py, pz in momenta.tolist()] for code, momenta, mass in outgoing
    ]
    head = zip(
        events.scale.tolist(),
        events.id1.tolist(),
        events.id2.tolist(),
        (BEAM_ENERGY * events.x1).tolist(),
        (BEAM_ENERGY * events.x2).tolist(),
        strict=True,
    )
    return [(*parton, rest) for parton, rest in zip(head, zip(*particles, strict=True), strict=True)]


def _make_feed() -> Any:
    """Return the Les Houches interface; a class made here, because its base exists only where Pythia does."""
    base = require("pythia8mc", "qbdt generate").LHAup

    class Feed(base):  # type: ignore[misc, valid-type]
        """Unweighted events from memory."""

        def __init__(self) -> None:
            super().__init__()
            self._rows: list[tuple[Any, ...]] = []
            self._next = 0

        def load(self, rows: list[tuple[Any, ...]]) -> None:
            self._rows, self._next = rows, 0

        def setInit(self) -> bool:
            self.setBeamA(2212, BEAM_ENERGY)
            self.setBeamB(2212, BEAM_ENERGY)
            self.setStrategy(3)
            self.addProcess(1, 1.0, 0.0, 1.0)
            return True

        def setEvent(self, _process: int = 0) -> bool:
            if self._next >= len(self._rows):
                return False
            scale, id1, id2, e1, e2, outgoing = self._rows[self._next]
            self._next += 1
            self.setProcess(1, 1.0, scale)
            colours = _colours(id1)
            self.addParticle(id1, -1, 0, 0, *colours[0], 0.0, 0.0, e1, e1, 0.0, 0.0, 9.0, NO_SCALE)
            self.addParticle(id2, -1, 0, 0, *colours[1], 0.0, 0.0, -e2, e2, 0.0, 0.0, 9.0, NO_SCALE)
            for code, px, py, pz, e, mass in outgoing:
                self.addParticle(code, 1, 1, 2, 0, 0, px, py, pz, e, mass, 0.0, 9.0, NO_SCALE)
            self.setIdX(id1, id2, e1 / BEAM_ENERGY, e2 / BEAM_ENERGY)
            return True

    return Feed()


def _colours(id1: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Colour and anticolour tags of the incoming partons that annihilate into a colour singlet."""
    if id1 == 21:
        return (101, 102), (102, 101)
    return ((101, 0), (0, 101)) if id1 > 0 else ((0, 101), (101, 0))
