"""Summary of one fit: its parameters, its strengths and what sources do to them, as tables and as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.files.records import read_float, read_floats
from qbdt.inference.impacts import Impact, describe_impacts, read_impacts
from qbdt.statistics import FittedSensitivity
from qbdt.tables import Table, render_html

NO_MC_STAT = ", no MC stat"
"""Ending of the names of fits in which the MC-statistics factors are held."""


IMPACTS = ("Δμ up", "Δμ down", "pre-fit up", "pre-fit down")
"""Columns of the four changes of an `Impact`."""


@dataclass(frozen=True)
class FittedParameter:
    """A parameter after the fit: value and uncertainty, in units of the prior standard deviation for sources."""

    name: str
    kind: str
    value: float
    error: float

    @classmethod
    def from_dict(cls, name: str, plain: Mapping[str, Any]) -> FittedParameter:
        """Read one from its entry of `FitSummary.to_dict`."""
        return cls(name, str(plain["kind"]), read_float(plain["value"]), read_float(plain["error"]))


@dataclass(frozen=True, eq=False)
class Scan:
    """Profile likelihood: signal strengths and −2 Δln L at each, full and with all sources held."""

    mu: Floats
    full: Floats
    stat: Floats

    def to_dict(self) -> dict[str, list[float]]:
        """Return the columns as plain lists."""
        return {name: values.tolist() for name, values in vars(self).items()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Scan:
        """Inverse of `to_dict`."""
        return cls(*(read_floats(plain[name], len(plain["mu"])) for name in ("mu", "full", "stat")))


@dataclass(frozen=True, eq=False)
class StrengthSummary:
    """Results for one signal strength; other strengths and free normalisations are profiled like the sources."""

    name: str  # Name of the strength
    mu: float  # Best value
    # Distances of the lower (negative) and upper end of the 68 % interval, where the profiled −2 Δln L is 1 (as by
    # MINOS); None where one was not found
    interval: tuple[float, float] | None
    # sensitivity, without_mc_stat: significances and σ_μ with and without the sources, with MC statistics as in the
    # likelihood, and with the MC-statistics factors held at their best values
    sensitivity: FittedSensitivity
    without_mc_stat: FittedSensitivity
    impacts: tuple[Impact, ...]  # Of each source on the strength, largest first
    # Part of σ_μ from each source or group: sqrt(σ² − σ²(held)). Correlations make them not add up in quadrature.
    breakdown: tuple[tuple[str, float], ...]
    # Of each group, whose sources are moved together in the direction that raises the strength most
    group_impacts: tuple[Impact, ...] = ()
    is_strength: bool = True  # Otherwise a source without constraint: its significances are 0

    @property
    def z(self) -> float:
        """Significance of the full fit."""
        return self.sensitivity.z_full

    @property
    def sigma_mu(self) -> float:
        """Uncertainty in the full fit."""
        return self.sensitivity.sigma_full

    @property
    def variants(self) -> dict[str, tuple[float, float]]:
        """Significance and σ_μ by the name of the variant of the fit, as tables and files have them."""
        return {
            f"{name}{suffix}": (getattr(found, f"z_{name}"), getattr(found, f"sigma_{name}"))
            for name in ("full", "stat")
            for suffix, found in (("", self.sensitivity), (NO_MC_STAT, self.without_mc_stat))
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        plain = {
            "mu": self.mu,
            "sigma_mu": self.sigma_mu,
            "interval": None if self.interval is None else list(self.interval),
            "z": self.z,
            "z_stat": self.sensitivity.z_stat,
            "delta_mu": self.sensitivity.delta_mu,
            "variants": {name: {"z": z, "sigma_mu": sigma} for name, (z, sigma) in self.variants.items()},
            "impacts": describe_impacts(self.impacts),
            "group_impacts": describe_impacts(self.group_impacts),
            "breakdown": dict(self.breakdown),
        }
        return plain if self.is_strength else {**plain, "is_strength": False}

    @classmethod
    def from_dict(cls, name: str, plain: Mapping[str, Any]) -> StrengthSummary:
        """Inverse of `to_dict`."""
        return cls(
            name=name,
            mu=read_float(plain["mu"]),
            interval=None if plain["interval"] is None else _read_pair(plain["interval"]),
            sensitivity=_read_variants(plain["variants"], ""),
            without_mc_stat=_read_variants(plain["variants"], NO_MC_STAT),
            impacts=read_impacts(plain["impacts"]),
            group_impacts=read_impacts(plain.get("group_impacts", {})),
            breakdown=tuple((group, read_float(part)) for group, part in plain["breakdown"].items()),
            is_strength=bool(plain.get("is_strength", True)),
        )

    def tables(self, symbol: str = "μ") -> tuple[Table, ...]:
        """Strength, significances and parts of σ_μ; the title of the first is for the caller to complete."""
        ends = "not found" if self.interval is None else f"{self.interval[0]:+z.3f} {self.interval[1]:+z.3f}"
        strength = (
            (symbol, f"{self.mu:z.3f} ± {self.sigma_mu:.3f}"),
            ("68 % interval (profile)", ends),
            (
                "Δμ from the sources" if self.is_strength else "part from the sources",
                f"{self.sensitivity.delta_mu:.3f}",
            ),
        )
        what, sigma = ("signal strength", "σ_μ") if self.is_strength else ("parameter", "σ")
        title, columns = ("Discovery significance", ("Z", sigma)) if self.is_strength else ("Uncertainty", (sigma,))
        variants = tuple(
            (name, *(f"{number:.3f}" for number in numbers[-len(columns) :])) for name, numbers in self.variants.items()
        )
        parts = tuple((name, f"{part:.3f}") for name, part in self.breakdown)
        groups = tuple(
            (i.source, *(f"{value:+z.3f}" for value in (i.up, i.down, i.prefit_up, i.prefit_down)))
            for i in self.group_impacts
        )
        return (
            Table(what.capitalize(), (what, ""), strength),
            Table(title, ("fit", *columns), variants),
            Table(f"Parts of {sigma}", ("from", sigma), parts),
            Table("Impacts of groups", ("group", *self.impact_columns), groups),
        )

    @property
    def impact_columns(self) -> tuple[str, ...]:
        """Columns of the four changes of an `Impact` on it."""
        return IMPACTS if self.is_strength else tuple(column.replace("Δμ", "Δ") for column in IMPACTS)


@dataclass(frozen=True, eq=False)
class FitSummary:
    """Results on one set of data.

    The properties `mu`, `sigma_mu`, `z`, `interval`, `impacts`, `breakdown` … are those of the first strength.

    Attributes
    ----------
    data
        "Asimov" (expected events at μ = 1) or "recorded".
    strengths
        Results for each strength of interest.
    parameters
        All parameters after the full fit.
    correlation
        Of the parameters in that order; zero for fixed ones.
    regions
        Number of bins of each region, in the order of the bins below.
    counts
        Fitted events per bin.
    postfit
        Expected events per bin of each process at the best fit.
    postfit_error, prefit_error
        Uncertainty of the total expectation per bin after the fit, and before it from the priors of the nuisances.
    twice_nll
        −2 ln L at the best fit.
    """

    data: str
    strengths: tuple[StrengthSummary, ...]
    parameters: tuple[FittedParameter, ...]
    correlation: Floats
    regions: Mapping[str, int]
    counts: Floats
    postfit: Mapping[str, Floats]
    postfit_error: Floats
    prefit_error: Floats
    twice_nll: float

    @property
    def mu(self) -> float:
        """Best signal strength."""
        return self.strengths[0].mu

    @property
    def interval(self) -> tuple[float, float] | None:
        """Distances of the ends of the 68 % interval."""
        return self.strengths[0].interval

    @property
    def sensitivity(self) -> FittedSensitivity:
        """Significances and σ_μ with and without the sources."""
        return self.strengths[0].sensitivity

    @property
    def without_mc_stat(self) -> FittedSensitivity:
        """The same with the MC-statistics factors held."""
        return self.strengths[0].without_mc_stat

    @property
    def impacts(self) -> tuple[Impact, ...]:
        """Impacts of the sources, largest first."""
        return self.strengths[0].impacts

    @property
    def breakdown(self) -> tuple[tuple[str, float], ...]:
        """Parts of σ_μ."""
        return self.strengths[0].breakdown

    @property
    def variants(self) -> dict[str, tuple[float, float]]:
        """Significance and σ_μ by the name of the variant of the fit."""
        return self.strengths[0].variants

    @property
    def z(self) -> float:
        """Significance of the full fit."""
        return self.sensitivity.z_full

    @property
    def sigma_mu(self) -> float:
        """Uncertainty of the signal strength in the full fit."""
        return self.sensitivity.sigma_full

    @property
    def z_stat(self) -> float:
        """Significance without systematics, with MC statistics as in the full fit: the paper's "stat-only"."""
        return self.sensitivity.z_stat

    @property
    def delta_mu(self) -> float:
        """Part of σ_μ from the systematic sources, the paper's Δμ."""
        return self.sensitivity.delta_mu

    def strength(self, name: str) -> StrengthSummary:
        """Return the results for one strength."""
        for strength in self.strengths:
            if strength.name == name:
                return strength
        raise FitError(f"no strength {name!r} in the fit; there are: {', '.join(s.name for s in self.strengths)}")

    def region(self, name: str) -> FitSummary:
        """Return the same results with the bins of one region only."""
        if name not in self.regions:
            raise FitError(f"no region {name!r} in the fit; there are: {', '.join(self.regions)}")
        starts = dict(zip(self.regions, np.cumsum([0, *self.regions.values()]).tolist(), strict=False))
        bins = slice(starts[name], starts[name] + self.regions[name])
        return replace(
            self,
            regions={name: self.regions[name]},
            counts=self.counts[bins],
            postfit={process: values[bins] for process, values in self.postfit.items()},
            postfit_error=self.postfit_error[bins],
            prefit_error=self.prefit_error[bins],
        )

    def parameter(self, name: str) -> FittedParameter:
        """Return one parameter."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise FitError(f"no parameter {name!r} in the fit")

    @property
    def sources(self) -> tuple[FittedParameter, ...]:
        """The nuisance parameters of the sources."""
        return tuple(p for p in self.parameters if p.kind == "source")

    def tables(self) -> tuple[Table, ...]:
        """Significances, breakdown, and sources with pulls and impacts, for each strength."""
        tables: list[Table] = []
        for strength in self.strengths:
            several = f": {strength.name}" if len(self.strengths) > 1 else ""
            first, *others = strength.tables(strength.name if several or not strength.is_strength else "μ")
            tables.append(replace(first, title=f"Fit to {self.data} data{several}"))
            tables += [replace(t, title=f"{t.title}{several}") for t in (*others, self._sources(strength)) if t.rows]
        return (*tables, *(t for t in (self._factors(),) if t.rows))

    def __str__(self) -> str:
        return "\n\n".join(str(table) for table in self.tables())

    @property
    def headline(self) -> str:
        """The answer in one line."""
        first = self.strengths[0]
        if not first.is_strength:
            stat = self.sensitivity.sigma_stat
            return (
                f"{first.name} = {self.mu:.3f} ± {self.sigma_mu:.3f} ({stat:.3f} without systematics), {self.data} data"
            )
        return (
            f"Z = {self.z:.3f} ({self.z_stat:.3f} without systematics), "
            f"μ = {self.mu:.3f} ± {self.sigma_mu:.3f}, {self.data} data"
        )

    def _repr_html_(self) -> str:
        return render_html(self.headline, self.tables(), unfolded=2)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data: the first strength at the top, all of them where there are several."""
        plain = {
            "data": self.data,
            **self.strengths[0].to_dict(),
            "parameters": {p.name: {"kind": p.kind, "value": p.value, "error": p.error} for p in self.parameters},
            "correlation": self.correlation.tolist(),
            "counts": self.counts.tolist(),
            "postfit": {name: values.tolist() for name, values in self.postfit.items()},
            "postfit_error": self.postfit_error.tolist(),
            "prefit_error": self.prefit_error.tolist(),
            "twice_nll": self.twice_nll,
        }
        if len(self.strengths) > 1:
            plain["strengths"] = {strength.name: strength.to_dict() for strength in self.strengths}
        if len(self.regions) > 1:
            plain["regions"] = dict(self.regions)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> FitSummary:
        """Inverse of `to_dict`."""
        parameters = tuple(FittedParameter.from_dict(*named) for named in plain["parameters"].items())
        n, bins = len(parameters), len(plain["counts"])
        regions = {name: int(size) for name, size in plain.get("regions", {"": bins}).items()}
        if sum(regions.values()) != bins:
            raise ValueError(f"regions of {sum(regions.values())} bins beside {bins} counts")
        named = next((p.name for p in parameters if p.kind == "poi"), "mu")
        strengths = plain.get("strengths", {named: plain})
        return cls(
            data=str(plain["data"]),
            strengths=tuple(StrengthSummary.from_dict(name, values) for name, values in strengths.items()),
            parameters=parameters,
            correlation=read_floats(plain["correlation"], n, n),
            regions=regions,
            postfit={name: read_floats(values, bins) for name, values in plain["postfit"].items()},
            **{name: read_floats(plain[name], bins) for name in ("counts", "postfit_error", "prefit_error")},
            twice_nll=read_float(plain["twice_nll"]),
        )

    def _sources(self, strength: StrengthSummary) -> Table:
        rows = []
        for impact in strength.impacts:
            p = self.parameter(impact.source)
            cells = (p.value, p.error, impact.up, impact.down, impact.prefit_up, impact.prefit_down)
            rows.append((p.name, *(f"{cell:+z.3f}" if i != 1 else f"{cell:.3f}" for i, cell in enumerate(cells))))
        header = ("source", "pull", "σ", *strength.impact_columns)
        return Table("Sources after the fit", header, tuple(rows))

    def _factors(self) -> Table:
        """Profiled strengths and free normalisations."""
        shown = {strength.name for strength in self.strengths}
        rows = tuple(
            (p.name, f"{p.value:z.3f} ± {p.error:.3f}")
            for p in self.parameters
            if p.kind == "free" and p.name not in shown
        )
        return Table("Free parameters after the fit", ("parameter", "value"), rows)


def _read_pair(plain: Any) -> tuple[float, float]:
    low, high = read_floats(plain, 2).tolist()
    return low, high


def _read_variants(variants: Mapping[str, Mapping[str, float]], suffix: str) -> FittedSensitivity:
    stat, full = (variants[f"{name}{suffix}"] for name in ("stat", "full"))
    return FittedSensitivity(*(read_float(one[key]) for key in ("sigma_mu", "z") for one in (stat, full)))
