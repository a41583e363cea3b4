"""The expected significance Q and the Fisher information about the signal strength: pure formulas.

Q, the background uncertainty σ_b² and the purity are the paper's criterion. Their scalar functions are jitted and
called by kernels; the functions on arrays serve everybody else. What b ≤ 0 means is decided here and nowhere else: such
a region has no Q, `has_significance` is False for it, and the functions on arrays refuse it.

The information of a binned likelihood, with nuisance parameters profiled out, is I* = 1/σ_μ²; templates, their binning
and the profiled training share it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from qbdt.arrays import Floats
from qbdt.errors import DataError
from qbdt.tables import Table

__all__ = [
    "Expectation",
    "FittedSensitivity",
    "Sensitivity",
    "SourceExpectation",
    "TanhScan",
    "background_variance",
    "binned_significance",
    "correlated_variance",
    "has_significance",
    "information_matrix",
    "profiled_information",
    "purity",
    "purity_value",
    "quadratic_difference",
    "scan_tanh",
    "significance",
    "significance_value",
]


SERIES_BELOW = 0.1
"""Where s/b is smaller, log1p(s/b) − s/b … would cancel and the power series in s/b is used."""

SERIES_TERMS = 18
"""Terms after which the series at s/b = 0.1 is exact to double precision."""


@njit(cache=True, nogil=True, error_model="numpy")
def has_significance(b: float) -> bool:
    """Whether a region with background b has a significance: only where b > 0."""
    return b > 0.0


FAR_RATIO, FAR_SHARE = 1e100, 1e-200
"""Where s/b is larger or b/(b + σ²) smaller, and σ > 0, products in Q leave the range of doubles: logarithms serve."""

TINY_LOGARITHM = -30.0
"""log of x below which log(log1p(x)) is log x in double precision."""


@njit(cache=True, nogil=True, error_model="numpy")
def _add_logarithms(first: float, second: float) -> float:
    """Logarithm of a sum from those of its terms."""
    return max(first, second) + math.log1p(math.exp(-abs(first - second)))


@njit(cache=True, nogil=True, error_model="numpy")
def _log_log1p(exponent: float) -> float:
    """Logarithm of log1p(x) from that of x."""
    if exponent < TINY_LOGARITHM:
        return exponent
    return math.log(_add_logarithms(0.0, exponent))


@njit(cache=True, nogil=True, error_model="numpy")
def _far_significance(s: float, b: float, sigma2: float) -> float:
    """Q where s ≫ b or σ² ≫ b: 2[(s+b) log1p(x) − b²/σ² log1p(t)] with all factors as logarithms.

    Here x = s b/(b (b + σ²) + s σ²) and t = σ² s/(b (b + σ²)); for s/b ≥ 0.1 the two terms do not cancel.
    """
    ls, lb, lv = math.log(s), math.log(b), math.log(sigma2)
    both = lb + _add_logarithms(lb, lv)
    first = _add_logarithms(ls, lb) + _log_log1p(ls + lb - _add_logarithms(both, ls + lv))
    second = 2.0 * lb - lv + _log_log1p(lv + ls - both)
    return max(0.0, 2.0 * (math.exp(first) - math.exp(second)))


@njit(cache=True, nogil=True, error_model="numpy")
def significance_value(s: float, b: float, sigma2: float) -> float:
    """Q of one region (eq:Q; eq:Q0 where sigma2 = 0) for b > 0; zero for s ≤ 0.

    With c = σ²/(b + σ²) and d = 1 − c, eq:Q is 2[(s+b) log1p(s d/(b + s c)) − s d log1p(t)/t], t = c s/b. As dQ/ds =
    2 log1p(s d/(b + s c)) > 0, the power series in u = s/b, 2 s d u Σ_n (−u)^n (1 + c + … + c^n)/((n+1)(n+2)), has
    no cancellation either; it serves where the closed form would lose digits.
    """
    if s <= 0.0:
        return 0.0
    d = b / (b + sigma2)
    c = sigma2 / (b + sigma2)
    u = s / b
    if u < SERIES_BELOW:
        total = 0.0
        geometric = 1.0
        power = 1.0
        for n in range(SERIES_TERMS):
            term = power * geometric / ((n + 1.0) * (n + 2.0))
            total += term
            if abs(term) < 1e-17 * total:
                break
            power *= -u
            geometric = 1.0 + c * geometric
        return 2.0 * s * d * u * total
    if sigma2 > 0.0 and (u > FAR_RATIO or d < FAR_SHARE):
        return _far_significance(s, b, sigma2)
    x = s * d / (b + s * c)
    first = math.log1p(x) if x < 1e300 else math.log(s) - math.log(b)
    t = c * u
    second = 1.0
    if t > 0.0:
        second = math.log1p(t) / t if t < 1e300 else 0.0
    return 2.0 * ((s + b) * first - s * d * second)


@njit(cache=True, nogil=True, error_model="numpy")
def correlated_variance(b: float, first: float, second: float) -> float:
    """σ_b² of eq:sigmab from first = Σ r_k and second = Σ r_k², r_k = Δ_k²/(b + Δ_k²); zero where it is negative."""
    return max(0.0, b * (first - (first * first - second)))


@njit(cache=True, nogil=True, error_model="numpy")
def purity_value(s: float, b: float, sigma2: float) -> float:
    """Purity s/(s + b + σ_b²) of one region; zero for s ≤ 0."""
    if s <= 0.0:
        return 0.0
    return s / (s + b + sigma2)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_significance(s: NDArray[np.float64], b: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    out = np.empty(s.size)
    for i in range(s.size):
        out[i] = significance_value(s[i], b[i], v[i])
    return out


def significance(s: ArrayLike, b: ArrayLike, sigma2: ArrayLike = 0.0) -> NDArray[np.float64]:
    """Q of eq:Q0 (sigma2 = 0) and eq:Q: the square of the expected discovery significance.

    Parameters
    ----------
    s, b
        Expected signal and background; b > 0.
    sigma2
        Square of the background uncertainty, at least 0.

    Examples
    --------
    >>> float(significance(10.0, 100.0).round(6)), float(significance(10.0, 100.0, 50.0).round(6))
    (0.96824, 0.638549)
    """
    signal, background, variance = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (s, b, sigma2)))
    _require_positive(background)
    if np.any(~(variance >= 0)):
        raise DataError(f"sigma2={variance.min()}: must be at least 0")
    flat = _fill_significance(*(np.array(a).ravel() for a in (signal, background, variance)))
    return flat.reshape(signal.shape)[()]


def background_variance(b: ArrayLike, deltas: ArrayLike, mc_variance: ArrayLike = 0.0) -> NDArray[np.float64]:
    """σ_b² of eq:sigmab, clipped at zero, plus the MC variance δ².

    Parameters
    ----------
    b
        Expected background; b > 0.
    deltas
        Change of b by each source, sources along the first axis.
    mc_variance
        Sum of squared weights of the simulated background.

    Examples
    --------
    >>> float(background_variance(100.0, [5.0]).round(6))
    20.0
    """
    background = np.asarray(b, dtype=np.float64)
    _require_positive(background)
    squares = np.square(np.asarray(deltas, dtype=np.float64))
    shares = squares / (background + squares)
    first, second = shares.sum(axis=0), np.square(shares).sum(axis=0)
    return np.asarray(np.maximum(0.0, background * (first - (first**2 - second))) + mc_variance)[()]


def purity(s: ArrayLike, b: ArrayLike, sigma2: ArrayLike = 0.0) -> NDArray[np.float64]:
    """Purity s/(s + b + σ_b²); zero where s ≤ 0.

    Examples
    --------
    >>> float(purity(1.0, 3.0))
    0.25
    """
    signal, background = np.asarray(s, dtype=np.float64), np.asarray(b, dtype=np.float64)
    _require_positive(background)
    positive = np.maximum(signal, 0.0)
    return np.asarray(positive / (positive + background + np.asarray(sigma2)), dtype=np.float64)[()]


def binned_significance(s: ArrayLike, b: ArrayLike) -> float:
    """Q of eq:Q0 summed over the bins of a distribution; bins without background do not count.

    Examples
    --------
    >>> round(binned_significance([10.0, 5.0], [100.0, 0.0]), 6)
    0.96824
    """
    signal, background = np.asarray(s, dtype=np.float64), np.asarray(b, dtype=np.float64)
    usable = background > 0
    return float(np.sum(significance(signal[usable], background[usable])))


TANH_CONSTANTS: Floats = np.round(np.arange(1, 31) * 0.05, 2)
"""Constants c that the paper's scan of tanh(c·y) tries: 0.05 to 1.5 in steps of 0.05."""


