"""One batch of one process, from phase-space points to stored objects.

In: a process name, the shared inputs and the batch's number. Out: objects and `BatchCounts`. All
randomness comes from the run's seed, the process and the batch's number, so a batch is the same in whatever worker and
order it is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbdt.data.samples.objects import PROCESSES, Objects
from qbdt.studies.generator.constants import CUTS, HIGGS_CUTS, GeneratorCuts, HiggsCuts
from qbdt.studies.generator.detector import Truth, select, smear
from qbdt.studies.generator.partons import PartonDensities
from qbdt.studies.generator.processes import (
    BackgroundProcess,
    HardEvents,
    HardProcess,
    Pilot,
    SignalProcess,
    run_pilot,
    unweight,
)
from qbdt.studies.generator.shower import Shower, quiet_pythia
from qbdt.studies.generator.tau_decays import HADRONIC, LEPTONIC, TauLibrary

PILOT_POINTS = 1_000_000
PILOT_KEY, LIBRARY_KEY = 1_000, 1_001
"""Spawn keys of the seed sequence for the pilot runs and the tau library; batches use the index of the process."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of every batch: seed, parton densities, results of the pilot runs, cuts."""

    seed: int
    densities: PartonDensities
    pilots: dict[str, Pilot]
    cuts: GeneratorCuts = CUTS
    higgs_cuts: HiggsCuts = HIGGS_CUTS

    def process(self, name: str) -> HardProcess:
        """Return the parton-level process of a name."""
        if name == "signal":
            return SignalProcess(self.densities, self.higgs_cuts)
        return BackgroundProcess(self.densities, self.cuts)


def sequence(seed: int, *key: int) -> np.random.SeedSequence:
    """Return the seed sequence of one spawn key."""
    return np.random.SeedSequence(seed, spawn_key=key)


def pythia_seed(seeds: np.random.SeedSequence) -> int:
    """Return a seed that Pythia accepts: 1 … 900 000 000."""
    return int(seeds.generate_state(1)[0]) % 900_000_000 + 1


def prepare(
    seed: int, cuts: GeneratorCuts = CUTS, higgs_cuts: HiggsCuts = HIGGS_CUTS, points: int = PILOT_POINTS
) -> Inputs:
    """Tabulate the parton densities and run the pilots."""
    pythia = quiet_pythia(("ProcessLevel:all = off",))
    if not pythia.init():
        raise RuntimeError("Pythia does not initialise")
    inputs = Inputs(seed, PartonDensities.from_pythia(pythia), {}, cuts, higgs_cuts)
    for index, name in enumerate(PROCESSES):
        rng = np.random.default_rng(sequence(seed, PILOT_KEY, index))
        inputs.pilots[name] = run_pilot(inputs.process(name), rng, points)
    return inputs


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """Counts of one batch."""

    n_selected: int  # Events that the nominal selection keeps
    # n_points, n_showered: phase-space points tried; events that went through the whole chain
    n_points: int
    n_showered: int
    # weight_sum, clipped_sum: sums of the points' weights and of the excess that unweighting clipped, in fb
    weight_sum: float
    clipped_sum: float


class Simulator:
    """Make batches of one process; holds a Pythia, so it stays in the worker that made it."""

    def __init__(self, name: str, inputs: Inputs, library: TauLibrary) -> None:
        self._name, self._inputs, self._library = name, inputs, library
        self._process = inputs.process(name)
        self._shower = Shower(resonance=name == "signal")

    def simulate(self, number: int, n_points: int) -> tuple[Objects, BatchCounts]:
        """Simulate batch `number` from `n_points` phase-space points: events that any variation selects, and counts."""
        seeds = sequence(self._inputs.seed, PROCESSES.index(self._name), number).spawn(2)
        rng = np.random.default_rng(seeds[0])
        largest = self._inputs.pilots[self._name].largest
        pieces, weight_sum, clipped_sum = unweight(self._process, rng, n_points, largest)
        stored = []
        n_showered = 0
        for events, piece_seeds in zip(pieces, seeds[1].spawn(len(pieces)), strict=True):
            truth = self._shower_and_decay(rng, events, pythia_seed(piece_seeds))
            n_showered += len(truth.lepton)
            stored.append(select(smear(rng, truth)))
        objects = Objects.concatenate([objects for objects, _ in stored])
        n_selected = sum(int(nominal.sum()) for _, nominal in stored)
        return objects, BatchCounts(n_selected, n_points, n_showered, weight_sum, clipped_sum)

    def _shower_and_decay(self, rng: np.random.Generator, events: HardEvents, seed: int) -> Truth:
        """Shower the events and decay one tau of each, chosen at random, leptonically, the other hadronically."""
        showered = self._shower.run(events, seed)
        helicity = events.tau_helicity[showered.rows], events.antitau_helicity[showered.rows]
        n = len(showered.rows)
        lepton, tau, flavour = np.empty((n, 4)), np.empty((n, 4)), np.empty(n, dtype=np.int8)
        minus_is_leptonic = rng.random(n) < 0.5
        for rows, leptonic in ((minus_is_leptonic, 0), (~minus_is_leptonic, 1)):
            charged = (showered.tau[rows], helicity[0][rows], -1), (showered.antitau[rows], helicity[1][rows], +1)
            lepton[rows], flavour[rows] = self._library.decay(rng, *charged[leptonic], LEPTONIC)
            tau[rows], _ = self._library.decay(rng, *charged[1 - leptonic], HADRONIC)
        neutrinos = showered.tau + showered.antitau - lepton - tau
        return Truth(lepton, flavour, tau, showered.photon, neutrinos)
