"""Types of the fields of an analysis file: expressions, labels, colours, placeholders."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from qbdt.data import Expression
from qbdt.settings import as_list, one_or_many

DEEPEST = 10
"""Levels of groups in a formula: Matplotlib's parser takes about 40 frames for each, of 1000 that Python has."""

COMMANDS_OF_LEVEL = 3
"""Commands in a row, such as accents, that take as many frames as a level."""

FORMULA_TOKEN = re.compile(r"\\(?:[A-Za-z]+|.)|\S")
"""A command, a character after a backslash, a brace or anything else of a formula."""


def _parse(text: str) -> str:
    Expression(text)
    return text


def _as_numbers(value: Any) -> Any:
    values = as_list(value)
    if isinstance(values, list) and any(isinstance(item, bool) for item in values):
        raise ValueError("numbers are needed, not true or false")
    return values


def as_text(value: Any) -> Any:
    """Write a number as text; anything else stays."""
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _drawable(text: str) -> str:
    """Refuse a label whose formulas Matplotlib cannot draw."""
    if "$" in text:
        from matplotlib.mathtext import MathTextParser

        if _is_nested_deeper(text, DEEPEST):
            raise ValueError(f"{text[:40]!r} cannot be drawn: its formula is nested more than {DEEPEST} deep")
        try:
            MathTextParser("path").parse(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{text!r} cannot be drawn: {str(error).splitlines()[-1]}") from None
    return text


def _is_nested_deeper(text: str, deepest: int) -> bool:
    """Whether groups and commands stand in each other too deeply, however much of Python's stack is left."""
    commands = [0]  # in a row, by the groups that are open: accents need no braces to stand in each other
    for token in FORMULA_TOKEN.findall(text):
        if token in ("{", r"\left"):
            commands.append(0)
        elif token in ("}", r"\right"):
            commands[-2:] = [0]
        elif token.startswith("\\"):
            commands[-1] += 1
        else:
            commands[-1] = 0
        if len(commands) - 1 + sum(commands) // COMMANDS_OF_LEVEL > deepest:
            return True
    return False


def _known_colour(text: str) -> str:
    from matplotlib.colors import is_color_like

    if not is_color_like(text):
        raise ValueError(f"{text!r} is no colour: a name such as orange, or #rrggbb, is needed")
    return text


ExpressionText = Annotated[
    str, BeforeValidator(as_text), AfterValidator(_parse), WithJsonSchema({"type": ["string", "number"]})
]
LabelText = Annotated[str, AfterValidator(lambda text: _drawable(text))]
Colour = Annotated[str, AfterValidator(lambda text: _known_colour(text))]
Placeholders = Annotated[list[float], BeforeValidator(_as_numbers), one_or_many("number")]


SOURCE_LABEL: Any = Field(None, description="what figures call it; formulas between dollar signs")
