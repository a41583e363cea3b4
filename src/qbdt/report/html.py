"""A document as one HTML page that needs nothing else: figures, numbers, style and script are inside."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from qbdt.report.document import Code, Document, Figure, Fold, Section, Statement, Text
from qbdt.report.style import styled
from qbdt.tables import Table

_SYMBOL = re.compile(
    r"(?<![\w.])(?P<symbol>Δ?[α-ωΔ]|Δ[a-zA-Z]|[A-Za-z](?=_[μθk]))_(?P<index>[μθk]{1,2}|[a-z0-9]{1,4}|sys)(?!\w)"
)
"""A Greek letter with a short index, or any letter with a Greek one or k: no name of a column looks like that."""


def render_page(document: Document, pictures: Mapping[str, bytes]) -> str:
    """Return the page, with the SVG of each figure by its name; the template engine escapes every name from outside."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["kind"] = _kind
    environment.filters["typeset"] = lambda text: Markup(typeset(str(escape(text))))
    environment.filters["picture"] = lambda figure: _data_url("image/svg+xml", pictures[figure.name])
    environment.filters["csv_link"] = lambda figure: _data_url("text/csv;charset=utf-8", figure.csv().encode())
    environment.filters["hash"] = _hash
    template = environment.from_string(_read_asset("report.html"))
    style, script = (Markup(_read_asset(name)) for name in ("report.css", "report.js"))  # our own files
    return template.render(document=document, style=style, script=script)


def svg(figure: Figure) -> bytes:
    """Return a figure as SVG, the same bytes every time; its layout stays as it is from then on."""
    import matplotlib as mpl

    out = io.BytesIO()
    with styled(), mpl.rc_context({"svg.hashsalt": figure.name, "svg.fonttype": "path", "savefig.facecolor": "white"}):
        figure.drawn.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    figure.drawn.set_layout_engine("none")
    return re.sub(rb' d="[^"]*"', _round_outline, out.getvalue())


def typeset(text: str) -> str:
    """Return text in which symbols have HTML subscripts; the text must be escaped already.

    Examples
    --------
    >>> typeset("σ_μ and Δμ_sys, not tau_id or m_T")
    'σ<sub>μ</sub> and Δμ<sub>sys</sub>, not tau_id or m_T'
    """
    return _SYMBOL.sub(r"\g<symbol><sub>\g<index></sub>", text)


def _hash(text: str) -> str:
    """Hash by which a content-security policy names the only style or script that a browser may use."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _round_outline(path: re.Match[bytes]) -> bytes:
    """Outlines to a hundredth of a point: half the size, and nothing that can be seen."""
    return re.sub(rb"(\.\d\d)\d+", rb"\1", path.group())


def _read_asset(name: str) -> str:
    return files("qbdt.report").joinpath("assets", name).read_text(encoding="utf-8")


def _data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _kind(block: Any) -> str:
    kinds = {
        Text: "text",
        Code: "code",
        Statement: "statement",
        Figure: "figure",
        Table: "table",
        Fold: "fold",
        Section: "section",
    }
    return kinds[type(block)]
