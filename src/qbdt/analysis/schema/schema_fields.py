"""Types of the fields of an analysis file: expressions, labels, colours, placeholders."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from qbdt.data import Expression
from qbdt.settings import as_list, one_or_many


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

        try:
            MathTextParser("path").parse(text)
        except ValueError as error:
            raise ValueError(f"{text!r} cannot be drawn: {str(error).splitlines()[-1]}") from None
    return text


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
