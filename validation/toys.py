"""2 000 toys from one workspace: coverage, pulls and the median significance; pyhf and Newton's method toy by toy.

Run:  python -m validation.toys [--toys N] [--pyhf N] [--seed N] [--json FILE]     (make toys)
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from qbdt.data import Role
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.inference.toys import Toys, ToyStudy, draw_toys, fit_toys, fit_toys_with_pyhf


def model() -> TemplateSet:
    """20 bins, about 100 signal and 10 000 background events, five sources of 1 to 5 %, MC ten times the data."""
    x = np.linspace(0, 1, 20)
    b = 1500 * np.exp(-5 * x) + 60
    s = 14 * np.exp(-4 * (1 - x))
    effects = {
        "scale": 0.05 * (x - 0.3),
        "resolution": 0.03 * np.cos(5 * x),
        "rate": np.full(20, 0.03),
        "tail": 0.05 * x**2,
        "efficiency": 0.02 * (1 - x),
    }
    shifts = {name: Shift(b * (1 + e), b * (1 - e), mirrored=True) for name, e in effects.items()}
    signal = ProcessTemplates("signal", Role.SIGNAL, s, 0.01 * s)
    background = ProcessTemplates("background", Role.BACKGROUND, b, 0.1 * b, shifts)
    return TemplateSet("score", np.linspace(0, 1, 21), (signal, background), tuple(shifts))


def check_criteria(study: ToyStudy) -> dict[str, bool]:
    """Criteria: 3 binomial deviations, 5 %, and 3 times the error of the median."""
    coverage, binomial = study.coverage
    median, error = study.median_z
    return {
        "coverage within 3 binomial deviations": abs(coverage - 0.6827) < 3 * binomial,
        "pull width 1 within 5 %": abs(study.pull_width[0] - 1) < 0.05,
        "median equals the Asimov significance": abs(median - study.asimov_z) < 3 * error,
    }


def compare(templates: TemplateSet, toys: Toys, study: ToyStudy, n: int) -> dict[str, float]:
    """Largest differences between pyhf and Newton's method on the first toys."""
    first = Toys(toys.counts[:n], toys.theta[:n], toys.gamma[:n])
    reference = fit_toys_with_pyhf(templates, first)
    return {
        "μ": float(np.max(np.abs(reference.mu - study.mu[:n]))),
        "σ_μ": float(np.max(np.abs(reference.sigma_mu / study.sigma_mu[:n] - 1))),
        "Z": float(np.max(np.abs(reference.z - study.z[:n]))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toys", type=int, default=2000)
    parser.add_argument("--pyhf", type=int, default=50, help="how many of them are fitted with pyhf too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    templates = model()
    toys = draw_toys(templates, options.toys, options.seed)
    started = time.perf_counter()
    study = fit_toys(templates, toys)
    print(study.tables()[0])
    print(f"\n{3 * options.toys} fits by Newton's method in {time.perf_counter() - started:.1f} s")
    held = check_criteria(study)
    for criterion, holds in held.items():
        print(f"{'holds ' if holds else 'MISSED'}  {criterion}")
    differences = compare(templates, toys, study, options.pyhf)
    text = ", ".join(f"{name} {value:.1e}" for name, value in differences.items())
    print(f"\npyhf against Newton on {options.pyhf} toys, largest differences: {text}")
    if options.json:
        options.json.write_text(
            json.dumps({"table": study.tables()[0].to_dict(), "criteria": held, "pyhf": differences}, indent=2)
        )
    sys.exit(0 if all(held.values()) and max(differences.values()) < 1e-3 else 1)


if __name__ == "__main__":
    main()
