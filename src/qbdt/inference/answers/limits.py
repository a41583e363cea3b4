"""Upper limits by the CLs method: observed and expected, with asymptotic formulae or by toys.

The test statistic is q̃_μ of Cowan, Cranmer, Gross, Vitells (arXiv:1007.1727): −2 ln L(μ)/L(μ̂), with μ̂ not below 0,
and 0 for μ < μ̂. The limit is the μ at which CLs = p_{s+b}/p_b is 1 minus the confidence level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.files.records import read_float, read_floats
from qbdt.inference.answers.pseudo_experiments import draw_experiments, keep_fitted, measure_tilde
from qbdt.inference.likelihood import Minimum
from qbdt.inference.summary import BestFit
from qbdt.tables import Table

BANDS = (2, 1, 0, -1, -2)
"""Standard deviations of the test statistic of background alone: a large one gives a low limit."""


@dataclass(frozen=True, eq=False)
class UpperLimit:
    """Upper limit on a signal strength."""

    strength: str
    level: float  # Confidence level, 0.95
    method: str  # "asymptotic" or "toys"
    observed: float | None  # Limit on the fitted data; None where only the expected one is wanted
    expected: tuple[float, ...]  # Limits expected without signal: −2σ, −1σ, median, +1σ, +2σ
    # mu, observed_cls, expected_cls: CLs at some strengths: of the data, shape (points), NaN where only the expected
    # one is wanted, and of the five expectations, shape (points, 5)
    mu: Floats
    observed_cls: Floats
    expected_cls: Floats

    def tables(self) -> tuple[Table, ...]:
        """The limits."""
        names = ("expected −2σ", "expected −1σ", "expected", "expected +1σ", "expected +2σ")
        rows = [(name, f"{value:.3f}") for name, value in zip(names, self.expected, strict=True)]
        if self.observed is not None:
            rows.insert(0, ("observed", f"{self.observed:.3f}"))
        title = f"Upper limit on {self.strength}, {100 * self.level:g} % CLs, {self.method}"
        return (Table(title, ("limit", self.strength), tuple(rows)),)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; `from_dict` reads it back."""
        arrays = {name: getattr(self, name).tolist() for name in ("mu", "expected_cls")}
        observed = None if self.observed is None else self.observed_cls.tolist()
        words = {name: getattr(self, name) for name in ("strength", "level", "method", "observed")}
        return {**words, "expected": list(self.expected), **arrays, "observed_cls": observed}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> UpperLimit:
        """Inverse of `to_dict`."""
        n, observed = len(plain["mu"]), plain["observed_cls"]
        return cls(
            strength=str(plain["strength"]),
            level=read_float(plain["level"]),
            method=str(plain["method"]),
            observed=None if plain["observed"] is None else read_float(plain["observed"]),
            expected=tuple(read_floats(plain["expected"], 5).tolist()),
            mu=read_floats(plain["mu"], n),
            observed_cls=np.full(n, np.nan) if observed is None else read_floats(observed, n),
            expected_cls=read_floats(plain["expected_cls"], n, 5),
        )


