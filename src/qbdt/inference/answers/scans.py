"""Profile likelihood over two parameters: all points of a scan are fitted at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.files.records import read_floats
from qbdt.inference.analytic_likelihood import fit_many
from qbdt.inference.summary import BestFit

LEVELS = {0.68: 2.2957, 0.95: 5.9915}
"""−2 Δln L on the contours of two parameters that contain the truth with these probabilities."""

REACH = 3.0
"""Standard deviations on either side of the best value."""


@dataclass(frozen=True, eq=False)
class PairScan:
    """Profile likelihood of two parameters."""

    parameters: tuple[str, str]  # Names of x and y
    best: tuple[float, float]  # Their best values
    # x, y: values that were tried
    x: Floats
    y: Floats
    rise: Floats  # −2 Δln L, shape (y, x), all other parameters fitted; NaN where no fit is possible
    nominal: tuple[float, float] = (1.0, 1.0)  # Their nominal values: 1 for strengths, 0 for sources

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; `from_dict` reads it back."""
        rise = [[None if np.isnan(r) else r for r in row] for row in self.rise.tolist()]
        axes = {"x": self.x.tolist(), "y": self.y.tolist()}
        plain = {"parameters": list(self.parameters), "best": list(self.best), **axes, "rise": rise}
        return plain if self.nominal == (1.0, 1.0) else {**plain, "nominal": list(self.nominal)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> PairScan:
        """Inverse of `to_dict`."""
        first, second = map(str, plain["parameters"])
        x, y = (read_floats(plain[axis], len(plain[axis])) for axis in ("x", "y"))
        best, nominal = (read_floats(pair, 2).tolist() for pair in (plain["best"], plain.get("nominal", (1.0, 1.0))))
        rise = read_floats(plain["rise"], len(y), len(x))
        return cls((first, second), (best[0], best[1]), x, y, rise, (nominal[0], nominal[1]))


def scan_pair(best: BestFit, parameters: tuple[str, str], points: int = 25) -> PairScan:
    """Profile −2 Δln L over a grid of two parameters, three standard deviations each way."""
    first, second = parameters
    if first == second:
        raise FitError(f"scan of {first} and {second}: two different parameters are needed")
    x, y = (_choose_values(best, name, points) for name in parameters)
    grid = {first: np.tile(x, points), second: np.repeat(y, points)}
    rise = _profile(best, grid).reshape(points, points)
    nominal = (float(replace(best, poi=first).is_strength), float(replace(best, poi=second).is_strength))
    return PairScan((first, second), (best.value(first), best.value(second)), x, y, rise, nominal)


def _choose_values(best: BestFit, parameter: str, points: int) -> Floats:
    likelihood = best.likelihood
    if parameter not in likelihood.names or parameter in best.minimum.fixed:
        raise FitError(f"parameter={parameter!r}: no free parameter of the fit")
    index = likelihood.names.index(parameter)
    error = float(np.sqrt(likelihood.covariance(best.minimum, best.hessian)[index, index]))
    low, high = likelihood.bounds[index]
    value = best.value(parameter)
    return np.linspace(max(value - REACH * error, low), min(value + REACH * error, high), points)


def _profile(best: BestFit, hold: Mapping[str, Floats]) -> Floats:
    """−2 Δln L with parameters held at many values."""
    likelihood = best.analytic
    n = len(next(iter(hold.values())))
    counts = np.repeat(likelihood.data[None], n, axis=0)
    centres = np.repeat(likelihood.constraints.centres[None], n, axis=0)
    fits = fit_many(likelihood, counts, centres, dict(hold), best.minimum.values)
    return np.asarray(fits.twice_nll - best.minimum.twice_nll)