@dataclass(frozen=True, eq=False)
class TanhScan:
    """Binned Q of tanh(c·y) for each constant c.

    Attributes
    ----------
    constants
        Values of c.
    q
        Q without systematics summed over the bins, eq:Q0.
    allowed
        Whether the last bin still holds background: without that, Q is that of one lucky bin.
    """

    constants: Floats
    q: Floats
    allowed: NDArray[np.bool_]

    @property
    def best(self) -> float | None:
        """Allowed constant with the largest Q; None where none is allowed."""
        return float(self.constants[int(np.argmax(self._counted))]) if self.allowed.any() else None

    @property
    def largest_q(self) -> float:
        """Q of the best constant; 0 where none is allowed."""
        return float(self._counted.max()) if self.allowed.any() else 0.0

    @property
    def _counted(self) -> Floats:
        return np.where(self.allowed, self.q, -np.inf)


def scan_tanh(signal: Floats, s_weight: Floats, background: Floats, b_weight: Floats, n_bins: int = 20) -> TanhScan:
    """Binned Q of tanh(c·y) in bins of equal width on (−1, 1), for each constant c of the paper's scan.

    Parameters
    ----------
    signal, s_weight
        Scores and yields of signal events.
    background, b_weight
        The same for the background.
    n_bins
        Number of bins; 20 in the paper.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> scan = scan_tanh(rng.normal(2, 2, 500), np.ones(500), rng.normal(-2, 2, 500), np.ones(500))
    >>> scan.best
    0.55
    """
    # tanh(c·y) is in a bin where y is between the bin's edges mapped back: the scores themselves are never transformed.
    inner = np.arctanh(np.linspace(-1, 1, n_bins + 1)[1:-1])
    q, allowed = [], []
    for c in TANH_CONSTANTS:
        s = np.bincount(np.searchsorted(inner / c, signal, side="right"), s_weight, n_bins)
        b = np.bincount(np.searchsorted(inner / c, background, side="right"), b_weight, n_bins)
        q.append(binned_significance(s, b))
        allowed.append(b[-1] > 0)
    return TanhScan(TANH_CONSTANTS, np.array(q), np.array(allowed))