def find_limit(best: BestFit, level: float = 0.95, observed: bool = True, points: int = 21) -> UpperLimit:
    """CLs limit with the asymptotic formulae, as pyhf computes it.

    Parameters
    ----------
    best
        The free fit; its strength is limited, all other parameters are profiled.
    level
        Confidence level.
    observed
        Whether the data are recorded ones. If not, they are not used: the limits are those expected from the nominal
        background, without signal of this strength.
    points
        Strengths at which CLs is given, from 0 to beyond the limits.

    Examples
    --------
    >>> from qbdt.data import Role
    >>> from qbdt.inference.templates import ProcessTemplates, TemplateSet
    >>> from qbdt.inference.workspace import build_workspace
    >>> from qbdt.inference.analytic_likelihood import AnalyticLikelihood
    >>> from qbdt.inference.summary import fit_freely
    >>> s = ProcessTemplates("s", Role.SIGNAL, np.array([10.0]), np.zeros(1))
    >>> b = ProcessTemplates("b", Role.BACKGROUND, np.array([100.0]), np.array([25.0]))
    >>> spec = build_workspace(TemplateSet("score", np.arange(2.0), (s, b)))
    >>> limit = find_limit(fit_freely(AnalyticLikelihood(spec, data=np.array([100.0]))))
    >>> round(limit.observed, 3) == round(limit.expected[2], 3)
    True
    """
    null = make_null(best, observed)
    # Background alone gives t = √q − √q_A ~ N(0, 1), so CLs = Φ(−√q_A − t)/Φ(−t): the band at t = n is where √q_A is
    # x_n = −Φ⁻¹((1 − level) Φ(−n)) − n.
    roots = [-float(ndtri((1 - level) * ndtr(-n))) - n for n in BANDS]
    curve = _NullCurve(null)
    expected = tuple(curve.solve(root) for root in roots)
    found = _find_observed(best, null, level, expected[2]) if observed else None
    mu = np.linspace(0, 1.3 * max(*expected, found or 0.0), points)[1:]
    rows = [evaluate_cls(best, null, value, observed) for value in mu.tolist()]
    return UpperLimit(
        best.poi,
        level,
        "asymptotic",
        found,
        expected,
        mu,
        np.array([row[0] for row in rows]),
        np.array([row[1] for row in rows]),
    )


def find_limit_with_toys(
    best: BestFit, n_toys: int = 1000, seed: int = 1, level: float = 0.95, observed: bool = True, points: int = 9
) -> UpperLimit:
    """CLs limit with the distributions of the test statistic drawn: for few events, where the formulae fail.

    `n_toys` pseudo-experiments are drawn at each strength and hypothesis; CLs is interpolated between `points`
    strengths.
    """
    guess = find_limit(best, level, observed, points=2)
    rng = np.random.default_rng(seed)
    likelihood = best.analytic
    base = best if observed else make_null(best, observed=False)
    ends = (*guess.expected, *(() if guess.observed is None else (guess.observed,)))
    mu = np.linspace(0.5 * min(ends), 1.5 * max(ends), points)
    background = draw_experiments(likelihood, base.profile(0.0, {}).values, n_toys, rng)
    rows = []
    for value in mu.tolist():
        with_signal = draw_experiments(likelihood, base.profile(value, {}).values, n_toys, rng)
        q_signal, q_background = (
            keep_fitted(measure_tilde(likelihood, toys, best.poi, value)) for toys in (with_signal, background)
        )
        bands = np.quantile(q_background, ndtr(BANDS))
        tests = [_tilde(best, value) if observed else np.nan, *bands.tolist()]
        rows.append([_ratio(q_signal, q_background, q) for q in tests])
    curves = np.array(rows)
    limits = [_interpolate(mu, column, 1 - level) for column in curves.T]
    found = limits[0] if observed else None
    return UpperLimit(best.poi, level, "toys", found, tuple(limits[1:]), mu, curves[:, 0], curves[:, 1:])


def make_null(best: BestFit, observed: bool) -> BestFit:
    """Free fit of the Asimov data of the background, which is known: their expectation fits them exactly.

    Parameters, and the centres of their constraints, are where the data fit best at μ = 0, as in pyhf; without data
    they are nominal.
    """
    likelihood = best.likelihood
    values = best.profile(0.0, {}).values if observed else likelihood.start.copy()
    values[best.index] = 0.0
    terms = likelihood.constraints
    centres = values[terms.index] * np.where(terms.rates == 0, 1.0, terms.rates)
    names = [likelihood.names[i] for i in terms.index]
    asimov = likelihood.with_data(likelihood.expected(values), dict(zip(names, centres.tolist(), strict=True)))
    minimum = Minimum(values, asimov.twice_nll(values), best.minimum.fixed)
    return BestFit(asimov, minimum, asimov.hessian(minimum), best.poi)


