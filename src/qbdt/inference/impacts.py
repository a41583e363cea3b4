"""Impacts: how far the best signal strength moves when a source, or a group, is held away from its best value.

For a group g, all of it is moved together: by one standard deviation of the group, in the direction that raises μ̂
most. With V the covariance of the fit and c = cov(μ, θ_g) that is δ = c/sqrt(cᵀV_gg⁻¹c), which changes μ̂ by
sqrt(cᵀV_gg⁻¹c) in the Gaussian approximation: the part of σ_μ² that goes away when the group is held. For one source
it is the impact of the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qbdt.arrays import Floats
from qbdt.files.records import read_float

if TYPE_CHECKING:  # which asks for impacts
    from qbdt.inference.summary import BestFit


@dataclass(frozen=True)
class Impact:
    """Change of μ̂ when one source, or a group, is held one standard deviation above or below its best value."""

    source: str  # Name of the nuisance parameter, or of the group
    # up, down: with the post-fit standard deviation
    up: float
    down: float
    # prefit_up, prefit_down: with the standard deviation of the prior
    prefit_up: float
    prefit_down: float


def measure_impacts(best: BestFit, covariance: Floats, refit: bool) -> tuple[Impact, ...]:
    """Impacts of all sources, largest first; from the covariance, or by repeating the fit with each source moved."""
    return _refit_impacts(best, covariance) if refit else _impacts(best, covariance)


def measure_group_impacts(
    best: BestFit, covariance: Floats, groups: Mapping[str, Sequence[str]], refit: bool
) -> tuple[Impact, ...]:
    """Impacts of groups of sources and free normalisations, each moved together, largest first."""
    found = []
    for group, members in groups.items():
        here = [name for name in members if name in best.likelihood.names]  # others move no process
        index = [best.likelihood.names.index(n) for n in here if n not in best.minimum.fixed and n != best.poi]
        if index:
            found.append(_measure_group(best, covariance, group, index, refit))
    return _rank(found)


def _measure_group(best: BestFit, covariance: Floats, group: str, index: list[int], refit: bool) -> Impact:
    shared, own = covariance[best.index, index], covariance[np.ix_(index, index)]
    slope = np.asarray(
        np.linalg.solve(own, shared), dtype=np.float64
    )  # change of μ̂ with each member, the others of the group held
    post, prefit = float(np.sqrt(shared @ slope)), float(np.linalg.norm(slope))
    if not refit or post == 0:
        return Impact(group, post, -post, prefit, -prefit)
    moves = [shared / post, -shared / post, slope / prefit, -slope / prefit]
    return Impact(group, *(_refit_group(best, covariance, index, move) for move in moves))


def _refit_group(best: BestFit, covariance: Floats, index: list[int], move: Floats) -> float:
    """Change of μ̂ when some parameters are held at a distance from their best values."""
    others = covariance[:, index] @ np.linalg.solve(covariance[np.ix_(index, index)], move)
    start = best.minimum.values + others
    hold = {best.likelihood.names[i]: float(start[i]) for i in index}
    return float(best.likelihood.follow(hold, start).values[best.index]) - best.mu


def _refit_impacts(best: BestFit, covariance: Floats) -> tuple[Impact, ...]:
    """Impacts by repeating the fit with each source held: slower than from the covariance, exact for large effects."""

    def change(name: str, distance: float) -> float:
        at = best.value(name) + distance
        moved = best.likelihood.follow({name: at}, best.predict(name, at)).values
        return float(moved[best.index]) - best.mu

    impacts, errors = [], np.sqrt(np.diag(covariance))
    for name in best.likelihood.of_kind("source"):
        if name in best.minimum.fixed:
            impacts.append(Impact(name, 0.0, 0.0, 0.0, 0.0))
            continue
        error = float(errors[best.likelihood.names.index(name)])
        impacts.append(Impact(name, *(change(name, distance) for distance in (error, -error, 1.0, -1.0))))
    return _rank(impacts)


def _impacts(best: BestFit, covariance: Floats) -> tuple[Impact, ...]:
    """Shift of μ̂ per shift of θ in the Gaussian approximation: cov(μ, θ)/var(θ)."""
    impacts = []
    for name in best.likelihood.of_kind("source"):
        index = best.likelihood.names.index(name)
        variance = covariance[index, index]
        slope = float(covariance[best.index, index] / variance) if variance > 0 else 0.0
        post = slope * float(np.sqrt(variance))
        impacts.append(Impact(name, post, -post, slope, -slope))
    return _rank(impacts)


def _rank(impacts: Sequence[Impact]) -> tuple[Impact, ...]:
    return tuple(sorted(impacts, key=lambda i: max(abs(i.up), abs(i.down)), reverse=True))


def describe_impacts(impacts: Sequence[Impact]) -> dict[str, dict[str, float]]:
    """Impacts as plain data; `read_impacts` reads them back."""
    return {i.source: {k: v for k, v in vars(i).items() if k != "source"} for i in impacts}


def read_impacts(plain: Mapping[str, Mapping[str, float]]) -> tuple[Impact, ...]:
    """Inverse of `describe_impacts`."""
    return tuple(Impact(source, **{k: read_float(v) for k, v in values.items()}) for source, values in plain.items())
