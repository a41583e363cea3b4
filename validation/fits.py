"""Random measurements fitted here and by pyhf alone from the workspace: Z, σ and CLs.

One to three regions, up to five sources (asymmetric shapes and normalisations), free normalisations, two strengths,
empty bins, with and without MC statistics, on fluctuated data. A difference is one of more than 1e-3. MINUIT does not
always reach the lowest minimum: where results differ, each of pyhf's fits is done again from our point, the lower of
its two minima counts, and the model is counted apart. CLs is compared at two standard deviations above the best value.

Run:  python -m validation.fits [--models N] [--first N] [--seed N] [--json FILE]     (make fits)
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.errors import FitError
from qbdt.inference.analytic_likelihood import AnalyticLikelihood
from qbdt.inference.answers.limits import evaluate_cls, make_null
from qbdt.inference.measurement import Measurement
from qbdt.inference.summary import BestFit, fit_freely
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.inference.workspace import describe_measurement

CODES = {"normsys": {"interpcode": "code4"}, "histosys": {"interpcode": "code4p"}}
TOLERANCE = 1e-3
MAX_CALLS = 20_000
"""Of the likelihood in one fit by pyhf; most take some thousands, and some would never end."""
STEP = 0.0002
"""Of second differences, in standard deviations: those of asymmetric sources change within a hundredth of one, and two
strengths that one fit hardly tells apart are correlated to a millionth, so that steps of 0.001 change σ by 0.3 %."""


@dataclass(frozen=True)
class Comparison:
    """One model: what became of it, and Z, σ and CLs from here and from pyhf."""

    outcome: str
    here: tuple[float, ...] = ()
    pyhf: tuple[float, ...] = ()
    message: str = ""

    @property
    def largest(self) -> float:
        """Largest difference; that of σ relative to it."""
        return max((abs(a - b) for a, b in zip(self.here, self.pyhf, strict=True)), default=0.0)


def draw_measurement(rng: np.random.Generator) -> tuple[Measurement, bool]:
    """Make a random measurement, and choose whether it has MC statistics."""
    signals = ["ggH", "VBF"][: rng.integers(1, 3)]
    backgrounds = ["tt", "W", "Z"][: rng.integers(1, 4)]
    names = [f"source{k}" for k in range(rng.integers(0, 6))]
    kinds = {name: rng.choice(["norm", "shape"]) for name in names}
    targets = {name: rng.random(len(signals) + len(backgrounds)) < 0.6 for name in names}
    regions = {}
    for number in range(rng.integers(1, 4)):
        n_bins = int(rng.integers(2, 6))
        processes = []
        for place, name in enumerate([*signals, *backgrounds]):
            role = Role.SIGNAL if name in signals else Role.BACKGROUND
            nominal = _draw_yields(rng, n_bins, role, control=number > 0)
            acting = [source for source in names if targets[source][place]]
            shifts = {source: _draw_shift(rng, nominal, kinds[source]) for source in acting}
            processes.append(ProcessTemplates(name, role, nominal, rng.uniform(0.02, 0.5) * nominal, shifts))
        region = TemplateSet("score", np.arange(n_bins + 1.0), tuple(processes), tuple(names))
        regions[f"region{number}"] = replace(region, data=rng.poisson(region.asimov).astype(float))
    strengths = {f"mu_{name}": [name] for name in signals} if rng.random() < 0.5 else {"mu": signals}
    free = [name for name in backgrounds[:2] if len(regions) > 1 and rng.random() < 0.5]
    return Measurement(regions, strengths, free=free), bool(rng.random() < 0.7)


def _draw_yields(rng: np.random.Generator, n_bins: int, role: Role, control: bool) -> Floats:
    x = np.linspace(0, 1, n_bins)
    slope = rng.uniform(0.5, 3) * (1 if role is Role.SIGNAL else -1)
    size = rng.uniform(5, 40) if role is Role.SIGNAL else 10 ** rng.uniform(1.5, 3)
    yields = size * np.exp(slope * (x - 0.5)) * (0.05 if control and role is Role.SIGNAL else 1.0)
    return np.where(rng.random(n_bins) < 0.1, 0.0, yields)  # some bins stay empty


def _draw_shift(rng: np.random.Generator, nominal: Floats, kind: str) -> Shift:
    if kind == "norm":
        up, down = rng.uniform(0.02, 0.5), rng.uniform(0.02, 0.4)
        return Shift(nominal * (1 + up), nominal * (1 - down), factors=(1 - down, 1 + up))
    x = np.linspace(-1, 1, len(nominal))
    tilt = rng.normal(0, 0.08) * x + rng.normal(0, 0.04)
    return Shift(nominal * (1 + tilt), nominal * (1 - rng.uniform(0.3, 1.5) * tilt))


def compare(measurement: Measurement, mc_stat: bool) -> Comparison:
    """Fit one measurement here and with pyhf."""
    try:
        spec = describe_measurement(measurement, mc_stat=mc_stat)
        best = fit_freely(AnalyticLikelihood(spec))
        z = float(np.sqrt(max(best.rise(0.0, {}), 0.0))) if best.mu > 0 else 0.0
        null, mu = make_null(best, observed=True), max(best.mu, 0.0) + 2 * best.sigma_mu()
        cls, bands = evaluate_cls(best, null, mu, observed=True)
    except FitError as error:
        return Comparison("message", message=str(error))
    here = (z, best.sigma_mu(), cls, bands[2])
    reference, ours = _Pyhf(spec), {"data": best, "asimov": null}
    for again in (False, True):
        try:
            found = reference.measure(ours, mu, again)
        except Exception as error:  # pyhf's minimisers raise what they like
            last = Comparison("pyhf failed", here, (), str(error)[:100])
            continue
        scaled = (here[0], 1.0, *here[2:]), (found[0], found[1] / here[1], *found[2:])
        last = Comparison("agrees, pyhf from our point" if again else "agrees", *scaled)
        if last.largest < TOLERANCE:
            return last
    return replace(last, outcome="differs") if last.pyhf else last


class _Pyhf:
    """The workspace as pyhf alone sees it."""

    def __init__(self, spec: dict[str, Any]) -> None:
        import pyhf

        pyhf.set_backend("numpy", pyhf.optimize.minuit_optimizer(tolerance=1e-2, maxiter=MAX_CALLS))
        self.infer = pyhf.infer
        workspace = pyhf.Workspace(spec)
        first = spec["measurements"][0]["name"]
        self.model = workspace.model(measurement_name=first, modifier_settings=CODES)
        self.data = workspace.data(self.model)

    def measure(self, ours: dict[str, BestFit], test: float, again: bool) -> tuple[float, ...]:
        """Z, σ, and CLs observed and expected at one strength: what `hypotest` does, each fit once."""
        self.ours = ours if again else None
        free, lowest = self.fit("data", self.data, None)
        null, at_null = self.fit("data", self.data, 0.0)
        mu = float(free[self.model.config.poi_index])
        z = float(np.sqrt(max(at_null - lowest, 0.0))) if mu > 0 else 0.0
        asimov = self.model.expected_data(null)
        q = self.fit("data", self.data, test)[1] - (at_null if mu < 0 else lowest)
        exact = -2 * float(np.asarray(self.model.logpdf(null, asimov)).item())
        root = np.sqrt(max(self.fit("asimov", asimov, test)[1] - exact, 1e-12))
        t = np.sqrt(max(q, 0.0)) - root if q <= root**2 else (q - root**2) / (2 * root)
        cls = float(norm.sf(t + root) / norm.sf(t))
        return z, self.sigma(ours["data"], free), cls, float(norm.sf(root) / 0.5)

    def fit(self, kind: str, data: Any, mu: float | None) -> tuple[Any, float]:
        """Best parameters and −2 ln L, with the strength free or held."""
        starts: list[list[float] | None] = [None]
        found: list[tuple[Any, float]] = []
        failure = None
        if self.ours is not None:
            best = self.ours[kind]
            point = (best.minimum if mu is None else best.profile(mu, {})).values
            starts.append(point.tolist())
            found.append((point, -2 * float(np.asarray(self.model.logpdf(point, data)).item())))
        for start in starts:
            try:
                found.append(self.fit_from(start, data, mu))
            except Exception as error:  # pyhf's minimisers raise what they like
                failure = error
        if not found and failure is not None:
            raise failure
        return min(found, key=lambda one: one[1])

    def fit_from(self, start: list[float] | None, data: Any, mu: float | None) -> tuple[Any, float]:
        options: dict[str, Any] = {"return_fitted_val": True, "init_pars": start}
        mle = self.infer.mle
        if mu is not None and self.model.config.npars == 1:  # nothing is left to fit, which pyhf does not take
            return np.array([mu]), -2 * float(np.asarray(self.model.logpdf([mu], data)).item())
        if mu is None:
            found = mle.fit(data, self.model, **options)
        else:
            found = mle.fixed_poi_fit(mu, data, self.model, **options)
        return np.asarray(found[0]), float(found[1])

    def sigma(self, best: BestFit, values: Any) -> float:
        """σ_μ from second derivatives of pyhf's −ln L by differences: HESSE is off by up to some per cent."""
        # Along directions in which our covariance is 1: strengths may be so correlated that steps of each parameter on
        # its own are many standard deviations of a difference of two.
        free = [i for i, name in enumerate(best.likelihood.names) if name not in best.minimum.fixed]
        axes = np.linalg.cholesky(np.linalg.inv(best.hessian[np.ix_(free, free)]))

        def at(*moves: tuple[int, float]) -> float:
            point = np.array(values, dtype=float)
            for a, sign in moves:
                point[free] += sign * STEP * axes[:, a]
            return -float(np.asarray(self.model.logpdf(point, self.data)).item())

        n, here = len(free), at()
        ahead, behind = ([at((a, sign)) for a in range(n)] for sign in (1.0, -1.0))
        matrix = np.zeros((n, n))
        for a in range(n):
            matrix[a, a] = ahead[a] - 2 * here + behind[a]
            for b in range(a):
                both = at((a, 1.0), (b, 1.0)) + at((a, -1.0), (b, -1.0))
                rest = ahead[a] + behind[a] + ahead[b] + behind[b]
                matrix[a, b] = matrix[b, a] = (both - rest + 2 * here) / 2
        row = axes[free.index(best.index)]
        return float(STEP * np.sqrt(row @ np.linalg.solve(matrix, row)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="number of the first model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    started, found = time.perf_counter(), []
    for done in range(options.models):
        number = options.first + done
        found.append(compare(*draw_measurement(np.random.default_rng([options.seed, number]))))
        one = found[-1]
        if one.outcome not in ("agrees", "agrees, pyhf from our point"):
            print(f"model {number}: {one.outcome} {one.message or [one.here, one.pyhf]}", flush=True)
        if done % 50 == 49:
            print(f"{done + 1} models, {time.perf_counter() - started:.0f} s", flush=True)
        if options.json:
            options.json.write_text(json.dumps([vars(one) for one in found], indent=1))
    counted = Counter(one.outcome for one in found)
    print(f"\n{options.models} models in {time.perf_counter() - started:.0f} s")
    for outcome, n in counted.most_common():
        print(f"{n:5d}  {outcome}")
    compared = [one for one in found if one.outcome.startswith("agrees")]
    for place, name in enumerate(("Z", "σ/σ", "CLs observed", "CLs expected")):
        worst = max((abs(one.here[place] - one.pyhf[place]) for one in compared), default=0.0)
        print(f"largest difference of {name}: {worst:.1e}")
    sys.exit(1 if counted["differs"] else 0)


if __name__ == "__main__":
    main()
