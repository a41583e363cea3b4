"""Principal components of a family: how many are kept, what they keep, and the columns that are stored for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data.families.weight_family import FamilyKind, WeightFamily
from qbdt.data.systematic import Systematic
from qbdt.errors import DataError
from qbdt.tables import Table

BASIS_ROWS = 20_000
"""Selected events of each process, about, on which principal components are found: more change nothing that is seen."""

BLOCK = 8_192
"""Rows that are rotated at a time, so that what is computed on the way stays small."""

ROUNDING = 1e-12
"""Share of a family's effect that rounding makes: components beyond all of it are none."""

IDLE = 1e-12
"""Mean squared shift of a process below which a family does not vary."""


class FamilyRows(NamedTuple):
    """Some events of a process: their weights, and their relative shifts as rows × directions."""

    weight: NDArray[np.floating[Any]]
    shifts: NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class FamilyBasis:
    """Principal components of a family that are kept."""

    family: WeightFamily  # The family
    n_weights: int  # Length of the list of weights of every event
    # Directions × components; None for an envelope, which has its two sides instead
    rotation: Floats | None
    kept: Mapping[str, float]  # Share of the mean squared shift that is kept, by process
    size: Mapping[str, float]  # Root of the mean squared shift, by process

    @property
    def n_components(self) -> int:
        """Number of sources that the family becomes."""
        return 1 if self.rotation is None else self.rotation.shape[1]

    @property
    def n_columns(self) -> int:
        """Numbers that are kept for each event: one for each component, two for an envelope."""
        return 2 if self.rotation is None else self.n_components

    def describe(self) -> str:
        """Describe the components of the family in one sentence."""
        if not self.kept:
            return f"{self.family.name}: {self.n_weights} weights that do not vary"
        sources = f"{self.n_components} source{'s' * (self.n_components > 1)}"
        share = "" if self.rotation is None else f", which keep {min(self.kept.values()):.1%} of the effect or more"
        return f"{self.family.name}: {self.n_weights} weights as {sources}{share}"

    def to_dict(self) -> dict[str, Any]:
        """Sizes and components of the family as plain data."""
        found = {"kind": str(self.family.kind), "weights": self.n_weights, "sources": self.n_components}
        return {**found, "kept": dict(self.kept), "mean_shift": dict(self.size)}

    def project(self, factors: NDArray[Any], central: Floats, label: str) -> NDArray[np.float32]:
        """Relative shifts of rows by each component, or the two sides of an envelope, as rows × columns."""
        out = np.empty((len(factors), self.n_columns), dtype=np.float32, order="F")
        if not len(factors):
            return out
        _require_length(self.family, factors, self.n_weights, label)
        chosen = self.family.choose_members(factors, label)
        for start in range(0, len(chosen), BLOCK):
            rows = slice(start, start + BLOCK)
            shifts = self.family.shifts(chosen[rows], central[rows])
            out[rows] = shifts if self.rotation is None else shifts @ self.rotation
        return out


class FamilySampler:
    """Shifts of all directions of a family, for some events, before its components are known."""

    def __init__(self, family: WeightFamily) -> None:
        self.family = family
        self.n_weights = 0

    def project(self, factors: NDArray[Any], central: Floats, label: str) -> NDArray[np.float32]:
        """Relative shifts of rows by each direction."""
        if not len(factors):
            return np.empty((0, 0), dtype=np.float32)
        self.n_weights = self.n_weights or factors.shape[1]
        _require_length(self.family, factors, self.n_weights, label)
        return self.family.shifts(self.family.choose_members(factors, label), central).astype(np.float32)


def _require_length(family: WeightFamily, factors: NDArray[Any], n_weights: int, label: str) -> None:
    if factors.shape[1] != n_weights:
        raise DataError(
            f"{label}: {family.name} has {factors.shape[1]} weights per event, {n_weights} in files read before"
        )


