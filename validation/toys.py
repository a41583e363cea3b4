"""2 000 toys from one workspace: coverage, pulls and the median significance; pyhf and Newton's method toy by toy.

Counts are drawn from their Poisson distributions and the centres of the constraints from their Gaussians, for true
parameters at their nominal values; all experiments are fitted at once by Newton's method, or one by one with pyhf.

Run:  python -m validation.toys [--toys N] [--pyhf N] [--seed N] [--json FILE]     (make toys)
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.inference.asimov import fit_asimov
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.newton_fit import maximise
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.inference.workspace import build_workspace
from qbdt.tables import Table


@dataclass(frozen=True, eq=False)
class Toys:
    """Drawn experiments: counts (toys, bins), centres of the source constraints, and of the MC-statistics ones."""

    counts: Floats
    theta: Floats
    gamma: Floats


@dataclass(frozen=True, eq=False)
class ToyStudy:
    """Fits of pseudo-experiments with a true signal strength of 1."""

    # mu, sigma_mu: best signal strength and its uncertainty in each experiment
    mu: Floats
    sigma_mu: Floats
    z: Floats  # Discovery significance of each
    inside: NDArray[np.bool_]  # Whether the 68 % interval, where −2 Δln L < 1, contains the truth
    asimov_z: float  # Significance of the Asimov data

    @property
    def coverage(self) -> tuple[float, float]:
        """Share of intervals that contain the truth, and the binomial standard deviation expected of it."""
        return float(np.mean(self.inside)), float(np.sqrt(COVERAGE * (1 - COVERAGE) / len(self.inside)))

    @property
    def pull_width(self) -> tuple[float, float]:
        """Standard deviation of (μ̂ − 1)/σ_μ, and its statistical uncertainty."""
        pulls = (self.mu - 1) / self.sigma_mu
        return float(np.std(pulls)), float(np.std(pulls) / np.sqrt(2 * len(pulls)))

    @property
    def median_z(self) -> tuple[float, float]:
        """Median significance, and its statistical uncertainty for a normal distribution."""
        error = np.sqrt(np.pi / 2) * np.std(self.z) / np.sqrt(len(self.z))
        return float(np.median(self.z)), float(error)

    def tables(self) -> tuple[Table, ...]:
        """Found and expected coverage, pull width and median significance."""
        rows = (
            ("coverage of the 68 % interval", *self.coverage, COVERAGE),
            ("width of the pull of μ", *self.pull_width, 1.0),
            ("median significance", *self.median_z, self.asimov_z),
        )
        cells = tuple((name, f"{v:.4f}", f"{e:.4f}", f"{x:.4f}", f"{(v - x) / e:+.1f}") for name, v, e, x in rows)
        return (Table(f"{len(self.mu)} toys", ("quantity", "found", "±", "expected", "deviations"), cells),)


COVERAGE = 0.6826894921370859
"""Probability of one standard deviation."""


def draw_toys(templates: TemplateSet, n_toys: int, seed: int) -> Toys:
    """Draw experiments at μ = 1 and nominal nuisance parameters."""
    rng = np.random.default_rng(seed)
    model = templates.arrays()
    counts = rng.poisson(templates.asimov, (n_toys, templates.n_bins)).astype(float)
    theta = rng.normal(0.0, 1.0, (n_toys, len(templates.sources)))
    gamma = rng.normal(1.0, np.sqrt(model.mc_variance) / model.background, (n_toys, templates.n_bins))
    return Toys(counts, theta, gamma)


def fit_toys(templates: TemplateSet, toys: Toys) -> ToyStudy:
    """Fit all experiments by Newton's method, three fits each: free, at μ = 0 and at the truth."""
    model = templates.arrays()
    aux: dict[str, Any] = {"aux_theta": toys.theta, "aux_gamma": toys.gamma}
    free = maximise(model, toys.counts, **aux)
    null, truth = (maximise(model, toys.counts, mu=mu, **aux).twice_nll for mu in (0.0, 1.0))
    q0 = np.where(free.mu > 0, np.maximum(null - free.twice_nll, 0.0), 0.0)
    inside = truth - free.twice_nll < 1.0
    return ToyStudy(free.mu, free.sigma_mu, np.sqrt(q0), inside, float(fit_asimov(model).z))


def fit_toys_with_pyhf(templates: TemplateSet, toys: Toys) -> ToyStudy:
    """Fit the same experiments one by one with pyhf: the reference, about 0.1 s each."""
    likelihood = Likelihood(build_workspace(templates), linear=True)
    best = likelihood.minimise()
    poi = likelihood.names[likelihood.poi]
    rows = []
    for counts, theta, gamma in zip(toys.counts, toys.theta, toys.gamma, strict=True):
        centres = dict(zip(templates.sources, theta, strict=True))
        centres |= dict(zip(likelihood.of_kind("mc_stat"), gamma.tolist(), strict=True))
        toy = likelihood.with_data(counts, centres)
        free = toy.follow({}, best.values)
        null, truth = (toy.follow({poi: mu}, free.values).twice_nll for mu in (0.0, 1.0))
        mu = float(free.values[toy.poi])
        sigma = float(np.sqrt(toy.covariance(free)[toy.poi, toy.poi]))
        rows.append((mu, sigma, max(null - free.twice_nll, 0.0) if mu > 0 else 0.0, truth - free.twice_nll < 1.0))
    mu_hat, sigma_mu, q0, inside = (np.array(column) for column in zip(*rows, strict=True))
    return ToyStudy(mu_hat, sigma_mu, np.sqrt(q0), inside, float(fit_asimov(templates.arrays()).z))


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
