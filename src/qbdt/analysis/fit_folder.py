"""A fit of events that have a score, and the folder of a fit, which is replaced all at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qbdt.analysis.blinding import open_data
from qbdt.analysis.input_files import refuse_inputs
from qbdt.analysis.loader import load_regions, require_usable
from qbdt.analysis.region_fit import fit_regions
from qbdt.analysis.schema import Analysis
from qbdt.files import make_folder, replace_folder
from qbdt.inference import FitResult, write_fit
from qbdt.progress import Progress, silent
from qbdt.report import Labels
from qbdt.report.figures import write_figures

OWNED = (
    "fit.json",
    "templates.json",
    "measurement.json",
    "workspace.json",
    "hs3.json",
    "histfactory",
    "combine",
    "figures",
)
"""Files of a fit: an earlier one's are replaced together, other files in the folder stay."""


def fit_scored(
    analysis: Analysis,
    folder: Path | str,
    out: Path | str | None = None,
    *,
    score: str | None = None,
    figures: bool = True,
    unblind: bool = False,
    origin: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> FitResult:
    """Read events that have a score, fit them, and write the results.

    Parameters
    ----------
    out
        Folder for results, workspaces and figures; nothing is written without it.
    score
        Name of the feature that is the score, where it is not the only one.
    unblind
        Whether to show results on recorded data; blind ones otherwise, unless the analysis says `blind: false`.
    origin
        What `fit.json` is to say about where it comes from.
    """
    analysis = open_data(analysis) if unblind else analysis
    refuse_inputs(analysis, Path(folder), [] if out is None else [Path(out) / name for name in OWNED])
    events = load_regions(analysis, folder, progress)
    require_usable(events.every_event(), analysis)
    several = analysis.fit.joins_scores and score is None
    scored = events if several else events.with_score(score)
    result = fit_regions(scored, analysis, progress)
    if out is not None:
        labels = analysis.figure_labels()
        write_fit_folder(result, out, origin, figures=figures, labels=labels, progress=progress)
    return result


def write_fit_folder(
    result: FitResult,
    folder: Path | str,
    source: Mapping[str, Any] | None = None,
    *,
    figures: bool = True,
    labels: Labels | None = None,
    progress: Progress = silent,
) -> None:
    """Write a result (with `source`, as `write_fit`) and its figures to a folder, in place of an earlier one.

    Either all of it is replaced or nothing. Figures write names alone where no labels are given.
    """
    target = Path(folder).resolve()
    make_folder(target.parent)
    with replace_folder(target, OWNED) as scratch:
        write_fit(result, scratch, source)
        if figures:
            write_figures(result, scratch / "figures", labels=labels or Labels(), progress=progress)
