"""Parton densities of the proton on a grid, read once from Pythia and interpolated in numpy.

Owns the table and its interpolation. Pythia's NNPDF2.3 LO set is asked once per grid point; the sampling then needs no
call into C++ per event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats

FLAVOURS = (1, 2, 3, 4, 5, -1, -2, -3, -4, -5, 21)
"""PDG codes of the columns of the table: d, u, s, c, b, their antiparticles, the gluon."""
GLUON = FLAVOURS.index(21)


@dataclass(frozen=True, slots=True)
class PartonDensities:
    """x f(x, Q) of all flavours, bilinear in ln x and ln Q between grid points."""

    # log_x, log_q: evenly spaced grids
    log_x: Floats
    log_q: Floats
    values: Floats  # x f, shape (len(log_q), len(log_x), len(FLAVOURS))

    @classmethod
    def from_pythia(cls, pythia: Any, n_x: int = 300, n_q: int = 40) -> PartonDensities:
        """Tabulate the density of Pythia's beam A for 2·10⁻⁷ < x < 1 and 4 < Q < 6500 GeV."""
        pdf = pythia.getPDFPtr(2212)
        log_x = np.linspace(np.log(2e-7), 0.0, n_x)
        log_q = np.linspace(np.log(4.0), np.log(6500.0), n_q)
        values = np.empty((n_q, n_x, len(FLAVOURS)))
        for i, q in enumerate(np.exp(log_q)):
            for j, x in enumerate(np.exp(log_x[:-1])):
                values[i, j] = [pdf.xf(code, x, q * q) for code in FLAVOURS]
        values[:, -1] = 0.0
        return cls(log_x, log_q, np.maximum(values, 0.0))

    def xf(self, x: Floats, q: Floats) -> Floats:
        """Return x f(x, q) for all `FLAVOURS`, shape (n, len(FLAVOURS)).

        Densities are non-negative by construction; arguments beyond the grid take the value at its edge.
        """
        i, u = _locate(self.log_q, np.log(q))
        j, v = _locate(self.log_x, np.log(x))
        u, v = u[:, None], v[:, None]
        flat = self.values.reshape(-1, len(FLAVOURS))
        corner = i * len(self.log_x) + j
        lower = flat[corner] * (1 - v) + flat[corner + 1] * v
        corner += len(self.log_x)
        upper = flat[corner] * (1 - v) + flat[corner + 1] * v
        return np.asarray(lower * (1 - u) + upper * u)


def _locate(grid: Floats, points: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return the cell of an evenly spaced grid that holds each point, and the position inside it from 0 to 1."""
    position = np.clip((points - grid[0]) / (grid[1] - grid[0]), 0.0, len(grid) - 1.0)
    cell = np.minimum(position.astype(np.intp), len(grid) - 2)
    return cell, position - cell
