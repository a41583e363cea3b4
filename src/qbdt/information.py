"""Fisher information of a binned likelihood about the signal strength, with nuisance parameters profiled out.

Flows in: arrays over bins (signal, the shifts of each source, the variance of the bin contents). Flows out: matrices
and the profiled information I* = 1/σ_μ². Pure formulas, shared by templates, their binning and the profiled training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.results import Table

__all__ = ["Expectation", "SourceExpectation", "information_matrix", "profiled_information"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class SourceExpectation:
    """What one source is expected to do to σ_μ.

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
class Expectation:
    """Expected uncertainty of the signal strength, estimated on events that took no part in the estimate's training.

    Attributes
    ----------
    stat
        σ_μ without systematic uncertainties.
    full
        σ_μ of the trained score, with all sources.
    unprofiled
        σ_μ with all sources if events were ordered by s/b alone.
    sources
        Each source by itself.
    """

    stat: float
    full: float
    unprofiled: float
    sources: tuple[SourceExpectation, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def mean(cls, several: Sequence[Expectation]) -> Expectation:
        """Average of the expectations of several trainings with the same sources."""
        sources = [
            SourceExpectation(same[0].name, *np.mean([(s.coefficient, s.cost, s.profiled_cost) for s in same], axis=0))
            for same in zip(*(one.sources for one in several), strict=True)
        ]
        stat, full, unprofiled = np.mean([(one.stat, one.full, one.unprofiled) for one in several], axis=0)
        return cls(float(stat), float(full), float(unprofiled), tuple(sources))

    def to_table(self) -> Table:
        """σ_μ and what each source adds to it, ordered by s/b and by the trained score, for the events trained on."""
        rows = [
            ("no systematics", "", f"{self.stat:.4g}", ""),
            *((s.name, f"{s.coefficient:.2f}", f"{s.cost:.3g}", f"{s.profiled_cost:.3g}") for s in self.sources),
            ("σ_μ, all sources", "", f"{self.unprofiled:.4g}", f"{self.full:.4g}"),
        ]
        header = ("source", "c", "added to σ_μ, ordered by s/b", "by the score")
        return Table("Expected by the training, for its own events, on parts held out", header, tuple(rows))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Expectation:
        """Inverse of `to_dict`."""
        sources = tuple(SourceExpectation(**source) for source in plain["sources"])
        return cls(plain["stat"], plain["full"], plain["unprofiled"], sources)


def information_matrix(signal: ArrayLike, shifts: ArrayLike, variance: ArrayLike) -> FloatArray:
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


def profiled_information(signal: ArrayLike, shifts: ArrayLike, variance: ArrayLike) -> FloatArray:
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
