"""CMS Open Data 2012, H → τ(µ)τ(h), from a folder with the public files; their known faults are corrected here.

Corrections: the signal weights lack BR(H → ττ); jets are not cleaned against the muon and the tau; `jj_m`, `jj_pt` and
`tau_charge` are wrong and not used; −999 becomes NaN. All derived columns are computed anew, after every shift, and the
selection is applied after the shifts.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.folds import ModuloFolds
from qbdt.data.sample import Role, Sample
from qbdt.data.samples.public_files import read_tree
from qbdt.data.systematic import Systematic

WHERE = "CMS Open Data record 12350 has the events"
HIGGS_BR_TAUTAU = 0.0632
CLEANING_DR = 0.5
TAU_PT, MUON_PT, JET_PT = 22.0, 17.5, 32.0

FILES = {
    "ggh": ("GluGluToHToTauTau_selected.root", Role.SIGNAL),
    "vbf": ("VBF_HToTauTau_selected.root", Role.SIGNAL),
    "dy": ("DYJetsToLL_selected.root", Role.BACKGROUND),
    "ttbar": ("TTbar_selected.root", Role.BACKGROUND),
    "w1jets": ("W1JetsToLNu_selected.root", Role.BACKGROUND),
    "w2jets": ("W2JetsToLNu_selected.root", Role.BACKGROUND),
    "w3jets": ("W3JetsToLNu_selected.root", Role.BACKGROUND),
}
BACKGROUNDS = [name for name, (_, role) in FILES.items() if role is Role.BACKGROUND]
GENUINE_TAUS = ["ggh", "vbf", "dy"]

CMS_FEATURES = (
    *("muon_pt", "muon_eta", "muon_iso", "tau_pt", "tau_eta", "tau_mass", "tau_iso"),
    *("met", "m_vis", "pt_vis", "dr_mutau", "deta_mutau", "mt_muon", "mt_tau", "mt_vis", "pt_total"),
    *("n_jets", "jet1_pt", "jet1_eta", "jet1_btag", "jet2_pt", "m_jj", "deta_jj", "sum_pt"),
)
"""The 24 features; NaN where an event has too few jets."""

COLUMNS = (
    *("muon_pt", "muon_eta", "muon_phi", "muon_m", "muon_iso", "tau_pt", "tau_eta", "tau_phi", "tau_m", "tau_iso"),
    *(f"j{what}_{n}" for n in (1, 2) for what in ("pt", "eta", "phi", "m", "btag")),
    *("MET_pt", "MET_phi", "weight"),
)


@dataclass(frozen=True, slots=True)
class _Shift:
    """Factors on the four-vectors of each kind of object."""

    tau: float = 1.0
    jet: float = 1.0
    muon: float = 1.0


SHIFTS = {
    "tes": (GENUINE_TAUS, _Shift(tau=1.03), _Shift(tau=0.97)),
    "jes": (list(FILES), _Shift(jet=1.03), _Shift(jet=0.97)),
    "mes": (list(FILES), _Shift(muon=1.01), _Shift(muon=0.99)),
}
NORMS = {
    "dy_norm": (0.05, ["dy"]),
    "ttbar_norm": (0.10, ["ttbar"]),
    "wjets_norm": (0.15, ["w1jets", "w2jets", "w3jets"]),
    "background_norm": (0.026, BACKGROUNDS),
}


def cms_htautau(folder: str | PathLike[str], *, k: int = 5) -> Dataset:
    """Load H → τ(µ)τ(h): two signals, five backgrounds, tau, jet and muon scales and four normalisations.

    Parameters
    ----------
    folder
        With the seven `*_selected.root` files.
    k
        Number of folds, by the row number in the file: the files have no event number.
    """
    raw = {name: _read(folder, name) for name in FILES}
    samples = [Sample(name, role, _events(raw[name], _Shift())) for name, (_, role) in FILES.items()]
    sources = [
        Systematic.shape(name, *({p: _events(raw[p], shift) for p in processes} for shift in (up, down)))
        for name, (processes, up, down) in SHIFTS.items()
    ]
    sources += [Systematic.norm(name, size, processes=processes) for name, (size, processes) in NORMS.items()]
    return Dataset(samples, sources, ModuloFolds(k, "row"))


def _read(folder: str | PathLike[str], process: str) -> dict[str, Floats]:
    """Read one process as float64 with NaN for −999, the signal scaled by its branching ratio, jets cleaned."""
    file, role = FILES[process]
    columns = {k: v.astype(np.float64) for k, v in read_tree(folder, file, "Events", COLUMNS, WHERE).items()}
    columns = {name: np.where(values == -999, np.nan, values) for name, values in columns.items()}
    if role is Role.SIGNAL:
        columns["weight"] = columns["weight"] * HIGGS_BR_TAUTAU
    columns["tau_m"] = np.maximum(columns["tau_m"], 0.0)
    return _clean_jets(columns)


def _clean_jets(columns: dict[str, Floats]) -> dict[str, Floats]:
    """Drop jets that are the muon or the tau; the second jet moves up where the first is dropped."""
    for n in (1, 2):
        near = np.zeros(len(columns["weight"]), dtype=np.bool_)
        for other in ("muon", "tau"):
            distance = _delta_r(columns, f"jeta_{n}", f"jphi_{n}", f"{other}_eta", f"{other}_phi")
            near |= np.nan_to_num(distance, nan=np.inf) < CLEANING_DR
        columns |= _without_jet(columns, n, near)
    return _close_gap(columns)


def _without_jet(columns: dict[str, Floats], n: int, where: NDArray[np.bool_]) -> dict[str, Floats]:
    names = [f"j{what}_{n}" for what in ("pt", "eta", "phi", "m", "btag")]
    return {name: np.where(where, np.nan, columns[name]) for name in names}


def _close_gap(columns: dict[str, Floats]) -> dict[str, Floats]:
    gap = np.isnan(columns["jpt_1"]) & ~np.isnan(columns["jpt_2"])
    first = {
        f"j{what}_1": np.where(gap, columns[f"j{what}_2"], columns[f"j{what}_1"])
        for what in ("pt", "eta", "phi", "m", "btag")
    }
    return columns | first | _without_jet(columns, 2, gap)


def _delta_phi(a: Floats, b: Floats) -> Floats:
    return np.asarray((a - b + np.pi) % (2 * np.pi) - np.pi)


def _delta_r(c: dict[str, Floats], eta: str, phi: str, other_eta: str, other_phi: str) -> Floats:
    return np.hypot(c[eta] - c[other_eta], _delta_phi(c[phi], c[other_phi]))


def _vector(pt: Floats, eta: Floats, phi: Floats, mass: Floats) -> Floats:
    """Return (E, px, py, pz) as rows."""
    px, py, pz = pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)
    return np.stack([np.sqrt(px**2 + py**2 + pz**2 + mass**2), px, py, pz])


def _mass(p: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(p[0] ** 2 - p[1] ** 2 - p[2] ** 2 - p[3] ** 2, 0.0)))


def _transverse_mass(p: Floats, met: Floats) -> Floats:
    pt, size = np.hypot(p[1], p[2]), np.hypot(*met)
    return np.asarray(np.sqrt(np.maximum(2 * (pt * size - p[1] * met[0] - p[2] * met[1]), 0.0)))


def _apply_shift(raw: dict[str, Floats], shift: _Shift) -> tuple[dict[str, Floats], Floats]:
    """Scale the objects, correct the missing momentum for it, and drop jets below the threshold."""
    c = dict(raw)
    met = np.stack([c["MET_pt"] * np.cos(c["MET_phi"]), c["MET_pt"] * np.sin(c["MET_phi"])])
    scaled = (
        ("muon_pt", "muon_m", "muon_phi", shift.muon),
        ("tau_pt", "tau_m", "tau_phi", shift.tau),
        *((f"jpt_{n}", f"jm_{n}", f"jphi_{n}", shift.jet) for n in (1, 2)),
    )
    for pt, mass, phi, factor in scaled:
        change = np.nan_to_num((factor - 1) * c[pt] * np.stack([np.cos(c[phi]), np.sin(c[phi])]))
        met -= change
        c[pt], c[mass] = c[pt] * factor, c[mass] * factor
    for n in (2, 1):
        c |= _without_jet(c, n, np.nan_to_num(c[f"jpt_{n}"], nan=np.inf) < JET_PT)
    return _close_gap(c), met


def _events(raw: dict[str, Floats], shift: _Shift) -> Events:
    """Selected events with all features computed after the shift."""
    c, met = _apply_shift(raw, shift)
    muon, tau = (_vector(c[f"{p}_pt"], c[f"{p}_eta"], c[f"{p}_phi"], c[f"{p}_m"]) for p in ("muon", "tau"))
    jet1, jet2 = (_vector(*(c[f"j{what}_{n}"] for what in ("pt", "eta", "phi", "m"))) for n in (1, 2))
    visible = muon + tau
    features: dict[str, Any] = {
        "muon_pt": c["muon_pt"],
        "muon_eta": c["muon_eta"],
        "muon_iso": c["muon_iso"],
        "tau_pt": c["tau_pt"],
        "tau_eta": c["tau_eta"],
        "tau_mass": c["tau_m"],
        "tau_iso": c["tau_iso"],
        "met": np.hypot(*met),
        "m_vis": _mass(visible),
        "pt_vis": np.hypot(visible[1], visible[2]),
        "dr_mutau": _delta_r(c, "muon_eta", "muon_phi", "tau_eta", "tau_phi"),
        "deta_mutau": np.abs(c["muon_eta"] - c["tau_eta"]),
        "mt_muon": _transverse_mass(muon, met),
        "mt_tau": _transverse_mass(tau, met),
        "mt_vis": _transverse_mass(visible, met),
        "pt_total": np.hypot(visible[1] + met[0], visible[2] + met[1]),
        "n_jets": (~np.isnan(c["jpt_1"])).astype(np.float64) + ~np.isnan(c["jpt_2"]),
        "jet1_pt": c["jpt_1"],
        "jet1_eta": c["jeta_1"],
        "jet1_btag": c["jbtag_1"],
        "jet2_pt": c["jpt_2"],
        "m_jj": _mass(jet1 + jet2),
        "deta_jj": np.abs(c["jeta_1"] - c["jeta_2"]),
        "sum_pt": c["muon_pt"] + c["tau_pt"] + np.nan_to_num(c["jpt_1"]) + np.nan_to_num(c["jpt_2"]),
    }
    chosen = np.flatnonzero((c["tau_pt"] > TAU_PT) & (c["muon_pt"] > MUON_PT))
    columns = {name: features[name][chosen].astype(np.float32) for name in CMS_FEATURES}
    return Events(columns, c["weight"][chosen], {"row": chosen})
