"""Names under `training` and `fit` that say what is measured: refused where an analysis has nothing of that name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from qbdt.errors import find_repeated, hint_at
from qbdt.training import STRENGTH


def require_strengths(strengths: Mapping[str, Sequence[str]], signals: Sequence[str], sources: Iterable[str]) -> None:
    """Refuse strengths of processes that are no signals, and signals without a strength or with two.

    Examples
    --------
    >>> require_strengths({"mu_ggH": ["ggH"], "mu_VBF": ["VBF"]}, ["ggH", "VBF"], ["tes"])
    """
    if not strengths:
        return
    assigned = [process for processes in strengths.values() for process in processes]
    require_known("training.strengths", assigned, signals, "signal process")
    for process in signals:
        if assigned.count(process) != 1:
            times = "no strength" if process not in assigned else "more than one strength"
            raise ValueError(f"training.strengths: signal process {process} has {times}; each needs one")
    if both := [name for name in strengths if name in set(sources)]:
        raise ValueError(f"training.strengths: {both[0]} is a source too")


def require_free_name(strengths: Iterable[str], sources: Iterable[str]) -> None:
    """Refuse a source that is called like the signal strength that is trained where none is named."""
    if not tuple(strengths) and STRENGTH in sources:
        raise ValueError(
            f"systematics.{STRENGTH}: the signal strength of the training is called so: rename the source, or the "
            "strength (training.strengths: {another name: all signals})"
        )


def require_interest(of_interest: Sequence[str], strengths: Iterable[str], sources: Iterable[str]) -> None:
    """Refuse parameters of interest that are neither a strength nor a source, or named twice."""
    known = [*(tuple(strengths) or (STRENGTH,)), *sources]
    require_known("training.of_interest", [name.partition("#")[0] for name in of_interest], known, "strength or source")
    if twice := find_repeated(of_interest):
        raise ValueError(f"training.of_interest: {twice[0]} is given twice")


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


def require_known(key: str, names: Iterable[str], known: Sequence[str], what: str) -> None:
    """Refuse names that are not known, with a hint."""
    for name in names:
        if name not in known:
            raise ValueError(f"{key}: no {what} {name}; {hint_at(name, known)}")
