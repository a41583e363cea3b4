"""One look for all figures: mplhep's style, sizes, colours, and how a figure is made and saved without global state."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from qbdt.files import make_folder, replace_file

__all__ = ["COLOURS", "DOWN", "SIGNAL", "UP", "figure", "save", "styled"]

COLOURS = ("#3f90da", "#ffa90e", "#832db6", "#94a4a2", "#a96b59", "#92dadd", "#b9ac70", "#717581", "#e76300")
"""Fill colours of processes: Petroff's accessible palette of ten, without its red, which is the signal's."""

SIGNAL = "#e42536"
UP, DOWN = "#1f4e9c", "#c3341f"
"""Up and down variations: blue dashed and red dotted, as in the paper's envelope plots."""

NOTEBOOK_DPI = 80

_SETTINGS: dict[Any, Any] = {
    "font.size": 12,
    "axes.labelsize": 13,
    "axes.titlesize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 10.5,
    "legend.frameon": False,
    "axes.linewidth": 1.2,
    "axes.unicode_minus": True,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "xtick.major.size": 6,
    "xtick.minor.size": 3,
    "ytick.major.size": 6,
    "ytick.minor.size": 3,
    "xaxis.labellocation": "right",
    "yaxis.labellocation": "top",
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "savefig.bbox": None,
}


@contextmanager
def styled() -> Iterator[None]:
    """Apply the style to figures that are drawn or saved inside, and to no others."""
    import matplotlib as mpl
    import matplotlib.style
    import mplhep

    base = {key: value for key, value in mplhep.style.ROOT.items() if key in mpl.rcParams}
    # "default" is what matplotlib comes with: a matplotlibrc may say anything, such as text.usetex
    with mpl.style.context("default"), mpl.rc_context({**base, **_SETTINGS}):
        yield


def figure(width: float, height: float, **subplots: Any) -> tuple[Any, Any]:
    """Make a figure of a size in inches and its axes, without pyplot; call within `styled`. Notebooks draw it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    made = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    FigureCanvasAgg(made)
    made._repr_png_ = partial(_png, made)  # type: ignore[attr-defined]  # what notebooks ask for
    made.savefig = partial(_savefig, made)  # type: ignore[method-assign]  # fonts of formulas are chosen when it draws
    return made, made.subplots(**subplots)


def _savefig(drawn: Any, *given: Any, **options: Any) -> None:
    """Save a figure in its style, also where a user saves it."""
    import matplotlib as mpl
    import mplhep

    applied = mpl.rcParams["mathtext.cal"] == mplhep.style.ROOT["mathtext.cal"]
    with nullcontext() if applied else styled():
        type(drawn).savefig(drawn, *given, **options)


def _png(drawn: Any) -> bytes:
    content = io.BytesIO()
    with styled():
        drawn.savefig(content, format="png", dpi=NOTEBOOK_DPI)
    return content.getvalue()


def save(drawn: Any, path: Path | str) -> Path:
    """Save a figure, whole or not at all; the suffix chooses the format (png, pdf, svg).

    The same figure gives the same bytes.
    """
    import matplotlib as mpl

    target = Path(path)
    make_folder(target.parent)
    dates = {".svg": {"Date": None, "Creator": None}, ".pdf": {"CreationDate": None}}
    content = io.BytesIO()  # Matplotlib's own writer of PDF fails with an error of its own where a disk is full
    with styled(), mpl.rc_context({"svg.hashsalt": target.name}):
        drawn.savefig(content, format=target.suffix[1:] or "png", metadata=dates.get(target.suffix))
    with replace_file(target) as scratch:
        scratch.write_bytes(content.getvalue())
    return target