class _NullCurve:
    """√q̃ of the Asimov data of the background against the strength: it rises from 0, and is computed once at each."""

    def __init__(self, null: BestFit) -> None:
        self.null, self.known = null, {0.0: 0.0}

    def __call__(self, mu: float) -> float:
        if mu not in self.known:
            self.known[mu] = float(np.sqrt(max(self.null.rise(mu, {}), 0.0)))
        return self.known[mu]

    def solve(self, root: float) -> float:
        """Strength at which the curve reaches a value."""
        low = max(mu for mu, value in self.known.items() if value < root)
        high = min((mu for mu, value in self.known.items() if value >= root), default=None)
        bound = self.null.likelihood.bounds[self.null.index][1]
        while high is None:
            further = min(max(2 * low, root * self.null.sigma_mu()), bound)
            if self(further) >= root:
                high = further
            elif further == bound:
                raise FitError(f"no upper limit on {self.null.poi} is found below {bound:g}: widen its bounds")
            low = low if high is not None else further
        from scipy.optimize import brentq

        return float(brentq(lambda mu: self(mu) - root, low, high, xtol=1e-5 * high, rtol=1e-5))


def _tilde(best: BestFit, mu: float) -> float:
    """Test statistic q̃ of the data at one strength."""
    if mu <= best.mu:
        return 0.0
    start = 0.0 if best.mu >= 0 else best.rise(0.0, {})
    return max(best.rise(mu, {}) - start, 0.0)


def evaluate_cls(best: BestFit, null: BestFit, mu: float, observed: bool) -> tuple[float, list[float]]:
    """CLs of the data and of the five expectations at one strength."""
    root = float(np.sqrt(max(null.rise(mu, {}), 1e-300)))
    bands = [float(ndtr(-root - n) / ndtr(-n)) for n in BANDS]
    if not observed:
        return float("nan"), bands
    q = _tilde(best, mu)
    t = np.sqrt(q) - root if np.sqrt(q) <= root else (q - root**2) / (2 * root)
    return float(ndtr(-root - t) / ndtr(-t)), bands


def _find_observed(best: BestFit, null: BestFit, level: float, guess: float) -> float:
    def excess(mu: float) -> float:
        # ln CLs is smoother than CLs: fewer fits until the root.
        return float(np.log(max(evaluate_cls(best, null, mu, True)[0], 1e-300)) - np.log(1 - level))

    low, high = max(best.mu, 0.0) + 1e-3 * guess, max(best.mu, 0.0) + guess
    bound = best.likelihood.bounds[best.index][1]
    while excess(high) > 0:
        low, high = high, 1.5 * high
        if high > bound:
            raise FitError(f"no upper limit on {best.poi} is found below {bound:g}: widen its bounds")
    from scipy.optimize import brentq

    return float(brentq(partial(excess), low, high, xtol=1e-5 * guess, rtol=1e-5)) if excess(low) > 0 else low


def _ratio(with_signal: Floats, background: Floats, q: float) -> float:
    """CLs of one value of the test statistic: share of toys with signal at or beyond it over that of background."""
    if np.isnan(q):
        return q
    shares = [float(np.mean(toys >= q - 1e-9)) for toys in (with_signal, background)]
    return shares[0] / max(shares[1], 1 / len(background))


def _interpolate(mu: Floats, cls: Floats, alpha: float) -> float:
    """Strength at which CLs falls through alpha, in ln CLs; the last such where toys make it wiggle."""
    if np.isnan(cls).any():
        return float("nan")
    above = np.flatnonzero(cls > alpha)
    if not above.size or above[-1] == len(mu) - 1:
        return float(mu[0] if not above.size else mu[-1])
    i = int(above[-1])
    logs = np.log(np.maximum(cls[i : i + 2], 1e-6))
    return float(np.interp(np.log(alpha), logs[::-1], mu[i : i + 2][::-1]))
