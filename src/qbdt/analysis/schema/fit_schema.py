"""The sections `fit`, `variables` and `figures` of an analysis file: from scores to a fit, and how it is shown."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from qbdt.analysis.schema.schema_fields import ExpressionText, LabelText
from qbdt.inference import FitSettings
from qbdt.settings import Names, OptionalNames, SettingsSection


class Fit(FitSettings):
    """Settings of the fit of an analysis.

    Examples
    --------
    >>> Fit(parameters={"mu_ggH": "ggH", "mu_VBF": "VBF"}, free="ttbar").parameters
    {'mu_ggH': ['ggH'], 'mu_VBF': ['VBF']}
    """

    parameters: dict[str, Names] = Field(
        {}, description="signal strengths and the signals that each scales; by default one, `poi`, for all signals"
    )
    figure: str = Field(
        "determinant",
        description="for binning: cells; what they keep: the determinant of the covariance of the strengths, the sum "
        "of their variances, or the variance of one by name",
    )
    of_interest: OptionalNames = Field(
        [],
        description="strengths that are measured, and sources without constraint, such as a mass; by default those of "
        "the training, or all strengths that are not fixed",
    )
    free: OptionalNames | dict[str, Names] = Field(
        [], description="backgrounds whose normalisation is free: names, or factor to the processes that share it"
    )
    fixed: dict[str, float] = Field({}, description="parameters that are held, and at which values")
    bounds: dict[str, tuple[float, float]] = Field({}, description="lowest and highest values of parameters")
    groups: dict[str, Names] = Field({}, description="groups of sources, for impacts and parts of σ_μ")
    abcd: dict[str, tuple[str, str, str, str]] = Field(
        {}, description="backgrounds whose yields are tied, A = B·C/D, and the four regions A, B, C and D"
    )
    blind: bool = Field(
        True, description="with recorded data: show no observed result, and no data in bins that see the signal"
    )
    blind_above: float = Field(
        0.1, ge=0, description="s/√b of a bin above which its data are hidden, in regions with the score"
    )

    @model_validator(mode="after")
    def _parameters_are_words(self) -> Fit:
        for key, names in (("parameters:", self.parameters), ("free:", self.free)):
            for name in names if isinstance(names, dict) else ():
                self.require_word(key, name)
        return self


class Variable(SettingsSection):
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


class FigureText(SettingsSection):
    """The line above the axes of figures."""

    experiment: str = Field("", description="in bold on the left, such as CMS")
    status: str = Field("", description="in italics after it, such as Open Data, Simulation or Preliminary")
    energy: float | None = Field(None, gt=0, description="centre-of-mass energy in TeV")
    luminosity: float | None = Field(None, gt=0, description="integrated luminosity in fb⁻¹")
