"""The section `systematics` of an analysis file: what a source does, to which processes, in which eras."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from qbdt.analysis.region_schema import Decorrelate
from qbdt.analysis.sample_schema import GeneratedEvents
from qbdt.analysis.schema_fields import SOURCE_LABEL, ExpressionText, LabelText
from qbdt.data import Expression
from qbdt.data.families import ONE_SIGMA, FamilyKind, WeightFamily
from qbdt.settings import Names, OptionalNames, Section

__all__ = ["FamilySource", "NormSource", "ShapeSource", "ShapeVariation", "Source", "WeightSource"]

DECORRELATE: Any = Field([], description="region, process or both: a nuisance parameter of its own for each")


class SourceEras(Section):
    """In which eras a source acts, and whether with one nuisance parameter."""

    eras: OptionalNames = Field([], description="eras in which it acts; all by default")
    correlated: bool = Field(True, description="one nuisance parameter for all eras; false: one for each")


class ShapeVariation(Section):
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


class WeightSource(SourceEras):
    """Other weights for the same events."""

    kind: Literal["weight"]
    label: LabelText | None = SOURCE_LABEL
    decorrelate: Decorrelate = DECORRELATE
    processes: Names = Field(
        ["*"], description="processes it acts on; wildcards allowed; all simulated ones by default"
    )
    up: ExpressionText = Field(description="varied weight; `nominal` stands for the nominal one: nominal * sf_up / sf")
    down: ExpressionText | None = Field(None, description="the same for down; without it the source is one-sided")


class ShapeSource(SourceEras):
    """Another set of events, whose number may differ."""

    kind: Literal["shape"]
    label: LabelText | None = SOURCE_LABEL
    decorrelate: Decorrelate = DECORRELATE
    processes: Names = Field(
        ["*"], description="processes it acts on; wildcards allowed; all simulated ones by default"
    )
    up: ShapeVariation = Field(description="events varied up")
    down: ShapeVariation | None = Field(None, description="events varied down; without it the source is one-sided")


class NormSource(SourceEras):
    """A relative size on chosen processes."""

    kind: Literal["norm"]
    label: LabelText | None = SOURCE_LABEL
    decorrelate: Decorrelate = DECORRELATE
    processes: Names = Field(description="processes it acts on; wildcards allowed")
    size: float = Field(description="relative size of one standard deviation: 0.10 for 10 %", gt=-1, lt=1)

    @model_validator(mode="after")
    def _not_zero(self) -> NormSource:
        if self.size == 0 or math.isnan(self.size):
            raise ValueError(f"size {self.size} changes nothing")
        return self


class FamilySource(SourceEras):
    """A family of weights, such as those of parton densities, as one or a few sources."""

    kind: Literal["replicas", "hessian", "envelope"]
    label: LabelText | None = SOURCE_LABEL
    processes: Names = Field(
        ["*"], description="processes it acts on; wildcards allowed; all simulated ones by default"
    )
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
