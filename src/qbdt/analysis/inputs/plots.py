"""From an analysis to a folder of figures of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qbdt.analysis.blinding import open_data
from qbdt.analysis.inputs.inputs_page import inputs_document
from qbdt.analysis.schema import Analysis
from qbdt.errors import ConfigError, OutputError
from qbdt.files import require_folder
from qbdt.progress import Progress, silent
from qbdt.report import PAGE, write_report
from qbdt.report.style import save

FORMATS = ("png", "pdf", "svg")


def plot_inputs(
    analysis: Analysis,
    folder: str | Path,
    out: str | Path,
    *,
    variables: Sequence[str] = (),
    formats: Sequence[str] = (),
    every_source: bool = False,
    unblind: bool = False,
    force: bool = False,
    progress: Progress = silent,
) -> Path:
    """Draw the inputs of an analysis into a folder: a page that needs nothing else, notes in Markdown, and all figures.

    Parameters
    ----------
    out
        Folder to write to; made if it is not there. Figures are in `figures/` as SVG, all of them in `figures.pdf`.
    variables, every_source
        As for `inputs_document`.
    formats
        png or pdf: write each figure in these formats too.
    unblind
        Show all recorded data.
    force
        Replace an earlier page.

    Returns
    -------
    Path
        The page.
    """
    if unknown := [name for name in formats if name not in FORMATS]:
        raise ConfigError(f"formats: {unknown[0]!r}: must be {', '.join(FORMATS)}")
    if not force and (Path(out) / PAGE).exists():
        raise OutputError(f"{Path(out) / PAGE} is there already; force=True replaces it")
    if Path(out).is_file():
        raise OutputError(f"{out}: a folder is needed, and this is a file")
    require_folder(Path(out), made=True)
    shown = open_data(analysis) if unblind else analysis
    document = inputs_document(shown, folder, variables, progress, every_source=every_source)
    page = write_report(document, Path(out), progress)
    for ending in formats:
        for figure in document.figures():
            save(figure.drawn, Path(out) / "figures" / f"{figure.name}.{ending}")
    return page.resolve()
