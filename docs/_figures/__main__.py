"""Draw the figures of README and pages: `python -m docs._figures [NAME …]`, all of them without names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from docs._figures.comparison import draw_cms_comparison
from docs._figures.efficient_score import draw_efficient_score
from docs._figures.gallery import draw_gallery
from docs._figures.notebook import write_notebook_page
from docs._figures.sample_size import draw_sample_size
from docs._figures.summary import draw_summary
from docs._figures.summary_table import write_summary_table

from qbdt.report.style import save

IMAGES = Path(__file__).parents[1] / "images"

FIGURES: dict[str, Callable[[], Any]] = {
    "compare-cms": draw_cms_comparison,
    "efficient-score": draw_efficient_score,
    "sample-size": draw_sample_size,
    "summary": draw_summary,
    "summary-narrow": partial(draw_summary, narrow=True),
}


def main(names: list[str]) -> None:
    """Make what is named: figures, the table that leads the page of results, pictures of a run, the notebook's page."""
    for name in names or ["table", *FIGURES, "gallery", "notebook"]:
        match name:
            case "table":
                write_summary_table()
            case "notebook":
                print(write_notebook_page(IMAGES))
            case "gallery":
                print(*draw_gallery(IMAGES), sep="\n")
            case _:
                print(save(FIGURES[name](), IMAGES / f"{name}.svg"))


if __name__ == "__main__":
    main(sys.argv[1:])
