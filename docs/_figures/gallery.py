"""The figures of the gallery and of the pages: those of the report of one small run, which is kept in out/gallery."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from qbdt.analysis import diagnose_run, read_analysis, run_analysis, run_document
from qbdt.data.samples import write_bundled_ntuples
from qbdt.errors import OutputError
from qbdt.report.style import styled

__all__ = ["draw_gallery"]

ANALYSIS = Path(__file__).with_name("gallery.yaml")
RUN = Path("out/gallery")

SHOWN = {
    "prefit": "prefit",
    "postfit": "postfit",
    "scan": "scan",
    "ranking": "ranking",
    "pulls": "pulls",
    "correlation": "correlation",
    "envelope-3": "envelope",
    "roc": "roc",
    "train-and-test": "train-and-test",
    "variable-5": "variable",
    "first-tree": "tree",
    "features": "features",
    "source-map": "source-map",
}
"""Figures of a report by their name there, and the name of the picture."""

DPI, COLOURS = 130, 128


def draw_gallery(images: Path) -> list[Path]:
    """Run the analysis where it was not run before, and save the figures of its report as pictures."""
    analysis = read_analysis(ANALYSIS)
    if not (RUN / "data").exists():
        write_bundled_ntuples(RUN / "data")
    run_analysis(analysis, RUN, RUN / "run", figures=False)
    try:
        diagnose_run(RUN / "run", RUN, sizes=False, repeats=2)
    except OutputError:
        print(f"{RUN}: diagnosed before")
    drawn = {figure.name: figure.drawn for figure in run_document(RUN / "run", RUN).figures()}
    return [_save(drawn[name], images / f"gallery-{picture}.png") for name, picture in SHOWN.items()]


def _save(drawn: Any, path: Path) -> Path:
    """A picture of few colours: a quarter of the size, and the eye sees no difference."""
    from PIL import Image

    content = io.BytesIO()
    with styled():
        drawn.savefig(content, format="png", dpi=DPI, facecolor="white")
    Image.open(content).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    return path
