"""From objects to the eight variables of the study, nominal and for seven sources up and down, with migration.

In: `Objects`. Out: variables, selection masks, and a `Dataset` with all sources for both processes. The energy scales
multiply whole four-vectors and are corrected in the missing momentum; events cross the selection accordingly. The
efficiencies are weights. No Pythia is needed here.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.folds import FoldRule
from qbdt.data.sample import Role, Sample
from qbdt.data.samples.objects.object_files import Objects
from qbdt.data.systematic import Systematic
from qbdt.errors import DataError

FEATURES = ("pt_lep", "pt_tau", "pt_pho", "pt_met", "m_lephad", "m_lephadmet", "m_lephadpho", "m_lephadphomet")
"""Variables of the study, in the order of the paper's table and with the branch names of its files."""

SOURCES = ("tes", "tauid", "met", "leppt", "lepid", "phopt", "phoid")
"""Sources of the paper's table: tau scale and efficiency, missing-momentum resolution, lepton and photon likewise."""

ELECTRON_MASS, MUON_MASS = 0.000511, 0.10566


@dataclass(frozen=True, slots=True)
class Selection:
    """Thresholds on visible objects, in GeV."""

    lepton_pt: float = 20.0
    tau_pt: float = 20.0
    photon_pt: float = 10.0
    eta: float = 2.5
    delta_r: float = 0.4


SELECTION = Selection()


@dataclass(frozen=True, slots=True)
class ObjectShift:
    """Factors on the four-vectors and on the missing momentum's residual; all one for nominal."""

    lepton: float = 1.0
    tau: float = 1.0
    photon: float = 1.0
    residual: float = 1.0


NOMINAL = ObjectShift()
SHAPES: dict[str, tuple[ObjectShift, ObjectShift]] = {
    "tes": (ObjectShift(tau=1.02), ObjectShift(tau=0.98)),
    "met": (ObjectShift(residual=1.1), ObjectShift(residual=0.9)),
    "leppt": (ObjectShift(lepton=1.001), ObjectShift(lepton=0.999)),
    "phopt": (ObjectShift(photon=1.003), ObjectShift(photon=0.997)),
}
"""Up and down of the sources that move events."""

EFFICIENCIES: dict[str, tuple[str, float, float, float]] = {
    "tauid": ("pt_tau", 0.0, 0.05, 0.05),
    "lepid": ("pt_lep", 100.0, 0.002, 0.005),
    "phoid": ("pt_pho", 40.0, 0.02, 0.01),
}
"""Sources that move weights: variable, threshold in GeV, relative size below and from it."""


class Reconstruction:
    """Four-vectors of the objects and their products, from which every variation follows without trigonometry.

    With `paper_met` the missing momentum is treated as the paper's files do: see `paper_missing_momentum`.
    """

    def __init__(self, objects: Objects, *, paper_met: bool = False, seed: int = 0) -> None:
        self._lepton_mass = np.where(objects.lepton_flavour == 11, ELECTRON_MASS, MUON_MASS)
        self._tau_mass = objects.tau_mass.astype(np.float64)
        self._lepton = _four_vector(objects.lepton_pt, objects.lepton_eta, objects.lepton_phi, self._lepton_mass)
        self._tau = _four_vector(objects.tau_pt, objects.tau_eta, objects.tau_phi, self._tau_mass)
        self._photon = _four_vector(objects.photon_pt, objects.photon_eta, objects.photon_phi, 0.0)
        self._pt = tuple(p.astype(np.float64) for p in (objects.lepton_pt, objects.tau_pt, objects.photon_pt))
        self._lepton_tau = _product(self._lepton, self._tau)
        self._lepton_photon = _product(self._lepton, self._photon)
        self._tau_photon = _product(self._tau, self._photon)
        self._met = np.stack([objects.met_x, objects.met_y]).astype(np.float64)
        self._residual = np.stack([objects.residual_x, objects.residual_y]).astype(np.float64)
        if paper_met:
            self._met, self._residual = paper_missing_momentum(self._met - self._residual, seed)
        self._isolated = _inside_detector(objects)

    def passes(self, shift: ObjectShift = NOMINAL) -> NDArray[np.bool_]:
        """Tell which events are selected when the objects are shifted."""
        lepton, tau, photon = self._pt
        return np.asarray(
            self._isolated
            & (lepton * shift.lepton > SELECTION.lepton_pt)
            & (tau * shift.tau > SELECTION.tau_pt)
            & (photon * shift.photon > SELECTION.photon_pt)
        )

    def variables(self, shift: ObjectShift = NOMINAL) -> dict[str, NDArray[np.float32]]:
        """Return the eight `FEATURES` of all events, selected or not, when the objects are shifted."""
        met, mx, my = self._missing(shift)
        a, b, c = shift.lepton, shift.tau, shift.photon
        pair = self._lepton_mass**2 * a**2 + self._tau_mass**2 * b**2 + 2 * a * b * self._lepton_tau
        photon = 2 * c * (a * self._lepton_photon + b * self._tau_photon)
        energy, px, py = (a * self._lepton[i] + b * self._tau[i] for i in range(3))
        neutrinos = 2 * (met * energy - mx * px - my * py)
        both = 2 * c * (met * self._photon[0] - mx * self._photon[1] - my * self._photon[2])
        columns = (
            a * self._pt[0],
            b * self._pt[1],
            c * self._pt[2],
            met,
            np.sqrt(pair),
            np.sqrt(pair + neutrinos),
            np.sqrt(pair + photon),
            np.sqrt(pair + photon + neutrinos + both),
        )
        return {name: column.astype(np.float32) for name, column in zip(FEATURES, columns, strict=True)}

    def _missing(self, shift: ObjectShift) -> tuple[Floats, Floats, Floats]:
        """Missing momentum with its residual scaled and every change of a visible object subtracted."""
        components = []
        for axis in (0, 1):
            value = self._met[axis] + (shift.residual - 1) * self._residual[axis]
            for factor, vector in ((shift.lepton, self._lepton), (shift.tau, self._tau), (shift.photon, self._photon)):
                if factor != 1:
                    value = value - (factor - 1) * vector[axis + 1]
            components.append(value)
        return np.hypot(*components), components[0], components[1]


