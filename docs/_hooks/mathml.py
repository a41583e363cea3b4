"""Formulas as MathML, which browsers draw by themselves: no script is loaded and pages work offline."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace every formula that Markdown has set aside."""
    return FORMULA.sub(_drawn, content)


def _drawn(match: re.Match[str]) -> str:
    element, tex = match.groups()
    formula = convert(html.unescape(tex), display="block" if element == "div" else "inline")
    return f'<{element} class="formula">{formula}</{element}>'
