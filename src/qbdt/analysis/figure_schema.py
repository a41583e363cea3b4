"""The sections `variables` and `figures` of an analysis file: what figures call things, and how they are drawn."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from qbdt.analysis.schema_fields import ExpressionText, LabelText
from qbdt.settings import Section

__all__ = ["FigureText", "Variable"]


class Variable(Section):
    """How figures call a feature, and how it is drawn; with an expression, something that is drawn and no feature."""

    label: LabelText | None = Field(None, description="title of the axis; formulas between dollar signs")
    unit: str | None = Field(None, description="unit, written after the label: GeV")
    expression: ExpressionText | None = Field(None, description="what is drawn, where it is no feature")
    range: tuple[float, float] | None = Field(None, description="lower and upper end of the axis")
    bins: int | None = Field(None, ge=1, le=10_000, description="number of bins")

    @model_validator(mode="after")
    def _ascends(self) -> Variable:
        if self.range is not None and not -math.inf < self.range[0] < self.range[1] < math.inf:
            raise ValueError(f"range: [{self.range[0]:g}, {self.range[1]:g}]: two ascending numbers are needed")
        return self

    def title(self, name: str) -> str:
        """Title of the axis."""
        label = self.label or name
        return f"{label} ({self.unit})" if self.unit else label


class FigureText(Section):
    """The line above the axes of figures."""

    experiment: str = Field("", description="in bold on the left, such as CMS")
    status: str = Field("", description="in italics after it, such as Open Data, Simulation or Preliminary")
    energy: float | None = Field(None, gt=0, description="centre-of-mass energy in TeV")
    luminosity: float | None = Field(None, gt=0, description="integrated luminosity in fb⁻¹")
