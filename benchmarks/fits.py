"""Speed of the fits: one full fit with pyhf, and 1 000 by Newton's method; 20 bins, 50 sources, MC statistics.

Run:  python -m benchmarks.fits [--repeats N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.data import Role
from qbdt.inference.asimov import fit_asimov
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.summary import fit_freely, scan_mu, summarise
from qbdt.inference.templates.optimised_bins import merge_by_information
from qbdt.inference.templates.template_set import ModelArrays, ProcessTemplates, Shift, TemplateSet
from qbdt.inference.workspace import build_workspace
from qbdt.tables import Table

BINS, SOURCES, FITS = 20, 50, 1000


def templates(n_bins: int, seed: int) -> TemplateSet:
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, n_bins)
    b = (5000 * np.exp(-6 * x) + 20) * 20 / n_bins
    s = 20 * np.exp(-4 * (1 - x)) * 20 / n_bins
    effects = [0.03 * rng.normal() * np.cos(3 * rng.random() * x + 6 * rng.random()) for _ in range(SOURCES)]
    shifts = {f"source{i}": Shift(b * (1 + e), b * (1 - e), mirrored=True) for i, e in enumerate(effects)}
    signal = ProcessTemplates("signal", Role.SIGNAL, s, 0.01 * s)
    background = ProcessTemplates("background", Role.BACKGROUND, b, 0.5 * b, shifts)
    return TemplateSet("score", np.linspace(0, 1, n_bins + 1), (signal, background), tuple(shifts))


def batch() -> ModelArrays:
    models = [templates(BINS, seed).arrays() for seed in range(FITS)]
    return ModelArrays(*(np.stack([getattr(m, name) for m in models]) for name in vars(models[0])))


def jobs() -> dict[str, tuple[Callable[[], Any], float]]:
    """What is timed, and the mark in seconds."""
    one, fine, many = templates(BINS, 0), templates(200, 0), batch()
    likelihood = Likelihood(build_workspace(one))
    return {
        f"{FITS} fits by Newton's method": (lambda: fit_asimov(many), 10.0),
        "pyhf: full fit, four variants, interval, impacts": (lambda: summarise(fit_freely(likelihood)), 30.0),
        "pyhf: likelihood scan, 2 × 21 fits": (lambda: scan_mu(fit_freely(likelihood)), 60.0),
        f"optimised binning, 200 to {BINS} bins": (lambda: merge_by_information(fine, BINS, 10.0), 5.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, float] = {}
    rows = []
    for name, (job, mark) in jobs().items():
        times = []
        for _ in range(options.repeats):
            started = time.perf_counter()
            job()
            times.append(time.perf_counter() - started)
        found[name] = min(times)
        rows.append((name, f"{min(times):.2f}", f"{mark:g}", "yes" if min(times) < mark else "NO"))
    print(Table(f"{BINS} bins, {SOURCES} sources, MC statistics", ("what", "s", "mark", "holds"), tuple(rows)))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
