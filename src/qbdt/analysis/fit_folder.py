"""The folder of a fit: numbers, templates, workspaces and figures, replaced all at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qbdt.files import make_folder, replace_folder
from qbdt.inference import FitResult, write_fit
from qbdt.report import Labels
from qbdt.report.figures import write_figures

__all__ = ["write_fit_folder"]

OWNED = ("fit.json", "templates.json", "measurement.json", "workspace.json", "histfactory", "combine", "figures")
"""What a fit writes: an earlier one's are replaced together, other files in the folder stay."""


def write_fit_folder(
    result: FitResult,
    folder: Path | str,
    source: Mapping[str, Any] | None = None,
    *,
    figures: bool = True,
    labels: Labels | None = None,
) -> None:
    """Write a result and its figures to a folder: all of it takes the place of an earlier one, or none.

    Parameters
    ----------
    result, source
        As for `write_fit`.
    folder
        Where to; made if it is not there.
    figures
        Whether to draw.
    labels
        What figures write; names alone if not given.
    """
    target = Path(folder).resolve()
    make_folder(target.parent)
    with replace_folder(target, OWNED) as scratch:
        write_fit(result, scratch, source)
        if figures:
            write_figures(result, scratch / "figures", labels=labels or Labels())
