"""The expected significance Q, the paper's criterion: pure formulas.

Q, the background uncertainty σ_b² and the purity are the paper's criterion. Their scalar functions are jitted and
called by kernels; the functions on arrays serve everybody else. What b ≤ 0 means is decided here and nowhere else: such
a region has no Q, `has_significance` is False for it, and the functions on arrays refuse it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from qbdt.arrays import Floats
from qbdt.errors import DataError

__all__ = [
    "TanhScan",
    "background_variance",
    "binned_significance",
    "correlated_variance",
    "has_significance",
    "purity",
    "purity_value",
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

LARGEST_LOGARITHM = 709.0
"""Twice exp of it is still a double; a Q beyond is cut there, as exp of more raises an error in plain Python."""


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
    return max(0.0, 2.0 * (math.exp(min(first, LARGEST_LOGARITHM)) - math.exp(min(second, LARGEST_LOGARITHM))))


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
    t = c * u  # at most FAR_RATIO
    second = math.log1p(t) / t if t > 0.0 else 1.0
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
def _fill_significance(s: Floats, b: Floats, v: Floats) -> Floats:
    out = np.empty(s.size)
    for i in range(s.size):
        out[i] = significance_value(s[i], b[i], v[i])
    return out


def significance(s: ArrayLike, b: ArrayLike, sigma2: ArrayLike = 0.0) -> Floats:
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


def background_variance(b: ArrayLike, deltas: ArrayLike, mc_variance: ArrayLike = 0.0) -> Floats:
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


def purity(s: ArrayLike, b: ArrayLike, sigma2: ArrayLike = 0.0) -> Floats:
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


def _require_positive(background: Floats) -> None:
    if np.any(~(background > 0)):
        raise DataError(f"b={background.min()}: Q is defined for a positive background only")
