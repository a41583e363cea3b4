"""The section `systematics` of an analysis file: what a source does, to which processes, in which eras."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from qbdt.analysis.schema.region_schema import Decorrelate
from qbdt.analysis.schema.sample_schema import GeneratedEvents
from qbdt.analysis.schema.schema_fields import SOURCE_LABEL, ExpressionText, LabelText
from qbdt.data import Expression, Systematic
from qbdt.data.families import ONE_SIGMA, FamilyKind, WeightFamily
from qbdt.errors import DataError
from qbdt.settings import Names, OptionalNames, SettingsSection

ALL_PROCESSES: Any = Field(["*"], description="processes it acts on; wildcards allowed; all simulated ones by default")
DECORRELATE: Any = Field([], description="region, process or both: a nuisance parameter of its own for each")

Size: TypeAlias = float | tuple[float, float]
"""Relative size of a normalisation, or its changes down and up."""


def _read_size(value: Any) -> Any:
    return Systematic.check_size(tuple(value) if isinstance(value, list) else value)


def _read_sizes(value: Any) -> Any:
    return {name: _read_size(one) for name, one in value.items()} if isinstance(value, dict) else _read_size(value)


ONE_SIZE: Any = {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}
SIZES: Any = {"type": "object", "additionalProperties": ONE_SIZE}
Sizes = Annotated[dict[str, Size], BeforeValidator(_read_sizes), WithJsonSchema(SIZES)]
SizeOrSizes = Annotated[
    Size | dict[str, Size],
    BeforeValidator(_read_sizes),
    WithJsonSchema({"anyOf": [*ONE_SIZE["anyOf"], SIZES]}),
]
ChangeWeight: TypeAlias = Callable[[str | None], str | None]
"""Makes the expression of another varied weight; None where there is none."""

NORM: Any = Field({}, description="processes whose normalisation it changes instead, and by how much: {wjets: 0.1}")


class BaseSource(SettingsSection):
    """Keys and properties that sources of all kinds have."""

    eras: OptionalNames = Field([], description="eras in which it acts; all by default")
    correlated: bool = Field(True, description="one nuisance parameter for all eras; false: one for each")

    if TYPE_CHECKING:  # each kind declares it itself: a run writes keys in the order of their declaration
        processes: list[str]

    @property
    def sizes(self) -> Mapping[str, Size]:
        """Processes, or wildcards, whose normalisation it changes, and by how much."""
        return {}

    @property
    def one_sided(self) -> bool:
        """Whether it has no variation down."""
        return False

    @property
    def patterns(self) -> list[str]:
        """Names of processes and wildcards that it acts on."""
        return list(dict.fromkeys((*self.processes, *self.sizes)))

    def find_size(self, process: str) -> Size | None:
        """Size of the normalisation of a process; None where the process is changed in another way."""
        if process in self.sizes:
            return self.sizes[process]
        if process in self.processes:
            return None
        matched = [pattern for pattern in self.sizes if fnmatch.fnmatchcase(process, pattern)]
        if len(matched) > 1:
            raise DataError(f"{process} has two sizes, of {matched[0]!r} and {matched[1]!r}: give it one by its name")
        return self.sizes[matched[0]] if matched else None

    def act_on(self, names: Mapping[str, str]) -> Self:
        """Return the source that acts on some of its processes only, under the names that these are given."""
        sizes = {process: self.find_size(process) for process in names}
        scaled: dict[str, Size] = {}
        for process, size in sizes.items():
            if size is not None and scaled.setdefault(names[process], size) != size:
                known = scaled[names[process]]
                raise DataError(f"{names[process]} has two sizes, {known} and {size}: that of {process} moves it, too")
        others = dict.fromkeys(names[process] for process, size in sizes.items() if size is None)
        return self.model_copy(update={"processes": list(others), **self._with_sizes(scaled)})

    def _with_sizes(self, sizes: Mapping[str, Size]) -> dict[str, Any]:
        """Return the changed fields of a source that has these sizes; without them there are none."""
        return {}

    def with_weights(self, change: ChangeWeight) -> Self:
        """Return the source with its varied weights changed; one that has none stays."""
        return self


class ShapeVariation(SettingsSection):
    """Another set of events. What is not given is as in the nominal sample.

    In paths {process} stands for the process's name and {file} for its nominal files, without folder and ending.
    """

    files: Names | None = Field(None, description="paths or wildcards, relative to the data folder")
    tree: str | None = Field(None, description="TTree or RNTuple")
    columns: dict[str, ExpressionText] = Field({}, description="columns that differ: name to branch or expression")
    weight: ExpressionText | None = Field(None, description="weight of the varied events")
    generated: GeneratedEvents | None = Field(None, description="generated events of the varied files")

    @model_validator(mode="after")
    def _changes_something(self) -> ShapeVariation:
        if not (self.files or self.tree or self.columns or self.weight):
            raise ValueError("a shape variation needs at least one of files, tree, columns, weight")
        return self


class _JoinedSource(BaseSource):
    """A source that may be a normalisation of other processes at the same time."""

    if TYPE_CHECKING:
        norm: dict[str, Size]

    @property
    def sizes(self) -> Mapping[str, Size]:
        """Processes, or wildcards, whose normalisation it changes, and by how much."""
        return self.norm

    def _with_sizes(self, sizes: Mapping[str, Size]) -> dict[str, Any]:
        return {"norm": dict(sizes)}

    @property
    def one_sided(self) -> bool:
        """Whether it has no variation down."""
        return getattr(self, "down", None) is None

    @model_validator(mode="after")
    def _both_sided(self) -> Self:
        for process, size in self.norm.items() if self.one_sided else ():
            if isinstance(size, tuple) or size >= 1:
                raise ValueError(f"norm.{process}: {size}: one number below 1 is needed, since there is no down")
        return self


class WeightSource(_JoinedSource):
    """Other weights for the same events."""

    kind: Literal["weight"]
    label: LabelText | None = SOURCE_LABEL
    decorrelate: Decorrelate = DECORRELATE
    processes: Names = ALL_PROCESSES
    up: ExpressionText = Field(description="varied weight; `nominal` stands for the nominal one: nominal * sf_up / sf")
    down: ExpressionText | None = Field(None, description="the same for down; without it the source is one-sided")
    norm: Sizes = NORM

    def with_weights(self, change: ChangeWeight) -> Self:
        """Return the source with its varied weights changed."""
        return self.model_copy(update={"up": change(self.up), "down": change(self.down)})


class ShapeSource(_JoinedSource):
    """Another set of events, whose number may differ."""

    kind: Literal["shape"]
    label: LabelText | None = SOURCE_LABEL
    decorrelate: Decorrelate = DECORRELATE
    processes: Names = ALL_PROCESSES
    up: ShapeVariation = Field(description="events varied up")
    down: ShapeVariation | None = Field(None, description="events varied down; without it the source is one-sided")
    norm: Sizes = NORM

    def with_weights(self, change: ChangeWeight) -> Self:
        """Return the source with its varied weights, where it has some, changed."""
        sides = {"up": self.up, "down": self.down}
        changed = {key: v and v.model_copy(update={"weight": change(v.weight)}) for key, v in sides.items()}
        return self.model_copy(update=changed)


class NormSource(BaseSource):
    """A relative size on chosen processes."""

    kind: Literal["norm"]
    label: LabelText | None = SOURCE_LABEL
    decorrelate: Decorrelate = DECORRELATE
    processes: OptionalNames = Field(
        [], description="processes it acts on; wildcards allowed; not needed where size names them"
    )
    size: SizeOrSizes = Field(
        description="relative size of one standard deviation, 0.10 for 10 %; changes [down, up]; or process to its size"
    )
    lognormal: bool = Field(False, description="factors 1 + size and 1/(1 + size); always so for sizes from 1 on")

    @property
    def sizes(self) -> Mapping[str, Size]:
        """Processes, or wildcards, and by how much."""
        found = self.size if isinstance(self.size, dict) else dict.fromkeys(self.processes, self.size)
        return {process: self._read(size) for process, size in found.items()}

    def _read(self, size: Size) -> Size:
        return size if not self.lognormal or isinstance(size, tuple) else (1 / (1 + size) - 1, size)

    def _with_sizes(self, sizes: Mapping[str, Size]) -> dict[str, Any]:
        return {"size": dict(sizes), "lognormal": False}

    @model_validator(mode="after")
    def _names_processes_once(self) -> NormSource:
        if bool(self.processes) == isinstance(self.size, dict):
            raise ValueError("processes is missing, or size: {process: size}; one of them says what it acts on")
        if isinstance(self.size, dict) and not self.size:
            raise ValueError("size: at least one process is needed")
        given = self.size.values() if isinstance(self.size, dict) else [self.size]
        if self.lognormal and any(isinstance(size, tuple) for size in given):
            raise ValueError("lognormal: a pair [down, up] says what both factors are; remove one of them")
        return self


class FamilySource(BaseSource):
    """A family of weights, such as those of parton densities, as one or a few sources."""

    kind: Literal["replicas", "hessian", "envelope"]
    label: LabelText | None = SOURCE_LABEL
    processes: Names = ALL_PROCESSES
    weights: ExpressionText = Field(description="list of factors on the nominal weight, one per member: LHEPdfWeight")
    members: tuple[int, int] | None = Field(
        None, description="first and last member that count, from 0; all by default"
    )
    central: ExpressionText = Field("1", description="hessian: factor of the central member: LHEPdfWeight[0]")
    symmetric: bool = Field(True, description="hessian: one member per eigenvector; false: pairs of plus and minus")
    confidence: float = Field(ONE_SIGMA, gt=0, lt=1, description="hessian: confidence level of the set: 0.90 for CT")
    keep: float = Field(0.99, gt=0, le=1, description="share of the mean squared effect that the components keep")
    components: int | None = Field(None, ge=1, description="number of components, at most")

    @model_validator(mode="after")
    def _of_its_kind(self) -> FamilySource:
        own = {"hessian": {"central", "symmetric", "confidence"}, "envelope": set()}.get(self.kind, set())
        own |= set() if self.kind == "envelope" else {"keep", "components"}
        optional = {"central", "symmetric", "confidence", "keep", "components"}
        if idle := sorted((optional - own) & self.model_fields_set):
            raise ValueError(f"{idle[0]} is not a setting of kind: {self.kind}")
        if self.members is not None and not 0 <= self.members[0] < self.members[1]:
            raise ValueError(f"members: [{self.members[0]}, {self.members[1]}]: the first and the last, from 0")
        return self

    def family(self, name: str) -> WeightFamily:
        """Return the family under its name."""
        return WeightFamily(
            name,
            FamilyKind(self.kind),
            Expression(self.weights),
            self.members,
            Expression(self.central),
            self.symmetric,
            self.confidence,
            self.keep,
            self.components,
        )


Source = Annotated[WeightSource | ShapeSource | NormSource | FamilySource, Field(discriminator="kind")]
