"""Files as NanoAOD has them, small: jagged jets, families of weights, a `Runs` tree with sums before the selection."""

import awkward as ak
import numpy as np
import uproot

N_REPLICAS = 100


def write_nanoaod(path, n, seed, signal=False, n_members=N_REPLICAS + 3, generated=None):
    """Write `n` events with 103 PDF weights, 9 scale weights and 4 parton-shower weights; returns their columns."""
    random = np.random.default_rng(seed)
    n_jets = random.poisson(3.0, n)
    pt = np.sort(random.exponential(60.0 if signal else 40.0, n_jets.sum()) + 20)[::-1].astype(np.float32)
    random.shuffle(pt)
    mass = random.normal(125 if signal else 90, 25, n).astype(np.float32)
    columns = {
        "event": np.arange(n, dtype=np.uint64),
        "mass": mass,
        "genWeight": np.where(random.random(n) < 0.05, -1.0, 1.0).astype(np.float32),
        "Jet_pt": ak.unflatten(pt, n_jets),
        "Jet_btag": ak.unflatten(random.random(n_jets.sum()).astype(np.float32), n_jets),
        "LHEPdfWeight": _as_lists(_replicas(mass, n_members)),
        "LHEScaleWeight": _as_lists(_scales(mass)),
        "PSWeight": _as_lists(1 + 0.03 * np.outer((mass - 100) / 25, [1, 0.5, -1, -0.5])),
    }
    types = {name: ("var * float32" if values.ndim > 1 else values.dtype) for name, values in columns.items()}
    with uproot.recreate(path) as file:
        file.mktree("Events", types)
        file["Events"].extend(columns)
        total = float(columns["genWeight"].sum()) * 2 if generated is None else generated
        file["Runs"] = {"run": np.array([1, 2]), "genEventSumw": np.array([total / 4, 3 * total / 4])}
    return columns


def _as_lists(values):
    """Lists with a counter, which are equally long in fact: as NanoAOD stores families of weights."""
    return ak.from_regular(ak.from_numpy(np.ascontiguousarray(values, dtype=np.float32)))


def _replicas(mass, n_members):
    """Replicas that move three smooth functions of the mass, by an amount of their own each."""
    x = (mass - 100) / 50
    size = np.random.default_rng(7).normal(0, [0.04, 0.02, 0.01], (n_members, 3))
    shapes = np.stack([np.ones_like(x), x, np.cos(3 * x)])
    factors = 1 + size @ shapes
    factors[0] = 1
    return factors.T


def _scales(mass):
    return 1 + np.outer(1 + 0.1 * np.tanh((mass - 100) / 50), [-0.1, -0.05, 0.0, -0.06, 0.0, 0.04, 0.0, 0.05, 0.12])