def _require_positive(background: NDArray[np.float64]) -> None:
    if np.any(~(background > 0)):
        raise DataError(f"b={background.min()}: Q is defined for a positive background only")


def quadratic_difference(total: float, rest: float) -> float:
    """sqrt(total² − rest²): the uncertainty that is in `total` and not in `rest`; 0 where `rest` is the larger.

    Examples
    --------
    >>> quadratic_difference(5.0, 4.0)
    3.0
    """
    return math.sqrt(max(total**2 - rest**2, 0.0))


@dataclass(frozen=True)
class Sensitivity:
    """Uncertainty of the signal strength.

    Attributes
    ----------
    sigma_stat, sigma_full
        σ_μ without and with the systematic sources.
    """

    sigma_stat: float
    sigma_full: float

    @property
    def delta_mu(self) -> float:
        """Part of σ_μ from the systematic sources, the paper's Δμ = sqrt(σ_full² − σ_stat²)."""
        return quadratic_difference(self.sigma_full, self.sigma_stat)


@dataclass(frozen=True)
class FittedSensitivity(Sensitivity):
    """The same with discovery significances, which take a fit at μ = 0.

    Attributes
    ----------
    z_stat, z_full
        Discovery significance sqrt(q0) without and with the sources, in standard deviations.
    """

    z_stat: float
    z_full: float


@dataclass(frozen=True)
class SourceExpectation:
    """Expected effect of one source on σ_μ.

    Attributes
    ----------
    name
        The source.
    coefficient
        Its c_k: how far a fit pulls θ_k for one unit of μ.
    cost
        sqrt(σ_μ² − σ_μ²(without this source)) if events were ordered by s/b alone.
    profiled_cost
        The same for the trained score.
    """

    name: str
    coefficient: float
    cost: float
    profiled_cost: float


