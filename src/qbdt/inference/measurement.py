"""`Measurement`: regions that are fitted together, and the parameters that act on them.

A region is a `TemplateSet`. A source acts in all regions that have it, with one nuisance parameter: sources are
correlated by name. On top of the sources there are factors without prior: signal strengths, of which one or more are
of interest, and free normalisations of backgrounds, which control regions measure. A source may be of interest too,
such as a mass that is given by varied samples: it then has no prior.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.errors import MALFORMED, FitError, find_repeated
from qbdt.files import choose_words
from qbdt.inference.parameter_names import (
    as_lists,
    name_factors,
    name_parts,
    name_tied,
    require_different_factors,
    require_different_parts,
)
from qbdt.inference.templates.template_set import Note, TemplateSet

RESERVED = frozenset({"lumi", "Lumi"})
"""Names of parameters that mean something else in HistFactory."""

PARTS = frozenset({"total", "data statistics", "MC statistics", "all sources", "free parameters"})
"""Parts of σ_μ that every fit has: no names for groups."""

WORD = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True, eq=False)
class Measurement:
    """Regions of one fit and its parameters.

    Attributes
    ----------
    regions
        Templates by the name of the region. A region where a process is not expected has zeros for it, or lacks it.
        The observed fit needs recorded data in all regions.
    strengths
        Signal strengths and the signal processes that each scales; each signal by exactly one. By default one
        strength `mu` for all of them.
    of_interest
        Strengths, and sources without prior, that are measured; other strengths are profiled. All strengths by default.
    free
        Factors without prior on background processes: a list of processes, each with a factor `norm_PROCESS` of its
        own, or a mapping from the name of the factor to its processes.
    fixed
        Strengths, factors or sources that are held, and the values they are held at (1 is nominal for strengths and
        factors, 0 for sources).
    bounds
        Lowest and highest value of strengths, factors or sources.
    groups
        Names of groups and the sources (or free factors) in them, for impacts and parts of σ_μ.
    abcd
        Backgrounds whose yields obey A = B · C/D, and these four regions; made by `tie`.

    Examples
    --------
    A signal region, a control region that measures the ttbar normalisation, and two strengths:

    >>> from qbdt.inference.templates import ProcessTemplates
    >>> def region(**events):
    ...     roles = {"ggH": Role.SIGNAL, "VBF": Role.SIGNAL, "ttbar": Role.BACKGROUND}
    ...     processes = [ProcessTemplates(p, roles[p], np.array(n), 0.1 * np.array(n)) for p, n in events.items()]
    ...     return TemplateSet("score", np.arange(len(events["ttbar"]) + 1.0), tuple(processes))
    >>> measurement = Measurement(
    ...     {
    ...         "signal": region(ggH=[5.0, 20.0], VBF=[9.0, 2.0], ttbar=[90.0, 30.0]),
    ...         "control": region(ggH=[0.5], VBF=[0.1], ttbar=[900.0]),
    ...     },
    ...     strengths={"mu_ggH": ["ggH"], "mu_VBF": ["VBF"]},
    ...     free=["ttbar"],
    ... )
    >>> measurement.of_interest, list(measurement.factors)
    (('mu_ggH', 'mu_VBF'), ['mu_ggH', 'mu_VBF', 'norm_ttbar'])
    >>> from qbdt.inference import FitSettings, fit_measurement
    >>> result = fit_measurement(measurement, FitSettings(scan=False))
    >>> [(s.name, round(s.mu, 2), round(s.sigma_mu, 2)) for s in result.expected.strengths]
    [('mu_ggH', 1.0, 0.41), ('mu_VBF', 1.0, 1.31)]
    """

    regions: Mapping[str, TemplateSet]
    strengths: Mapping[str, Sequence[str]] = field(default_factory=dict)
    of_interest: Sequence[str] = ()
    free: Mapping[str, Sequence[str]] | Sequence[str] = ()
    fixed: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    abcd: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.regions:
            raise FitError("regions={}: a measurement needs at least one region")
        _set(self, "strengths", as_lists("strengths", self.strengths) or {"mu": self.of_role(Role.SIGNAL)})
        _set(self, "free", name_factors(self.free))
        _set(self, "groups", as_lists("groups", self.groups))
        _set(self, "abcd", as_lists("abcd", self.abcd))
        _set(self, "fixed", {name: float(value) for name, value in self.fixed.items()})
        _set(self, "bounds", {name: (float(low), float(high)) for name, (low, high) in self.bounds.items()})
        chosen = tuple(self.of_interest) or tuple(name for name in self.strengths if name not in self.fixed)
        _set(self, "of_interest", chosen)
        self._check_names()
        self._check_factors()
        self._check_parameters()

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """All factors without prior and the processes they scale: strengths, free normalisations, those of ABCD."""
        tied = {name: (process,) for process in self.abcd for name in name_tied(process)}
        plain = {**self.strengths, **name_factors(self.free)}
        return {**{name: tuple(processes) for name, processes in plain.items()}, **tied}

    def factors_of(self, region: str, process: str) -> tuple[str, ...]:
        """Names of the factors without prior on a process in a region."""
        found = [name for name, scaled in {**self.strengths, **name_factors(self.free)}.items() if process in scaled]
        if region in self.abcd.get(process, ()):
            a, _, c, d = self.abcd[process]
            norm, transfer, side = name_tied(process)
            found += [norm, *([transfer] if region in (a, c) else []), *([side] if region in (c, d) else [])]
        return tuple(found)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources of all regions, in the order in which they come first."""
        return tuple(dict.fromkeys(name for region in self.regions.values() for name in region.sources))

    @property
    def unconstrained(self) -> tuple[str, ...]:
        """Sources of interest, which have no prior."""
        return tuple(name for name in self.of_interest if name not in self.factors)

    @property
    def processes(self) -> tuple[str, ...]:
        """Names of the simulated processes of all regions, in the order in which they come first."""
        return tuple(dict.fromkeys(p.name for region in self.regions.values() for p in region.processes))

    @property
    def cells(self) -> tuple[tuple[str, str], ...]:
        """All pairs of a region and one of its processes."""
        return tuple((name, process.name) for name, region in self.regions.items() for process in region.processes)

    @property
    def mc_stat_names(self) -> tuple[str, ...]:
        """Names of factors for the MC statistics of each process in each region, in the order of `cells`."""
        return tuple(choose_words(f"staterror_{region}_{process}" for region, process in self.cells))

    @property
    def asimov(self) -> dict[str, Floats]:
        """Expected events per bin of each region at the nominal values of all parameters."""
        return {name: region.asimov for name, region in self.regions.items()}

    @property
    def recorded(self) -> dict[str, Floats] | None:
        """Recorded events per bin of each region; None where a region has none."""
        data = {name: region.data for name, region in self.regions.items()}
        known = {name: counts for name, counts in data.items() if counts is not None}
        return known if len(known) == len(data) else None

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the templates of all regions; one that is not the same in all of them says which it is of."""
        notes = dict.fromkeys((name, note) for name, region in self.regions.items() for note in region.notes)
        shared = {note for _, note in notes if all((name, note) in notes for name in self.regions)}
        of_some = [Note(f"{name}, {n.subject}", n.message) for name, n in notes if n not in shared]
        return (*dict.fromkeys(note for _, note in notes if note in shared), *of_some)

    @property
    def reserved(self) -> frozenset[str]:
        """Names that mean something else in a workspace: those of HistFactory, and of MC statistics."""
        return RESERVED | {f"staterror_{name}" for name in self.regions} | {*self.mc_stat_names}

    def of_role(self, role: Role) -> tuple[str, ...]:
        """Names of the processes of one role in any region."""
        found = (p.name for region in self.regions.values() for p in region.of_role(role))
        return tuple(dict.fromkeys(found))

    def map(self, change: Mapping[str, TemplateSet]) -> Measurement:
        """Return the same measurement with other templates of some regions."""
        return replace(self, regions={**self.regions, **change})

    def decorrelate(self, source: str, by: Iterable[str]) -> Measurement:
        """Split the nuisance parameter of a source into one per "region", per "process", or both.

        Only names change: `source` becomes `source_REGION`, `source_PROCESS` or `source_REGION_PROCESS`.
        """
        ways = set(by)
        if source not in self.sources:
            raise FitError(f"no source {source} in the measurement; there are: {', '.join(self.sources)}")
        if source in self.unconstrained:
            raise FitError(f"decorrelate: {source} is of interest: it is one parameter everywhere")
        if not ways or ways - {"region", "process"}:
            raise FitError(f"decorrelate={sorted(ways)}: region, process or both are needed")
        require_different_parts(self.regions, source, ways, self.sources)
        regions = {name: _split_source(name, region, source, ways) for name, region in self.regions.items()}
        names = {new: None for r in regions.values() for new in r.sources if new not in self.sources}
        groups = {group: _replace_in(members, source, tuple(names)) for group, members in self.groups.items()}
        return replace(self, regions=regions, groups=groups)

    def tie(self, process: str, regions: Sequence[str]) -> Measurement:
        """Tie the yields of a background in the regions A, B, C and D to each other: A = B · C/D, whatever they are.

        Three factors without prior scale it: `norm_PROCESS` in all four regions, `transfer_PROCESS` in A and C (from B
        to A as from D to C), `side_PROCESS` in C and D; it has no free normalisation of its own. Where the nominal
        yields obey the relation, so do all others; for that its templates in A are scaled. Its statistical errors in B,
        C and D do not count, since the fit measures these yields.
        """
        if absent := [name for name in regions if name not in self.regions]:
            raise FitError(f"abcd: {process}: no region {absent[0]}; there are: {', '.join(self.regions)}")
        found = {name: self.regions[name].process(process) for name in regions}
        events = {name: float(one.nominal.sum()) for name, one in found.items()}
        if empty := [name for name in regions if events[name] <= 0]:
            raise FitError(f"abcd: {process}: {events[empty[0]]:.4g} events in region {empty[0]}: some are needed")
        a, b, c, d = regions
        factor = events[b] * events[c] / events[d] / events[a]
        changed = {name: replace(found[name], variance=np.zeros_like(found[name].variance)) for name in (b, c, d)}
        templates = {name: self.regions[name].with_process(one) for name, one in changed.items()}
        templates[a] = self.regions[a].with_process(found[a].scaled(factor))
        if abs(factor - 1) > 1e-6:
            note = Note(process, f"scaled by {factor:.4g} in {a}: to its yields in {b} · {c} / {d}")
            templates[a] = templates[a].with_notes([note])
        return replace(self.map(templates), abcd={**self.abcd, process: tuple(regions)})

    @staticmethod
    def require_different_factors(
        strengths: Iterable[str], free: Mapping[str, Sequence[str]] | Sequence[str], abcd: Iterable[str]
    ) -> None:
        """Refuse factors that would be one by their names, before there are templates; `abcd` are tied processes."""
        require_different_factors(strengths, free, abcd)

    def rename_reserved(self) -> Measurement:
        """Give sources whose names mean something else in a workspace other ones, and say so in a note.

        These are the factors of the measurement, the luminosity of HistFactory and the MC statistics of the regions.
        """
        reserved = {*self.reserved, *self.factors}
        wanted = [name for name in self.sources if name in reserved]
        words = dict(zip(wanted, choose_words(wanted, {*reserved, *self.sources}), strict=True))
        regions = {name: _rename_sources(region, words) for name, region in self.regions.items()}
        groups = {group: tuple(words.get(name, name) for name in members) for group, members in self.groups.items()}
        other = {name: word for name, word in words.items() if name not in self.factors}
        fixed = {other.get(name, name): value for name, value in self.fixed.items()}
        bounds = {other.get(name, name): ends for name, ends in self.bounds.items()}
        interest = self.spell_interest(words)
        return replace(self, regions=regions, groups=groups, of_interest=interest, fixed=fixed, bounds=bounds)

    def spell_interest(self, words: Mapping[str, str]) -> tuple[str, ...]:
        """Return `of_interest` where sources have other names."""
        return tuple(words.get(name, name) if name in self.unconstrained else name for name in self.of_interest)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; `from_dict` reads it back."""
        return {
            "regions": {name: region.to_dict() for name, region in self.regions.items()},
            "strengths": {name: list(processes) for name, processes in self.strengths.items()},
            "of_interest": list(self.of_interest),
            "free": {name: list(processes) for name, processes in name_factors(self.free).items()},
            "fixed": dict(self.fixed),
            "bounds": {name: list(ends) for name, ends in self.bounds.items()},
            "groups": {name: list(members) for name, members in self.groups.items()},
            "abcd": {name: list(regions) for name, regions in self.abcd.items()},
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Measurement:
        """Make a measurement of what `to_dict` returned; anything else is refused."""
        try:
            regions = {str(name): TemplateSet.from_dict(region) for name, region in plain["regions"].items()}
            given = {name: plain[name] for name in ("strengths", "of_interest", "free", "fixed", "bounds", "groups")}
            return cls(regions, **given, abcd=plain.get("abcd", {}))
        except MALFORMED as error:
            raise FitError(f"no measurement can be made of this: {error}") from error

    def _check_names(self) -> None:
        for kind, names in (("region", self.regions), ("parameter", self.factors), ("group", self.groups)):
            for name in names:
                if kind != "group" and (not WORD.fullmatch(name) or not name.isascii()):
                    raise FitError(f"{kind} {name!r}: a word of letters, digits and underscores is needed")
                if kind in ("parameter", "region") and (name in RESERVED or name.startswith("staterror_")):
                    raise FitError(f"the name {name} means something else in HistFactory: choose another")
        require_different_factors(self.strengths, self.free, self.abcd)
        for one, two in combinations(self.regions.values(), 2):
            roles = {p.name: p.role for p in one.processes}
            for process in two.processes:
                if roles.get(process.name, process.role) is not process.role:
                    raise FitError(f"process {process.name} is signal in one region and background in another")

    def _check_factors(self) -> None:
        signals, backgrounds = self.of_role(Role.SIGNAL), self.of_role(Role.BACKGROUND)
        tied = {process: (process,) for process in self.abcd}
        scales = (
            ("strengths", self.strengths, signals),
            ("free", name_factors(self.free), backgrounds),
            ("abcd", tied, backgrounds),
        )
        for what, factors, known in scales:
            for name, processes in factors.items():
                if wrong := [p for p in processes if p not in known]:
                    kind = "signal" if what == "strengths" else "background"
                    raise FitError(f"{what}: {name}: {wrong[0]} is no {kind} process; there are: {', '.join(known)}")
        scaled = [process for _, factors, _ in scales for processes in factors.values() for process in processes]
        if twice := find_repeated(scaled):
            raise FitError(f"process {twice[0]} is scaled by two parameters: name it in one")
        if unscaled := [name for name in signals if name not in scaled]:
            raise FitError(f"signal {unscaled[0]} is scaled by no strength: add it to one, or make it a background")

    def _check_parameters(self) -> None:
        known = {**dict.fromkeys(self.factors, 1.0), **dict.fromkeys(self.sources, 0.0)}
        for what, names in (("fixed", self.fixed), ("bounds", self.bounds)):
            if unknown := [name for name in names if name not in known]:
                raise FitError(f"{what}: no parameter {unknown[0]}; there are: {', '.join(known)}")
        for name, (low, high) in self.bounds.items():
            if not low < high or not low <= self.fixed.get(name, known[name]) <= high:
                raise FitError(
                    f"bounds: {name}: {low:g} to {high:g} must contain {self.fixed.get(name, known[name]):g}"
                )
        if bad := [name for name, value in self.fixed.items() if not np.isfinite(value)]:
            raise FitError(f"fixed: {bad[0]}={self.fixed[bad[0]]}: a number is needed")
        for name in self.of_interest:
            if name not in known or name in self.fixed:
                raise FitError(
                    f"of_interest: {name}: a strength or source that is not fixed is needed; there are: "
                    f"{', '.join(one for one in known if one not in self.fixed)}"
                )
        if twice := find_repeated(self.of_interest):
            raise FitError(f"of_interest: {twice[0]} is given twice")
        if not self.of_interest:
            raise FitError("of_interest: all strengths are fixed, nothing is left to measure")
        for group, members in self.groups.items():
            if group in known or group in PARTS:
                raise FitError(f"groups: {group}: the name is taken, choose another")
            if unknown := [name for name in members if name not in known]:
                raise FitError(f"groups: {group}: no source {unknown[0]}; there are: {', '.join(known)}")


def _set(measurement: Measurement, name: str, value: object) -> None:
    object.__setattr__(measurement, name, value)


def _split_source(region_name: str, region: TemplateSet, source: str, by: set[str]) -> TemplateSet:
    if source not in region.sources:
        return region
    names = name_parts(region_name, region, source, by)
    processes = tuple(
        replace(p, shifts={names[p.name] if name == source else name: s for name, s in p.shifts.items()})
        for p in region.processes
    )
    acting = tuple(dict.fromkeys(names.values()))
    return replace(region, processes=processes, sources=_replace_in(region.sources, source, acting))


def _replace_in(names: Sequence[str], old: str, new: tuple[str, ...]) -> tuple[str, ...]:
    """Put names in the place of one."""
    return tuple(n for name in names for n in (new if name == old else (name,)))


def _rename_sources(region: TemplateSet, words: Mapping[str, str]) -> TemplateSet:
    notes = [
        Note(f"source {name}", f"called {words[name]} in the fit: {name} means something else in a workspace")
        for name in region.sources
        if name in words
    ]
    return region.renamed({}, words).with_notes(notes) if notes else region
