"""The picture of `qbdt compare` on CMS Open Data: results of `make compare-cms`, kept beside this file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qbdt.studies.comparison import Comparison, draw_comparison

__all__ = ["CMS_RESULTS", "draw_cms_comparison"]

CMS_RESULTS = Path(__file__).with_name("cms-comparison.json")


def draw_cms_comparison() -> Any:
    """Draw the figure as the report of the command has it."""
    return draw_comparison(Comparison.from_dict(json.loads(CMS_RESULTS.read_text(encoding="utf-8"))))