def paper_missing_momentum(neutrinos: Floats, seed: int) -> tuple[Floats, Floats]:
    """Return missing momentum and residual as in the paper's files: right size, random direction.

    The neutrinos' sum gets a Gaussian of 14.14 GeV on each axis and is then turned to a uniform azimuth, so that the
    missing momentum does not recoil against the visible system.
    """
    rng = np.random.default_rng(seed)
    n = neutrinos.shape[1]
    smeared = np.hypot(*(neutrinos + rng.normal(0.0, 10.0 * np.sqrt(2.0), (2, n))))
    azimuth = rng.uniform(-np.pi, np.pi, n)
    direction = np.stack([np.cos(azimuth), np.sin(azimuth)])
    return smeared * direction, (smeared - np.hypot(*neutrinos)) * direction


def _four_vector(
    pt: NDArray[np.float32], eta: NDArray[np.float32], phi: NDArray[np.float32], mass: Floats | float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return (E, px, py, pz)."""
    p, rapidity, azimuth = pt.astype(np.float64), eta.astype(np.float64), phi.astype(np.float64)
    energy = np.sqrt((p * np.cosh(rapidity)) ** 2 + np.square(mass))
    return energy, p * np.cos(azimuth), p * np.sin(azimuth), p * np.sinh(rapidity)


def _product(p: tuple[Floats, ...], q: tuple[Floats, ...]) -> Floats:
    return np.asarray(p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3])


def _inside_detector(objects: Objects) -> NDArray[np.bool_]:
    """Tell which events pass |η| and ΔR, which no source changes."""
    seen = [(getattr(objects, f"{name}_eta"), getattr(objects, f"{name}_phi")) for name in ("lepton", "tau", "photon")]
    passed = np.ones(len(objects), dtype=np.bool_)
    for i, (eta, phi) in enumerate(seen):
        passed &= np.abs(eta) < SELECTION.eta
        for other_eta, other_phi in seen[:i]:
            turn = np.abs(phi - other_phi)
            turn = np.minimum(turn, 2 * np.pi - turn)
            passed &= np.square(eta - other_eta) + np.square(turn) > SELECTION.delta_r**2
    return passed


def efficiency_weight(source: str, pt: NDArray[np.float32], direction: int) -> Floats:
    """Return the factor on the weight for an efficiency source moved by `direction` = ±1 standard deviation."""
    if source not in EFFICIENCIES:
        raise DataError(f"source={source!r}: must be one of {', '.join(EFFICIENCIES)}")
    _, threshold, below, above = EFFICIENCIES[source]
    return np.asarray(1 + direction * np.where(pt < threshold, below, above))


CHUNK = 32_768
"""Events that are reconstructed at once: their temporaries stay in the processor's cache."""


def _reconstruct(objects: Objects, weight: float, shifts: Sequence[ObjectShift], *, paper_met: bool) -> list[Events]:
    """Return the selected events of one process with their variables, under each shift."""
    pieces: list[list[dict[str, NDArray[Any]]]] = [[] for _ in shifts]
    for number, start in enumerate(range(0, max(len(objects), 1), CHUNK)):
        chunk = objects[start : start + CHUNK]
        events = Reconstruction(chunk, paper_met=paper_met, seed=number)
        for shift, piece in zip(shifts, pieces, strict=True):
            selected = np.flatnonzero(events.passes(shift))
            columns: dict[str, NDArray[Any]] = {"event_number": chunk.event_number, **events.variables(shift)}
            piece.append({name: column[selected] for name, column in columns.items()})
    joined = [{name: np.concatenate([chunk[name] for chunk in piece]) for name in piece[0]} for piece in pieces]
    return [
        Events({name: columns[name] for name in FEATURES}, np.full(len(numbers), weight), {"event_number": numbers})
        for columns in joined
        for numbers in [columns["event_number"]]
    ]


def build_dataset(
    processes: Mapping[str, tuple[Objects, float]],
    folds: FoldRule | None = None,
    *,
    paper_met: bool = False,
) -> Dataset:
    """Reconstruct "signal" and "background", given as objects and weight per event, with all sources."""
    shifts = [NOMINAL, *itertools.chain.from_iterable(SHAPES.values())]
    moved = {name: _reconstruct(o, weight, shifts, paper_met=paper_met) for name, (o, weight) in processes.items()}
    nominal, *varied = ({name: events[i] for name, events in moved.items()} for i in range(len(shifts)))
    pairs = zip(varied[::2], varied[1::2], strict=True)
    sources = {name: Systematic.shape(name, up, down) for name, (up, down) in zip(SHAPES, pairs, strict=True)}
    for name, (variable, *_) in EFFICIENCIES.items():
        up, down = (
            {p: e.weight * efficiency_weight(name, e.column(variable), sign) for p, e in nominal.items()}
            for sign in (+1, -1)
        )
        sources[name] = Systematic.weight(name, up, down)
    samples = [Sample(name, Role(name), events) for name, events in nominal.items()]
    return Dataset(samples, [sources[name] for name in SOURCES], folds)
