"""`TemplateSet`: for each process its histogram, the MC variance and the up and down shifts of each source.

Flows in: arrays over bins from `score_histograms`. Flows out: arrays for the fit, `hist` histograms, plain data.
Bins are ordered from background-like to signal-like. Everything is immutable; each change is a new set with a `Note`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Role, Systematic
from qbdt.errors import MALFORMED, FitError, find_repeated
from qbdt.files.records import read_floats
from qbdt.tables import Table


@dataclass(frozen=True)
class Note:
    """Something that was done to the templates and that a reader of the result should know."""

    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"


@dataclass(frozen=True, eq=False)
class Shift:
    """Effect of one source on one process."""

    # up, down: events per bin for θ = +1 and θ = −1
    up: Floats
    down: Floats
    mirrored: bool = False  # Whether `down` was not given but reflected: down = 2 · nominal − up
    # For a pure normalisation: the factors on the yield at θ = −1 and θ = +1. None for everything else.
    factors: tuple[float, float] | None = None
    # Statistical variance per bin of the change for θ = +1, relative to the nominal content, events²; None where it is
    # not known
    variance: Floats | None = None

    def map(self, change: Callable[[Floats], Floats]) -> Shift:
        """Apply a linear operation on bins, to the variance too."""
        variance = None if self.variance is None else change(self.variance)
        return replace(self, up=change(self.up), down=change(self.down), variance=variance)

    def plus(self, other: Shift) -> Shift:
        """Add the shift of other events."""
        known = self.variance is not None and other.variance is not None
        variance = np.add(self.variance, other.variance) if known else None  # type: ignore[arg-type]
        return replace(self, up=self.up + other.up, down=self.down + other.down, variance=variance)


@dataclass(frozen=True, eq=False)
class ProcessTemplates:
    """One process: events per bin, Σw² per bin, and the shift of each source that acts on it."""

    name: str
    role: Role
    nominal: Floats
    variance: Floats
    shifts: Mapping[str, Shift] = field(default_factory=dict)

    def linear_shift(self, source: str) -> Floats:
        """Δ_k per bin: change of the events for θ = +1 in the linear model, see `Systematic.shift`."""
        if source not in self.shifts:
            return np.zeros_like(self.nominal)
        shift = self.shifts[source]
        return Systematic.shift(self.nominal, shift.up, None if shift.mirrored else shift.down)

    def plus(self, other: ProcessTemplates) -> ProcessTemplates:
        """Add the templates of other events of the same process."""
        shifts = {name: shift.plus(other.shifts[name]) for name, shift in self.shifts.items()}
        nominal, variance = self.nominal + other.nominal, self.variance + other.variance
        return replace(self, nominal=nominal, variance=variance, shifts=shifts)

    def map(self, change: Callable[[Floats], Floats]) -> ProcessTemplates:
        """Apply a linear operation on bins to the nominal and all shifts, and to Σw²."""
        shifts = {name: shift.map(change) for name, shift in self.shifts.items()}
        return replace(self, nominal=change(self.nominal), variance=change(self.variance), shifts=shifts)

    def scaled(self, factor: float) -> ProcessTemplates:
        """Multiply yields by a factor and variances by its square."""
        scaled = self.map(lambda values: factor * values)
        shifts = {
            name: shift if shift.variance is None else replace(shift, variance=factor * shift.variance)
            for name, shift in scaled.shifts.items()
        }
        return replace(scaled, variance=factor * scaled.variance, shifts=shifts)


@dataclass(frozen=True, eq=False)
class ModelArrays:
    """The linear model λ = μ(s + Σθ_kΔs_k) + b + Σθ_kΔb_k as arrays, for the fast solver; leading axes are batches."""

    # signal, background: events per bin, shape (…, bins)
    signal: Floats
    background: Floats
    # signal_shifts, background_shifts: change for θ_k = +1, shape (…, sources, bins)
    signal_shifts: Floats
    background_shifts: Floats
    # Σw² of the simulated background per bin, shape (…, bins); zeros for a fit without MC statistics
    mc_variance: Floats

    @property
    def shifts(self) -> Floats:
        """Change of s + b at μ = 1 for θ_k = +1."""
        return self.signal_shifts + self.background_shifts

    def without_systematics(self) -> ModelArrays:
        """Return the model with no sources: the stat-only fit."""
        none = self.signal_shifts[..., :0, :]
        return replace(self, signal_shifts=none, background_shifts=none)

    def without_mc_stat(self) -> ModelArrays:
        """Return the model of infinitely many simulated events."""
        return replace(self, mc_variance=np.zeros_like(self.mc_variance))


@dataclass(frozen=True, eq=False)
class TemplateSet:
    """Histograms of one variable for all processes with all sources.

    Attributes
    ----------
    variable
        Title of the axis.
    edges
        Bin edges, ascending; n + 1 of them.
    processes
        Simulated processes; at least one signal and one background.
    sources
        Names of the systematic sources, in order.
    data
        Recorded events per bin, or None: the fit then uses the Asimov data s + b.
    notes
        Bins that were merged, shifts that were bounded, sources that were dropped.

    Examples
    --------
    >>> import numpy as np
    >>> s = ProcessTemplates("higgs", Role.SIGNAL, np.array([1.0, 4.0]), np.array([0.1, 0.4]))
    >>> b = ProcessTemplates("ttbar", Role.BACKGROUND, np.array([90.0, 10.0]), np.array([9.0, 1.0]))
    >>> templates = TemplateSet("score", np.array([0.0, 0.5, 1.0]), (s, b))
    >>> templates.asimov
    array([91., 14.])
    """

    variable: str
    edges: Floats
    processes: tuple[ProcessTemplates, ...]
    sources: tuple[str, ...] = ()
    data: Floats | None = None
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        for role in (Role.SIGNAL, Role.BACKGROUND):
            if not any(p.role is role for p in self.processes):
                raise FitError(f"no {role} process in the templates: signal and background are both needed")
        if twice := find_repeated(p.name for p in self.processes):
            raise FitError(f"two processes of the templates are named {', '.join(twice)}")
        if twice := find_repeated(self.sources):
            raise FitError(f"two sources of the templates are named {', '.join(twice)}")
        unnamed = sorted({name for p in self.processes for name in p.shifts if name not in self.sources})
        if unnamed:
            raise FitError(f"sources={list(self.sources)}: {', '.join(unnamed)} shifts a process and is not among them")

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def signal(self) -> Floats:
        """Expected signal events per bin, all signal processes together."""
        return self.total(Role.SIGNAL)

    @property
    def background(self) -> Floats:
        """Expected background events per bin, all background processes together."""
        return self.total(Role.BACKGROUND)

    @property
    def asimov(self) -> Floats:
        """Expected events per bin at μ = 1."""
        return self.signal + self.background

    @property
    def effective_background(self) -> Floats:
        """Effective number of simulated background events per bin, (Σw)²/Σw²; 0 where Σw ≤ 0."""
        variance = sum_of(p.variance for p in self.of_role(Role.BACKGROUND))
        usable = (self.background > 0) & (variance > 0)
        return np.where(usable, self.background**2 / np.where(usable, variance, 1.0), 0.0)

    def of_role(self, role: Role) -> tuple[ProcessTemplates, ...]:
        """Return the processes of one role."""
        return tuple(p for p in self.processes if p.role is role)

    def process(self, name: str) -> ProcessTemplates:
        """Return one process."""
        for process in self.processes:
            if process.name == name:
                return process
        raise FitError(f"no process {name} in the templates; there are: {', '.join(p.name for p in self.processes)}")

    def total(self, role: Role, source: str | None = None, direction: str = "up") -> Floats:
        """Events per bin of all processes of one role, nominal or with one source moved."""
        shifted = {p.name: p.shifts.get(source or "") for p in self.of_role(role)}
        return sum_of(
            p.nominal if (s := shifted[p.name]) is None else getattr(s, direction) for p in self.of_role(role)
        )

    def changes_shape(self, source: str) -> bool:
        """Whether a source does more than scale processes: a pure normalisation does not."""
        return any(source in p.shifts and p.shifts[source].factors is None for p in self.processes)

    def moved_role(self, source: str) -> Role:
        """Return the role whose events a source is shown on: background, unless the source moves the signal alone."""
        moved = {process.role for process in self.processes if source in process.shifts}
        return Role.SIGNAL if moved == {Role.SIGNAL} else Role.BACKGROUND

    def arrays(self) -> ModelArrays:
        """Return the linear model as arrays, for `qbdt.inference.asimov` and the profiled information."""
        return ModelArrays(
            self.signal,
            self.background,
            self._linear_shifts(Role.SIGNAL),
            self._linear_shifts(Role.BACKGROUND),
            sum_of(p.variance for p in self.of_role(Role.BACKGROUND)),
        )

    def _linear_shifts(self, role: Role) -> Floats:
        rows = [sum_of(p.linear_shift(source) for p in self.of_role(role)) for source in self.sources]
        return np.array(rows, dtype=np.float64).reshape(len(self.sources), self.n_bins)

    def __add__(self, other: TemplateSet) -> TemplateSet:
        """Add the templates of other events with the same bins."""
        pairs = zip(self.processes, other.processes, strict=True)
        processes = tuple(one.plus(its) for one, its in pairs)
        data = None if self.data is None or other.data is None else self.data + other.data
        return replace(self, processes=processes, data=data)

    def scaled(self, factor: float) -> TemplateSet:
        """Multiply simulated yields by a factor and Σw² by its square, for a sample of all events."""
        return replace(self, processes=tuple(process.scaled(factor) for process in self.processes))

    def merged(self, starts: Sequence[int]) -> TemplateSet:
        """Join neighbouring bins: `starts` are the first bins of each group, beginning with 0."""
        index = np.asarray(starts, dtype=np.intp)
        processes = tuple(p.map(lambda values: np.add.reduceat(values, index)) for p in self.processes)
        data = None if self.data is None else np.add.reduceat(self.data, index)
        edges = np.append(self.edges[:-1][index], self.edges[-1])
        return replace(self, edges=edges, processes=processes, data=data)

    def with_sources(self, names: Sequence[str]) -> TemplateSet:
        """Keep only these sources."""
        unknown = [name for name in names if name not in self.sources]
        if unknown:
            raise FitError(f"no source {', '.join(unknown)} in the templates; there are: {', '.join(self.sources)}")
        processes = tuple(
            replace(p, shifts={name: s for name, s in p.shifts.items() if name in names}) for p in self.processes
        )
        return replace(self, processes=processes, sources=tuple(name for name in self.sources if name in names))

    def renamed(self, processes: Mapping[str, str], sources: Mapping[str, str]) -> TemplateSet:
        """Return the same templates with other names; those that are not in the mappings stay."""

        def rename(process: ProcessTemplates) -> ProcessTemplates:
            shifts = {sources.get(name, name): shift for name, shift in process.shifts.items()}
            return replace(process, name=processes.get(process.name, process.name), shifts=shifts)

        named = tuple(sources.get(name, name) for name in self.sources)
        return replace(self, processes=tuple(map(rename, self.processes)), sources=named)

    def with_process(self, process: ProcessTemplates) -> TemplateSet:
        """Put other templates of a process in the place of its own."""
        return replace(self, processes=tuple(process if p.name == process.name else p for p in self.processes))

    def with_notes(self, notes: Sequence[Note]) -> TemplateSet:
        """Add notes."""
        return replace(self, notes=self.notes + tuple(notes))

    def histogram(self, process: str, source: str | None = None, direction: str = "up") -> Any:
        """One template as a `hist.Hist`, nominal or with one source moved, with the MC variances of the nominal one."""
        templates = self.process(process)
        if source is not None and source not in templates.shifts:
            raise FitError(f"source {source} does not act on process {process}")
        values = templates.nominal if source is None else getattr(templates.shifts[source], direction)
        return make_histogram(values, templates.variance, self.edges, self.variable)

    def tables(self) -> tuple[Table, ...]:
        """Yields per bin: signal, background, the MC uncertainty of the background and its effective events."""
        error = np.sqrt(sum_of(p.variance for p in self.of_role(Role.BACKGROUND)))
        columns = [self.edges[:-1], self.edges[1:], self.signal, self.background, error, self.effective_background]
        rows = tuple(tuple(f"{value:.4g}" for value in row) for row in zip(*columns, strict=True))
        header = ("from", "to", "signal", "background", "± MC", "effective")
        return (Table(f"Templates of {self.variable}", header, rows),)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; `from_dict` reads it back."""
        return {
            "variable": self.variable,
            "edges": self.edges.tolist(),
            "processes": [_process_to_dict(p) for p in self.processes],
            "sources": list(self.sources),
            "data": None if self.data is None else self.data.tolist(),
            "notes": [[note.subject, note.message] for note in self.notes],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TemplateSet:
        """Make a set of what `to_dict` returned; anything else is refused."""
        try:
            edges = np.array(plain["edges"], dtype=np.float64)
            n_bins = edges.size - 1
            return cls(
                str(plain["variable"]),
                edges,
                tuple(_process_from_dict(p, n_bins) for p in plain["processes"]),
                tuple(map(str, plain["sources"])),
                None if plain["data"] is None else read_floats(plain["data"], n_bins),
                tuple(Note(str(subject), str(message)) for subject, message in plain["notes"]),
            )
        except MALFORMED as error:
            raise FitError(f"no templates can be made of this: {error}") from error


def sum_of(arrays: Any) -> Floats:
    """Sum of one or more arrays over bins."""
    return np.asarray(np.sum(list(arrays), axis=0, dtype=np.float64))


def make_histogram(values: Floats, variance: Floats, edges: Floats, label: str = "") -> Any:
    """Contents and variances of bins as a `hist.Hist`, which uproot writes and notebooks draw."""
    import hist

    histogram = hist.Hist(hist.axis.Variable(edges, name="score", label=label), storage=hist.storage.Weight())
    histogram.view().value = values
    histogram.view().variance = variance
    return histogram


def _process_to_dict(process: ProcessTemplates) -> dict[str, Any]:
    return {
        "name": process.name,
        "role": str(process.role),
        "nominal": process.nominal.tolist(),
        "variance": process.variance.tolist(),
        "shifts": {name: _shift_to_dict(shift) for name, shift in process.shifts.items()},
    }


def _shift_to_dict(shift: Shift) -> dict[str, Any]:
    plain = {"up": shift.up.tolist(), "down": shift.down.tolist(), "mirrored": shift.mirrored, "factors": shift.factors}
    return plain if shift.variance is None else {**plain, "shift_variance": shift.variance.tolist()}


def _process_from_dict(plain: Mapping[str, Any], n_bins: int) -> ProcessTemplates:
    shifts = {
        name: Shift(
            read_floats(s["up"], n_bins),
            read_floats(s["down"], n_bins),
            bool(s["mirrored"]),
            None if s["factors"] is None else _read_factors(s["factors"]),
            None if s.get("shift_variance") is None else read_floats(s["shift_variance"], n_bins),
        )
        for name, s in plain["shifts"].items()
    }
    nominal, variance = (read_floats(plain[key], n_bins) for key in ("nominal", "variance"))
    return ProcessTemplates(str(plain["name"]), Role(plain["role"]), nominal, variance, shifts)


def _read_factors(values: Any) -> tuple[float, float]:
    """Factors of the yield, up and down."""
    up, down = values
    return float(up), float(down)