@dataclass(frozen=True)
class Expectation(Sensitivity):
    """Sensitivity of a trained score, estimated on events that took no part in its training.

    Attributes
    ----------
    unprofiled
        σ_μ with all sources if events were ordered by s/b alone.
    sources
        Each source by itself.
    parameter
        Name of the parameter whose uncertainty it is.
    """

    unprofiled: float
    sources: tuple[SourceExpectation, ...] = ()
    parameter: str = "mu"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the keys are those of model files, where no parameter is the strength "mu"."""
        sources = [asdict(source) for source in self.sources]
        known = {"stat": self.sigma_stat, "full": self.sigma_full, "unprofiled": self.unprofiled, "sources": sources}
        return known if self.parameter == "mu" else {**known, "parameter": self.parameter}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Expectation:
        """Inverse of `to_dict`."""
        sources = tuple(SourceExpectation(**source) for source in plain["sources"])
        return cls(plain["stat"], plain["full"], plain["unprofiled"], sources, plain.get("parameter", "mu"))

    @classmethod
    def mean(cls, several: Sequence[Expectation]) -> Expectation:
        """Average of the expectations of several trainings with the same sources."""
        sources = [
            SourceExpectation(same[0].name, *np.mean([(s.coefficient, s.cost, s.profiled_cost) for s in same], axis=0))
            for same in zip(*(one.sources for one in several), strict=True)
        ]
        means = np.mean([(one.sigma_stat, one.sigma_full, one.unprofiled) for one in several], axis=0)
        stat, full, unprofiled = means.tolist()
        return cls(stat, full, unprofiled, tuple(sources), several[0].parameter)

    def tables(self) -> tuple[Table, ...]:
        """σ_μ and what each source adds to it, ordered by s/b and by the trained score, for the events trained on."""
        sigma = "σ_μ" if self.parameter == "mu" else f"σ of {self.parameter}"
        rows = [
            ("no systematics", "", f"{self.sigma_stat:.4g}", ""),
            *((s.name, f"{s.coefficient:.2f}", f"{s.cost:.3g}", f"{s.profiled_cost:.3g}") for s in self.sources),
            (f"{sigma}, all sources", "", f"{self.unprofiled:.4g}", f"{self.sigma_full:.4g}"),
        ]
        header = ("source", "c", f"added to {sigma}, ordered by s/b", "by the score")
        return (Table("Expected by the training, for its own events, on folds held out", header, tuple(rows)),)


def information_matrix(signal: ArrayLike, shifts: ArrayLike, variance: ArrayLike) -> Floats:
    """Fisher information of (μ, θ₁ … θ_K) with unit-Gaussian priors on the θ.

    I_ab = Σ_i a_i b_i / v_i + δ_ab for the θ, where a, b run over (s, Δ₁ … Δ_K) and v is the variance of the bin
    content: the expected events plus the MC variance. Leading axes are batches.

    Parameters
    ----------
    signal
        Signal per bin, shape (…, bins); events.
    shifts
        Change of the expected events for θ_k = +1, shape (…, sources, bins); may have no sources.
    variance
        Variance of the bin contents, shape (…, bins), positive; events².

    Returns
    -------
    ndarray
        Shape (…, 1 + sources, 1 + sources); the signal strength comes first.

    Examples
    --------
    >>> information_matrix([3.0, 1.0], [[2.0, 0.0]], [9.0, 1.0])
    array([[2.        , 0.66666667],
           [0.66666667, 1.44444444]])
    """
    rows = np.concatenate([np.asarray(signal, float)[..., None, :], np.asarray(shifts, float)], axis=-2)
    scaled = rows / np.asarray(variance, float)[..., None, :]
    matrix: NDArray[Any] = scaled @ np.swapaxes(rows, -1, -2)
    prior = np.ones(rows.shape[-2])
    prior[0] = 0.0
    return np.asarray(matrix + np.diag(prior), dtype=np.float64)


def profiled_information(signal: ArrayLike, shifts: ArrayLike, variance: ArrayLike) -> Floats:
    """Return I* = I_μμ − I_μθ I_θθ⁻¹ I_θμ = 1/σ_μ² of templates; shapes as in `information_matrix`.

    Examples
    --------
    >>> float(profiled_information([3.0, 1.0], [[2.0, 0.0]], [9.0, 1.0]).round(6))
    1.692308
    """
    matrix = information_matrix(signal, shifts, variance)
    nuisance, mixed = matrix[..., 1:, 1:], matrix[..., 1:, 0]
    solved = np.linalg.solve(nuisance, mixed[..., None])[..., 0]
    return np.asarray(matrix[..., 0, 0] - np.sum(mixed * solved, axis=-1))
