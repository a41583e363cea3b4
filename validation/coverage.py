"""2 000 toys of a measurement with a control region and a free normalisation: coverage of interval and upper limit.

The interval is where −2 Δln L < 1 and should contain the true strength in 68.3 % of the toys. The upper limit at 95 %
CLs should be above it in 95 %: never in fewer, and not in more where the background alone is excluded, as here.

Run:  python -m validation.coverage [--toys N] [--seed N]     (make toys)
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from scipy.stats import norm

from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.inference.analytic_likelihood import AnalyticLikelihood, fit_many
from qbdt.inference.answers.pseudo_experiments import Experiments, draw_experiments, fit_experiments, measure_tilde
from qbdt.inference.measurement import Measurement
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.inference.workspace import describe_measurement
from qbdt.tables import Table

INSIDE, LIMIT = 0.6826894921370859, 0.95


def make_model() -> Measurement:
    """A signal and a control region; two sources, of which one is asymmetric; the main background is free."""
    x = np.linspace(0, 1, 8)
    tt, other, signal = 400 * np.exp(-3 * x) + 40, 150 * np.exp(-x), 60 * np.exp(-3 * (1 - x))
    regions = {
        "signal": _make_region(x, signal, tt, other),
        "control": _make_region(x[:4], 0.01 * signal[:4], 5 * tt[:4], 0.3 * other[:4]),
    }
    return Measurement(regions, free=["tt"])


def _make_region(x: Floats, signal: Floats, tt: Floats, other: Floats) -> TemplateSet:
    tilt = 0.05 * (x - 0.4)
    processes = (
        ProcessTemplates("signal", Role.SIGNAL, signal, 0.01 * signal),
        ProcessTemplates("tt", Role.BACKGROUND, tt, 0.1 * tt, {"scale": Shift(tt * (1 + tilt), tt * (1 - 0.8 * tilt))}),
        ProcessTemplates(
            "other", Role.BACKGROUND, other, 0.1 * other, {"xs": Shift(1.1 * other, 0.9 * other, factors=(0.9, 1.1))}
        ),
    )
    return TemplateSet("score", np.arange(len(x) + 1.0), processes, ("scale", "xs"))


def measure_cls(likelihood: AnalyticLikelihood, toys: Experiments, mu: float) -> Floats:
    """Asymptotic CLs of all toys at one strength."""
    null = fit_experiments(likelihood, toys, {"mu": 0.0})
    asimov = likelihood.expectation(null.values)
    centres = null.values[:, likelihood.constraints.index]
    root = np.sqrt(np.maximum(fit_many(likelihood, asimov, centres, {"mu": mu}, toys.truth).twice_nll, 1e-12))
    q = measure_tilde(likelihood, toys, "mu", mu)
    t = np.where(q <= root**2, np.sqrt(q) - root, (q - root**2) / (2 * root))
    return np.asarray(norm.sf(t + root) / norm.sf(t))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toys", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.perf_counter()
    likelihood = AnalyticLikelihood(describe_measurement(make_model()))
    toys = draw_experiments(likelihood, likelihood.start, options.toys, np.random.default_rng(options.seed))
    free, held = fit_experiments(likelihood, toys), fit_experiments(likelihood, toys, {"mu": 1.0})
    covered = {
        "68 % interval": (np.mean(held.twice_nll - free.twice_nll < 1), INSIDE),
        "95 % CLs limit": (np.mean(measure_cls(likelihood, toys, 1.0) > 1 - LIMIT), LIMIT),
    }
    rows = []
    for name, (found, wanted) in covered.items():
        error = np.sqrt(wanted * (1 - wanted) / options.toys)
        rows.append((name, f"{found:.4f}", f"{error:.4f}", f"{wanted:.4f}", f"{(found - wanted) / error:+.1f}"))
    print(Table(f"{options.toys} toys", ("coverage of", "found", "±", "expected", "deviations"), tuple(rows)))
    spread = np.std(free.values[:, likelihood.names.index("norm_tt")])
    print(f"\nspread of the free normalisation {spread:.4f}; {time.perf_counter() - started:.0f} s")
    sys.exit(0 if all(abs(float(row[-1])) <= 2 for row in rows) else 1)


if __name__ == "__main__":
    main()
