"""Families of weights: their members, and the relative shifts of an event's weight that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data.expressions import Expression
from qbdt.errors import DataError

ONE_SIGMA = 0.6826894921370859
"""Probability within one standard deviation."""


UNIT = Expression("1")
"""The nominal weight is that of the central member."""


class FamilyKind(StrEnum):
    """How members make an uncertainty: standard deviation, sum of squares over eigenvectors, or extremes."""

    REPLICAS = "replicas"
    HESSIAN = "hessian"
    ENVELOPE = "envelope"


@dataclass(frozen=True)
class WeightFamily:
    """Members of a family and how they make an uncertainty, as LHAPDF defines it.

    Examples
    --------
    >>> family = WeightFamily("pdf", FamilyKind.REPLICAS, Expression("pdf"))
    >>> family.shifts(np.array([[0.9, 1.1]]), np.ones(1)).round(3)
    array([[-0.1,  0.1]])
    """

    name: str  # Name of the source
    # replicas: standard deviation around their mean, with n − 1. hessian: root of the sum of squares over eigenvectors,
    # of member − central where `symmetric`, otherwise of half the difference of pairs (plus, minus). envelope: largest
    # and smallest member of each event.
    kind: FamilyKind
    weights: Expression  # Expression for the list of factors on the nominal weight
    members: tuple[int, int] | None = None  # First and last member in that list that count, from 0; all if not given
    central: Expression = UNIT  # Factor of the central member, which symmetric eigenvectors are compared with
    symmetric: bool = True  # Whether each eigenvector has one member
    confidence: float = ONE_SIGMA  # Confidence level of the eigenvectors: 0.90 for the CT sets
    keep: float = 0.99  # Share of the mean squared shift, of every process, that the principal components keep
    most: int | None = None  # Number of components, at most

    def choose_members(self, factors: NDArray[Any], label: str) -> NDArray[Any]:
        """Members that count, of rows × all members."""
        n_members = factors.shape[1]
        first, last = self.members or (0, n_members - 1)
        if last >= n_members:
            raise DataError(f"{label}: {self.name}: members {first} to {last}, but there are {n_members} weights")
        chosen = factors[:, first : last + 1]
        least = 1 if self.kind is FamilyKind.HESSIAN and self.symmetric else 2
        if chosen.shape[1] < least:
            raise DataError(f"{label}: {self.name}: {chosen.shape[1]} weights; {self.kind} needs at least {least}")
        if self.kind is FamilyKind.HESSIAN and not self.symmetric and chosen.shape[1] % 2:
            raise DataError(f"{label}: {self.name}: {chosen.shape[1]} weights do not make pairs of plus and minus")
        return chosen

    def shifts(self, factors: NDArray[Any], central: Floats) -> Floats:
        """Relative shifts d of rows × directions; the squares of what they do to a yield add up to its variance."""
        values = np.asarray(factors, dtype=np.float64)
        match self.kind:
            case FamilyKind.REPLICAS:
                mean = values.mean(axis=1, keepdims=True)
                return np.asarray((values - mean) / np.sqrt(values.shape[1] - 1))
            case FamilyKind.HESSIAN if self.symmetric:
                return (values - np.reshape(central, (-1, 1))) * self._to_one_sigma
            case FamilyKind.HESSIAN:
                return (values[:, 0::2] - values[:, 1::2]) / 2 * self._to_one_sigma
            case FamilyKind.ENVELOPE:
                return np.stack([values.max(axis=1), values.min(axis=1)], axis=1) - 1

    @property
    def _to_one_sigma(self) -> float:
        from scipy.stats import norm

        return float(norm.ppf((1 + ONE_SIGMA) / 2) / norm.ppf((1 + self.confidence) / 2))

    def read_members(self, columns: Mapping[str, Any], n_rows: int, what: str) -> tuple[NDArray[Any], Floats]:
        """Evaluate the factors of all members, as rows × members, and those of the central one."""
        factors = _stack_members(self.weights.evaluate(columns), what)
        central = np.broadcast_to(np.asarray(self.central.evaluate(columns), dtype=np.float64), (n_rows,))
        bad = np.flatnonzero(~np.isfinite(factors).all(axis=1) | ~np.isfinite(central))
        if bad.size:
            raise DataError(
                f"{what}: {bad.size} events have weights that are not finite, first selected event {bad[0]}"
            )
        return factors, central


def _stack_members(values: Any, what: str) -> NDArray[Any]:
    """Lists of weights, which must be equally long, as rows × members."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return values
    if getattr(values, "ndim", 0) != 2:
        raise DataError(f"{what} has one value per event: a family has a list of weights")
    import awkward as ak

    lengths = ak.to_numpy(ak.num(values, axis=1))
    odd = np.flatnonzero(lengths != lengths[0]) if lengths.size else lengths
    if odd.size:
        raise DataError(f"{what}: event {odd[0]} has {lengths[odd[0]]} weights, event 0 has {lengths[0]}")
    flat = np.asarray(ak.to_numpy(ak.flatten(values, axis=1)))
    return flat.reshape(len(lengths), int(lengths[0]) if lengths.size else 0)