def find_basis(family: WeightFamily, n_weights: int, rows: Mapping[str, FamilyRows]) -> FamilyBasis:
    """Find the principal components that keep the wanted share of a family's effect on every process.

    `n_weights` is the length of the list of weights of an event, `rows` are some events of each process.
    """
    # G_p = Σ|w| d dᵀ / Σ|w|: mean products of the shifts of an expected event. Each process counts equally in the sum
    # whose eigenvectors are the components: a small signal is not lost beside a large background.
    products = {process: _mean_products(one) for process, one in rows.items()}
    size = {process: float(np.sqrt(max(np.trace(g), 0.0))) for process, g in products.items()}
    if family.kind is FamilyKind.ENVELOPE:
        return FamilyBasis(family, n_weights, None, dict.fromkeys(rows, 1.0), size)
    varied = {process: g / np.trace(g) for process, g in products.items() if np.trace(g) > IDLE}
    if not varied:
        return FamilyBasis(family, n_weights, np.eye(products[next(iter(rows))].shape[0], 1), {}, size)
    _, vectors = np.linalg.eigh(np.sum(list(varied.values()), axis=0))
    vectors = vectors[:, ::-1]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    explained = {p: np.cumsum(np.einsum("ik,ij,jk->k", vectors, g, vectors)) for p, g in varied.items()}
    wanted = min(family.keep, 1 - ROUNDING)
    enough = max(int(np.searchsorted(share, wanted)) + 1 for share in explained.values())
    n_components = min(enough, vectors.shape[1], family.most or enough)
    kept = {process: min(float(share[n_components - 1]), 1.0) for process, share in explained.items()}
    return FamilyBasis(family, n_weights, np.ascontiguousarray(vectors[:, :n_components]), kept, size)


def _mean_products(rows: FamilyRows) -> Floats:
    weight = np.abs(rows.weight)
    total = float(weight.sum())
    products = (rows.shifts * weight[:, None]).T @ rows.shifts
    return np.asarray(products / (total if total > 0 else 1.0), dtype=np.float64)


def find_bases(
    samplers: Mapping[str, FamilySampler], eras: Sequence[Mapping[str, Mapping[str, FamilyRows]]]
) -> dict[str, FamilyBasis]:
    """Find the components of several families, on events of all eras: process to family to rows."""
    bases = {}
    for name, sampler in samplers.items():
        processes = dict.fromkeys(process for era in eras for process, found in era.items() if name in found)
        rows = {p: _join([era[p][name] for era in eras if name in era.get(p, {})]) for p in processes}
        if not rows:
            raise DataError(f"systematics.{name}: no event of its processes is selected")
        bases[name] = find_basis(sampler.family, sampler.n_weights, rows)
    return bases


def _join(rows: Sequence[FamilyRows]) -> FamilyRows:
    return FamilyRows(np.concatenate([one.weight for one in rows]), np.concatenate([one.shifts for one in rows]))


def make_sources(name: str, basis: FamilyBasis, columns: Mapping[str, Sequence[Floats]]) -> list[Systematic]:
    """Make sources of the stored columns of each process: one per component, or one for an envelope."""
    if basis.rotation is None:
        up, down = ({process: sides[k] for process, sides in columns.items()} for k in (0, 1))
        return [Systematic.rescaling(name, up, down)]
    return [
        Systematic.rescaling(Systematic.name_component(name, k + 1), {process: c[k] for process, c in columns.items()})
        for k in range(basis.n_components)
    ]


def make_families_table(bases: Mapping[str, FamilyBasis]) -> Table:
    """Table of the components of each family; no rows where there are none."""
    header = ("family", "kind", "weights", "process", "mean shift", "sources", "kept")
    rows = tuple(
        (
            name,
            str(b.family.kind),
            str(b.n_weights),
            process,
            f"{size:.2%}",
            str(b.n_components),
            _say_kept(b, process),
        )
        for name, b in bases.items()
        for process, size in b.size.items()
    )
    return Table("Families of weights", header, rows)


def _say_kept(basis: FamilyBasis, process: str) -> str:
    return f"{basis.kept[process]:.2%}" if process in basis.kept else "does not vary"
