"""All figures of a fit to a folder."""

from __future__ import annotations

from pathlib import Path

from qbdt.inference import FitResult
from qbdt.report.figures.fits import correlation, likelihood_scan, pulls, ranking
from qbdt.report.figures.style import save
from qbdt.report.figures.templates import envelope, stacked

__all__ = ["write_figures"]


def write_figures(result: FitResult, folder: Path | str, suffix: str = "png") -> list[Path]:
    """Draw and save every figure of a fit: templates, scan, and for fits with sources pulls, ranking and envelopes."""
    best, root = result.best, Path(folder)
    figures = {
        "prefit": stacked(result.templates, best, postfit=False),
        "postfit": stacked(result.templates, best, postfit=True),
    }
    if result.scan is not None:
        figures["scan"] = likelihood_scan(result.scan, best)
    if best.sources:
        figures |= {"pulls": pulls(best), "ranking": ranking(best), "correlation": correlation(best)}
    figures |= {f"envelope_{name}": envelope(result.templates, name) for name in result.templates.sources}
    return [save(drawn, root / f"{name}.{suffix}") for name, drawn in figures.items()]
