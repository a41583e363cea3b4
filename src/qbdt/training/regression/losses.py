"""`Loss`: the three losses of a regression, as boosting needs them.

r = y − f is the residual of a prediction f. A loss ρ(r) has the gradient ψ = dρ/dr, and near its minimum it charges
κ/2 · u² for a displacement u of the prediction, with κ the mean of its curvature.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.errors import ConfigError, DataError, is_number

LOSSES = ("squared", "huber", "quantile")

CORE = 0.2
"""Share of events nearest to the quantile, whose density there is the curvature of the quantile loss: enough that its
error, 1/√(0.2 N), is small, and few enough that the density hardly changes among them."""

SMALLEST_DELTA = 1e-100
"""Smallest `delta`, and one over the largest: squares of sums over it are numbers."""

STEPS = 50
"""Steps to the constant that is best for the Huber loss: each halves the distance, at least, where most are inside."""


@dataclass(frozen=True)
class Loss:
    """A loss by name: r²/2; Huber's, which is linear beyond `delta`; or that of a quantile.

    Examples
    --------
    >>> Loss("huber", delta=1.0).gradient(np.array([0.5, -3.0]))
    array([ 0.5, -1. ])
    >>> Loss("quantile", quantile=0.25).value(np.array([4.0, -4.0]))
    array([1., 3.])
    """

    name: str = "squared"
    delta: float | None = None
    quantile: float = 0.5

    def __post_init__(self) -> None:
        if self.name not in LOSSES:
            raise ConfigError(f"loss={self.name!r}: must be one of {', '.join(LOSSES)}")
        delta = float(self.delta) if self.delta is not None and is_number(self.delta) else 0.0
        is_needed = self.name == "huber" or self.delta is not None
        if is_needed and not SMALLEST_DELTA <= delta <= 1 / SMALLEST_DELTA:
            raise ConfigError(
                f"delta={self.delta!r}: loss='huber' needs the residual beyond which it is linear, a positive number "
                "in units of the target"
            )
        if not (is_number(self.quantile) and 0 < self.quantile < 1):
            raise ConfigError(f"quantile={self.quantile!r}: must be above 0 and below 1")
        object.__setattr__(self, "delta", delta if is_needed else None)
        object.__setattr__(self, "quantile", float(self.quantile))

    def require_weights(self, weight: Floats) -> None:
        """Refuse negative weights where the loss has no minimum with them."""
        if self.name == "quantile" and np.any(weight < 0):
            row = int(np.flatnonzero(weight < 0)[0])
            raise DataError(f"sample_weight[{row}]={weight[row]:g}: loss='quantile' takes no negative weights")

    def value(self, residual: Floats) -> Floats:
        """ρ of each row."""
        size = np.abs(residual)
        match self.name:
            case "huber":
                inside = np.minimum(size, self._delta)
                return np.asarray(inside * (size - inside / 2))
            case "quantile":
                return np.asarray(size * np.where(residual < 0, 1.0 - self.quantile, self.quantile))
        return np.asarray(residual * residual / 2)

    def gradient(self, residual: Floats) -> Floats:
        """ψ = dρ/dr of each row."""
        match self.name:
            case "huber":
                return np.clip(residual, -self._delta, self._delta)
            case "quantile":
                return np.where(residual < 0, self.quantile - 1.0, self.quantile)
        return residual

    def slope(self, residual: Floats) -> Floats:
        """Denominator of each row, such that Σ w ψ/Σ w slope is a step that cannot pass the minimum.

        It is ψ/r for the Huber loss, whose parabola through ψ lies above it; for a quantile it is one, since its leaves
        are filled otherwise (`best_constant`).
        """
        if self.name != "huber":
            return np.ones_like(residual)
        return np.asarray(self._delta / np.maximum(np.abs(residual), self._delta))

    def curvature(self, residual: Floats, weight: Floats) -> float:
        """κ, the mean curvature: one, the share of rows inside `delta`, or the density of residuals at zero."""
        if self.name == "squared":
            return 1.0
        if self.name == "huber":
            return max(float(weight[np.abs(residual) < self._delta].sum() / weight.sum()), CORE)
        near = weighted_quantile(np.abs(residual), weight, CORE) or float(np.abs(residual).max())
        return CORE / (2 * near) if near > 0 else 1.0

    def best_constant(self, target: Floats, weight: Floats) -> float:
        """Constant with the smallest loss."""
        if self.name == "quantile":
            return weighted_quantile(target, weight, self.quantile)
        found = float(weight @ target / weight.sum())
        for _ in range(STEPS if self.name == "huber" else 0):
            residual = target - found
            found += float(weight @ self.gradient(residual) / (weight @ self.slope(residual)))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the model file."""
        return asdict(self)

    @property
    def _delta(self) -> float:
        assert self.delta is not None
        return self.delta


def weighted_quantile(values: Floats, weight: Floats, share: float) -> float:
    """Smallest value up to which at least this share of the weight is.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    order = np.lexsort((weight, values))
    reached = np.cumsum(weight[order])
    return float(values[order[min(np.searchsorted(reached, share * reached[-1]), len(order) - 1)]])
