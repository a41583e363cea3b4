"""The section `fit` of an analysis file: from scores to a fit, its parameters, and what is shown of recorded data."""

from __future__ import annotations

from pydantic import Field

from qbdt.inference import FitSettings
from qbdt.settings import Names, OptionalNames

__all__ = ["Fit"]


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
    of_interest: OptionalNames = Field([], description="strengths that are measured; all that are not fixed by default")
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
