"""Settings of a fit: transform and bins of the score, terms of the likelihood, names in the workspace."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Literal

from pydantic import Field, model_validator

from qbdt.settings import SettingsSection

Binning = Literal["uniform", "equal_signal", "equal_background", "edges", "optimised", "cells", "categories"]

LONGEST_WORD = 100
"""Letters of the name of a region or parameter: file systems take names of up to 255 bytes."""


class FitSettings(SettingsSection):
    """How scores become templates and templates a fit; the defaults are the paper's.

    Examples
    --------
    >>> FitSettings(binning="equal_signal", bins=10).bins
    10
    """

    transform: Literal["tanh", "none"] = Field("tanh", description="map the score y to tanh(c·y), or leave it")
    c: float | Literal["scan"] = Field("scan", description="constant of the transform, or scan: largest binned Q")
    binning: Binning = Field(
        "uniform",
        description="equal width, equal yield, given edges, or edges that keep the most information on the signal "
        "strength after profiling, chosen fold by fold on the events of the other folds; cells: the same for several "
        "scores, in the space of all of them; categories: events go to that of their largest score, which is binned",
    )
    bins: int = Field(20, ge=1, le=10_000, description="number of bins")
    edges: list[float] | None = Field(None, description="for binning: edges; of the transformed score, ascending")
    min_entries: float = Field(
        10.0,
        ge=0,
        allow_inf_nan=False,
        description="smallest effective number of simulated background events, (Σw)²/Σw², in a bin; bins with fewer "
        "are merged towards lower scores",
    )
    scale: float = Field(
        1.0,
        gt=0,
        allow_inf_nan=False,
        description="factor on all simulated yields: 2 where half of the events stand for all",
    )
    mc_stat: bool = Field(True, description="include the statistical uncertainty of the simulation")
    mc_model: Literal["bin", "bin_poisson", "process", "process_poisson"] = Field(
        "bin",
        description="factors of the simulation's statistics: one per bin on the sum of the backgrounds, or one per "
        "process and bin (full Barlow–Beeston), the signal's too; with Gaussian or Poisson constraints",
    )
    systematics: list[str] | None = Field(None, description="sources in the fit; all by default, [] for none")
    prune: float | None = Field(
        None, ge=0, lt=1, description="drop sources that move no bin by more than this fraction; none by default"
    )
    smooth: Literal["none", "auto"] | list[str] = Field(
        "none",
        description="smooth the shifts of shape and weight sources as much as their statistical errors ask for: of all "
        "sources (auto) or of those named",
    )
    symmetrise: Literal["none", "average", "largest"] = Field(
        "none", description="make up and down mirror images: half their difference, or the larger change of each bin"
    )
    noise: bool = Field(
        True, description="compute statistical errors of the shifts, and warn where noise constrains a source"
    )
    impacts: Literal["hessian", "refit"] = Field(
        "hessian", description="impacts from the covariance matrix, or by repeating the fit with each source moved"
    )
    scan: bool = Field(True, description="scan the profile likelihood of the signal strength")
    limits: Literal["none", "asymptotic", "toys"] = Field(
        "none", description="upper limits on the strengths at 95 % CLs, with asymptotic formulae or pseudo-experiments"
    )
    contours: bool = Field(False, description="profile likelihood of each pair of strengths of interest")
    goodness: Literal["none", "saturated", "toys"] = Field(
        "none", description="goodness of the fit to recorded data, from the χ² distribution or pseudo-experiments"
    )
    toys: int = Field(1000, ge=100, le=1_000_000, description="pseudo-experiments, for what is asked with toys")
    poi: str = Field("mu", description="name of the signal strength in the workspace")
    measurement: str = Field("measurement", description="name of the measurement in the workspace")
    channel: str = Field("signal_region", description="name of the channel in the workspace")

    @property
    def joins_scores(self) -> bool:
        """Whether bins are made of several scores."""
        return self.binning in ("cells", "categories")

    @model_validator(mode="after")
    def _consistent(self) -> FitSettings:
        if (self.binning == "edges") != (self.edges is not None):
            raise ValueError("edges: to be given with binning: edges, and only then")
        ascending = self.edges is None or all(low < high < math.inf for low, high in pairwise(self.edges))
        if self.edges is not None and (len(self.edges) < 2 or not ascending):
            raise ValueError(f"edges {self.edges}: at least two ascending numbers are needed")
        self.require_word("poi", self.poi)
        self.require_word("channel", self.channel)
        if not self.measurement.isprintable() or not self.measurement.strip():
            raise ValueError(f"measurement {self.measurement!r}: a name that can be printed is needed")
        if isinstance(self.c, float) and not 0 < self.c < math.inf:
            raise ValueError(f"c {self.c}: must be positive")
        return self

    @staticmethod
    def require_word(what: str, name: str) -> None:
        """Refuse a name of a region or parameter that a workspace cannot have.

        Examples
        --------
        >>> FitSettings.require_word("poi", "mu")
        """
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or len(name) > LONGEST_WORD:
            raise ValueError(
                f"{what} {name[:LONGEST_WORD]!r}: a word of up to {LONGEST_WORD} letters, digits and underscores is "
                "needed, a letter first"
            )
        if name in ("lumi", "Lumi") or name.startswith("staterror_"):
            raise ValueError(f"{what} {name!r}: that means something else in HistFactory: choose another name")
