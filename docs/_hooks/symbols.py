"""Symbols with an index, σ_μ in the text of a page, get subscripts; code and formulas stay as they are."""

from __future__ import annotations

import re
from typing import Any

from qbdt.report.html import typeset

KEPT = re.compile(r"(<(code|pre|math|svg|script|style)\b.*?</\2>|<[^>]+>)", re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Typeset what stands between tags."""
    found, end = [], 0
    for match in KEPT.finditer(content):
        found += [typeset(content[end : match.start()]), match[0]]
        end = match.end()
    return "".join((*found, typeset(content[end:])))
