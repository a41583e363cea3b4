"""The section `regions` of an analysis file: which events, what is histogrammed and how, and whether they train."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from qbdt.analysis.schema.schema_fields import ExpressionText, LabelText, as_text
from qbdt.data import Expression
from qbdt.inference import FitSettings
from qbdt.settings import SettingsSection, as_list, one_or_many

SCORE, YIELD = "score", "yield"


def _parse_observable(text: str) -> str:
    if text not in (SCORE, YIELD):
        Expression(text)
    return text


ObservableText = Annotated[
    str, BeforeValidator(as_text), AfterValidator(_parse_observable), WithJsonSchema({"type": ["string", "number"]})
]

DrawnText = Annotated[list[ExpressionText], BeforeValidator(as_list), one_or_many("string")]

Decorrelate = Annotated[
    list[Literal["region", "process"]],
    BeforeValidator(as_list),
    WithJsonSchema(
        {"anyOf": [{"enum": ["region", "process"]}, {"type": "array", "items": {"enum": ["region", "process"]}}]}
    ),
]
"""Ways to split a source's nuisance parameter."""


class Region(SettingsSection):
    """Events that make one histogram of the fit.

    Examples
    --------
    >>> Region(selection="mt > 70", observable="mt", bins=4, range=(70, 150)).trains
    False
    """

    selection: ExpressionText | None = Field(None, description="its events, among those that pass all other selections")
    observable: ObservableText = Field(
        SCORE, description="what is histogrammed: score, yield (one bin), or a column or expression"
    )
    bins: int | None = Field(None, ge=1, le=10_000, description="number of bins; of the score as in `fit` by default")
    range: tuple[float, float] | None = Field(None, description="lower and upper edge of equal bins of an expression")
    edges: list[float] | None = Field(None, description="edges of the bins, ascending, instead of bins and range")
    train: bool | None = Field(
        None, description="whether its events train the classifier; by default where the score is histogrammed"
    )
    model: str | None = Field(
        None,
        pattern=r"^[A-Za-z]\w*$",
        max_length=100,
        description="name of the model that its events train and that scores them; regions without share one",
    )
    blind: bool | None = Field(
        None, description="whether all its data are hidden in blind results, or none; see `fit: blind_above`"
    )
    draw: DrawnText = Field(
        [], description="features, variables or expressions that the report draws in it, before and after the fit"
    )
    label: LabelText | None = Field(None, description="what figures call it; formulas between dollar signs")
    title: LabelText | None = Field(None, description="title of its axis; by default the observable")

    @property
    def trains(self) -> bool:
        """Whether its events train the classifier."""
        return self.uses_score if self.train is None else self.train

    @property
    def uses_score(self) -> bool:
        """Whether the score is histogrammed."""
        return self.observable == SCORE

    @property
    def model_name(self) -> str:
        """Name of its model; empty for the one that regions share."""
        return self.model or ""

    @property
    def is_control(self) -> bool:
        """Whether it is a control region: it neither histograms the score nor trains."""
        return not (self.uses_score or self.trains)

    @property
    def expression(self) -> Expression | None:
        """Expression that is histogrammed, where it is neither the score nor the yield."""
        return None if self.observable in (SCORE, YIELD) else Expression(self.observable)

    @property
    def axis_title(self) -> str:
        """Title of its axis."""
        return self.title or self.observable

    def fit_settings(self, fit: FitSettings) -> FitSettings:
        """Settings of the templates of this region: those of the fit, with its own bins."""
        plain: dict[str, Any] = fit.model_dump()
        if self.edges is not None:
            plain |= {"binning": "edges", "edges": self.edges}
        elif self.uses_score:
            plain |= {} if self.bins is None else {"bins": self.bins, "binning": _without_edges(fit), "edges": None}
        else:
            plain |= {"binning": "edges", "edges": self._equal_bins()}
        return type(fit).model_validate(plain if self.uses_score else {**plain, "transform": "none"})

    def _equal_bins(self) -> list[float]:
        if self.range is None or self.bins is None:  # the yield: all events in one bin around zero
            return [-0.5, 0.5]
        return [float(edge) for edge in np.linspace(*self.range, self.bins + 1)]

    @model_validator(mode="after")
    def _has_bins(self) -> Region:
        given = [name for name in ("bins", "range", "edges") if getattr(self, name) is not None]
        if self.observable == YIELD and given:
            raise ValueError(f"{given[0]}: the yield has one bin")
        if self.uses_score and self.range is not None:
            raise ValueError("range: is for a column or expression; the score takes bins or edges")
        if self.edges is not None and len(given) > 1:
            raise ValueError(f"edges and {given[0]}: one of them says what the bins are")
        if self.expression is not None and given not in (["bins", "range"], ["edges"]):
            raise ValueError(f"observable {self.observable}: bins and range are needed, or edges")
        return self

    @model_validator(mode="after")
    def _ascends(self) -> Region:
        for name in ("range", "edges"):
            values = getattr(self, name)
            if values is None:
                continue
            if len(values) < 2 or not all(-math.inf < low < high < math.inf for low, high in pairwise(values)):
                raise ValueError(f"{name} {list(values)}: at least two ascending numbers are needed")
        return self


def _without_edges(fit: FitSettings) -> str:
    """How bins of the score are chosen where a region asks for another number than the edges of the fit give."""
    return "uniform" if fit.binning == "edges" else fit.binning
