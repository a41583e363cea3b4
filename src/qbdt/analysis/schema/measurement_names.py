"""Names under `fit` that say what is measured: refused where they do not fit together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qbdt.errors import find_repeated, hint_at
from qbdt.training import STRENGTH


def require_free_name(strengths: Iterable[str], sources: Iterable[str]) -> None:
    """Refuse a source that is called like the signal strength that is trained where none is named."""
    if not tuple(strengths) and STRENGTH in sources:
        raise ValueError(
            f"systematics.{STRENGTH}: the signal strength of the training is called so: rename the source, or the "
            "strength (training.strengths: {another name: all signals})"
        )


def require_measured(of_interest: Sequence[str], strengths: Iterable[str], sources: Iterable[str]) -> None:
    """Refuse parameters of interest of a fit that are named twice, or that are a strength and a source.

    Examples
    --------
    >>> require_measured(["mass"], ["mu"], ["mass", "tes"])
    """
    if twice := find_repeated(of_interest):
        raise ValueError(f"fit.of_interest: {twice[0]} is given twice")
    for name in set(sources).intersection(strengths, of_interest):
        raise ValueError(f"fit.of_interest: {name} is a source, and a signal strength (poi or parameters): rename one")


def require_figure(figure: str, measured: Iterable[str]) -> None:
    """Refuse a figure of cells that is neither one of two words nor a strength that is measured."""
    known = ("determinant", "sum", *measured)
    if figure not in known:
        raise ValueError(f"fit.figure: {figure!r}: {hint_at(figure, known)}")
