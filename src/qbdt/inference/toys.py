"""Pseudo-experiments from templates: coverage of the interval, pulls of the signal strength, median significance.

Counts are drawn from their Poisson distributions and the centres of the constraints from their Gaussians, for true
parameters at their nominal values; all experiments are fitted at once by Newton's method, or one by one with pyhf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.inference.asimov import fit_asimov
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.newton_fit import maximise
from qbdt.inference.templates.template_set import TemplateSet
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


def draw_toys(templates: TemplateSet, n_toys: int, seed: int, mc_stat: bool = True) -> Toys:
    """Draw experiments at μ = 1 and nominal nuisance parameters."""
    rng = np.random.default_rng(seed)
    model = templates.arrays() if mc_stat else templates.arrays().without_mc_stat()
    counts = rng.poisson(templates.asimov, (n_toys, templates.n_bins)).astype(float)
    theta = rng.normal(0.0, 1.0, (n_toys, len(templates.sources)))
    gamma = rng.normal(1.0, np.sqrt(model.mc_variance) / model.background, (n_toys, templates.n_bins))
    return Toys(counts, theta, gamma)


def fit_toys(templates: TemplateSet, toys: Toys, mc_stat: bool = True) -> ToyStudy:
    """Fit all experiments by Newton's method, three fits each: free, at μ = 0 and at the truth.

    Examples
    --------
    >>> from qbdt.data import Role
    >>> from qbdt.inference.templates.template_set import ProcessTemplates
    >>> s = ProcessTemplates("s", Role.SIGNAL, np.array([5.0, 20.0]), np.zeros(2))
    >>> b = ProcessTemplates("b", Role.BACKGROUND, np.array([200.0, 50.0]), np.array([20.0, 5.0]))
    >>> templates = TemplateSet("score", np.arange(3.0), (s, b))
    >>> study = fit_toys(templates, draw_toys(templates, 500, seed=1))
    >>> abs(study.coverage[0] - 0.683) < 0.07
    True
    """
    model = templates.arrays() if mc_stat else templates.arrays().without_mc_stat()
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
