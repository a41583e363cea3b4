"""`Partner`: what other regions, channels and measurements know of the parameters that a score is trained for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.errors import ConfigError, find_repeated
from qbdt.files import choose_words

STRENGTH = "mu"
"""Name of the strength of all signals together, where no other is given."""

ASYMMETRY = 1e-6
"""Largest relative asymmetry, and negative eigenvalue, that passes for rounding."""


@dataclass(frozen=True)
class Partner:
    """Expected information of everything that is fitted beside the trained region.

    It enters a training as J of docs/profiled-method.md: nuisance parameters that others measure well cost less, so the
    score spends its power elsewhere, and the expected σ is that of the combined fit. `read_partner` of
    `qbdt.inference.partners` makes one of a control region's templates or of a pyhf workspace.

    Parameters
    ----------
    names
        Parameters: strengths ("mu" for that of all signals) and sources. Those that the training does not have are
        profiled.
    information
        Second derivatives of −ln L of the counts alone, without constraint terms, per standard deviation of a source.
    priors
        Precision of the constraint of each parameter: 1 for a source, 0 for a free parameter; all 1 but for "mu" if not
        given.

    Examples
    --------
    A control region that measures the source "tes" to ¼ of its prior uncertainty, 1/(1 + 15) = ¼²:

    >>> Partner(["tes"], [[15.0]]).about(["mu", "tes"])
    array([[ 0.,  0.],
           [ 0., 15.]])
    """

    names: Sequence[str]
    information: Sequence[Sequence[float]]
    priors: Sequence[float] = ()

    def __post_init__(self) -> None:
        names = _read_names(self.names)
        matrix = _read_numbers(self.information, (len(names), len(names)), "information")
        given = self.priors if len(self.priors) else [float(name != STRENGTH) for name in names]
        priors = _read_numbers(given, (len(names),), "priors")
        _require_positive(matrix, names)
        if np.any(priors < 0):
            raise ConfigError(f"partner: priors={priors.tolist()}: a precision is not negative")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "information", tuple(map(tuple, matrix.tolist())))
        object.__setattr__(self, "priors", tuple(priors.tolist()))

    def about(self, names: Sequence[str]) -> Floats:
        """Information about some parameters, all others profiled; zeros for those that it does not know.

        Constraints of these parameters are left out: who asks has them already.
        """
        matrix, priors = np.array(self.information), np.array(self.priors)
        shared = [i for i, name in enumerate(self.names) if name in names]
        other = [i for i, name in enumerate(self.names) if name not in names and matrix[i, i] > 0]
        # Schur complement: J_ab − J_ao (J_oo + priors)⁻¹ J_ob, over the private parameters o.
        mixed = matrix[np.ix_(other, shared)]
        private = matrix[np.ix_(other, other)] + np.diag(priors[other])
        profiled = matrix[np.ix_(shared, shared)] - mixed.T @ np.linalg.pinv(private, hermitian=True) @ mixed
        found = np.zeros((len(names), len(names)))
        place = [list(names).index(self.names[i]) for i in shared]
        found[np.ix_(place, place)] = (profiled + profiled.T) / 2
        return found

    @staticmethod
    def name_free(process: str) -> str:
        """Name of the free normalisation of a background, as `qbdt.inference.Measurement` has it."""
        return f"norm_{choose_words([process])[0]}"

    def require_common(self, names: Iterable[str]) -> None:
        """Refuse a partner that knows none of the parameters of a training: their names must be the same."""
        known = list(names)
        if not set(known) & set(self.names):
            raise ConfigError(
                f"partner: none of its parameters {_shorten(self.names)} is one of the training: {_shorten(known)}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Partner:
        """Inverse of `to_dict`."""
        try:
            return cls(plain["names"], plain["information"], plain["priors"])
        except (KeyError, TypeError) as error:
            raise ConfigError(f"partner: names, information and priors are needed ({error})") from error

    def __str__(self) -> str:
        return f"information about {_shorten(self.names)}"


def _read_names(given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(name, str) for name in given) or not len(given):
        raise ConfigError(f"partner: names={given!r}: a list of names of parameters is needed")
    if twice := find_repeated(given):
        raise ConfigError(f"partner: names: {', '.join(twice)} is given twice")
    return tuple(given)


def _read_numbers(given: Any, shape: tuple[int, ...], what: str) -> Floats:
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"partner: {what}={given!r}: numbers are needed") from None
    if values.shape != shape or not np.isfinite(values).all():
        raise ConfigError(f"partner: {what} has shape {values.shape}: finite numbers of shape {shape} are needed")
    return values


def _require_positive(matrix: Floats, names: Sequence[str]) -> None:
    """Refuse a matrix that no likelihood has as its expected second derivatives."""
    size = np.sqrt(np.abs(np.diag(matrix)))
    unit = matrix / np.maximum(np.outer(size, size), 1e-300)
    if np.abs(unit - unit.T).max() > ASYMMETRY:
        raise ConfigError("partner: information is not symmetric")
    if (lowest := np.linalg.eigvalsh((unit + unit.T) / 2).min()) < -ASYMMETRY * len(names):
        raise ConfigError(f"partner: information has the negative eigenvalue {lowest:.2g}: it is no Fisher information")


def _shorten(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")
