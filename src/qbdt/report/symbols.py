"""Symbols with an index, as they are typeset: σ_μ becomes σ with a small μ below."""

from __future__ import annotations

import re

__all__ = ["typeset"]

_SYMBOL = re.compile(
    r"(?<![\w.])(?P<symbol>Δ?[α-ωΔ]|Δ[a-zA-Z]|[A-Za-z](?=_[μθk]))_(?P<index>[μθk]{1,2}|[a-z0-9]{1,4}|sys)(?!\w)"
)
"""A Greek letter with a short index, or any letter with a Greek one or k: no name of a column looks like that."""


def typeset(text: str) -> str:
    """Return text in which symbols have HTML subscripts; the text must be escaped already.

    Examples
    --------
    >>> typeset("σ_μ and Δμ_sys, not tau_id or m_T")
    'σ<sub>μ</sub> and Δμ<sub>sys</sub>, not tau_id or m_T'
    """
    return _SYMBOL.sub(r"\g<symbol><sub>\g<index></sub>", text)
