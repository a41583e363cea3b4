"""The figures of the gallery and of the pages: those of the report of one small run, which is kept in out/gallery."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from qbdt.analysis import diagnose_run, read_analysis, run_analysis, run_document
from qbdt.data.samples import write_bundled_ntuples
from qbdt.errors import ConfigError
from qbdt.report.style import styled

__all__ = ["draw_gallery"]

ANALYSIS = Path(__file__).with_name("gallery.yaml")
RUN = Path("out/gallery")

SHOWN = {
    "prefit": ("prefit", 0),
    "postfit": ("postfit", 0),
    "scan": ("scan", 0),
    "ranking": ("ranking", 0),
    "pulls": ("pulls", 0),
    "correlation": ("correlation", 0),
    "envelope": ("envelope-", 3),
    "roc": ("roc", 0),
    "train-and-test": ("train-and-test", 0),
    "variable": ("variable-", 5),
    "tree": ("first-tree", 0),
    "features": ("features", 0),
    "source-map": ("source-map", 0),
}
"""Pictures by name: how the figure's name in the report begins, and which of those it is."""

DPI, COLOURS = 130, 128


def draw_gallery(images: Path) -> list[Path]:
    """Run the analysis where it was not run before, and save the figures of its report as pictures."""
    analysis = read_analysis(ANALYSIS)
    if not (RUN / "data").exists():
        write_bundled_ntuples(RUN / "data")
    try:
        run_analysis(analysis, RUN, RUN / "run", figures=False)
    except ConfigError:  # of an earlier analysis file, or of other settings of the code
        run_analysis(analysis, RUN, RUN / "run", figures=False, force=True)
    diagnose_run(RUN / "run", RUN, sizes=False, repeats=2, force=True)
    return _save_figures(images)


def _save_figures(images: Path) -> list[Path]:
    figures = list(run_document(RUN / "run", RUN).figures())
    found = []
    for picture, (start, number) in SHOWN.items():
        drawn = [figure.drawn for figure in figures if figure.name.startswith(start)][number]
        found.append(_save(drawn, images / f"gallery-{picture}.png"))
    return found


def _save(drawn: Any, path: Path) -> Path:
    """A picture of few colours: a quarter of the size, and the eye sees no difference."""
    from PIL import Image

    content = io.BytesIO()
    with styled():
        drawn.savefig(content, format="png", dpi=DPI, facecolor="white")
    Image.open(content).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    return path
