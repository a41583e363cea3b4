"""Draw the figures of README and pages: `python -m docs._figures [NAME …]`, all of them without names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from docs._figures.summary import draw_summary
from docs._figures.summary_table import write_summary_table

from qbdt.report.style import save

IMAGES = Path(__file__).parents[1] / "images"

FIGURES: dict[str, Callable[[], Any]] = {
    "summary": draw_summary,
    "summary-narrow": partial(draw_summary, narrow=True),
}


def main(names: list[str]) -> None:
    """Make what is named: figures, and `table`, the one that leads the page of results."""
    for name in names or ["table", *FIGURES]:
        if name == "table":
            write_summary_table()
        else:
            print(save(FIGURES[name](), IMAGES / f"{name}.svg"))


if __name__ == "__main__":
    main(sys.argv[1:])
