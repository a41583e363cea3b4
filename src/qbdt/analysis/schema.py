"""The typed schema of an analysis file: what may stand in it, with defaults and descriptions for editors."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import Field, create_model, model_validator

from qbdt.analysis.fit_schema import Fit
from qbdt.analysis.region_schema import Decorrelate, Region
from qbdt.analysis.schema_fields import (
    SOURCE_LABEL,
    Colour,
    ExpressionText,
    LabelText,
    Placeholders,
)
from qbdt.errors import find_repeated
from qbdt.settings import Names, OptionalNames, Section
from qbdt.training import Settings

if TYPE_CHECKING:
    from qbdt.report import Labels

__all__ = [
    "Analysis",
    "BuiltinDataset",
    "FigureText",
    "Fit",
    "Folds",
    "NormSource",
    "Region",
    "SampleFiles",
    "ShapeSource",
    "ShapeVariation",
    "Source",
    "Training",
    "Variable",
    "WeightSource",
]


DECORRELATE: Any = Field([], description="region, process or both: a nuisance parameter of its own for each")


class SampleFiles(Section):
    """One process and where its events are."""

    role: Literal["signal", "background", "data"] = Field(description="what the sample is")
    files: Names = Field(description="paths or wildcards, relative to the data folder")
    tree: str | None = Field(None, description="TTree or RNTuple; by default the one named at the top")
    weight: ExpressionText | None = Field(
        None, description="weight of this sample; by default the one named at the top"
    )
    scale: float = Field(
        1.0, description="factor on all weights of this sample, also on varied ones", allow_inf_nan=False
    )
    selection: ExpressionText | None = Field(None, description="further selection of this sample")
    label: LabelText | None = Field(None, description="what figures call it; formulas between dollar signs")
    color: Colour | None = Field(None, description="fill colour in figures: a name such as orange, or #rrggbb")


class ShapeVariation(Section):
    """Another set of events. What is not given is as in the nominal sample.

    In paths {process} stands for the process's name and {file} for its nominal files, without folder and ending.
    """

    files: Names | None = Field(None, description="paths or wildcards, relative to the data folder")
    tree: str | None = Field(None, description="TTree or RNTuple")
    columns: dict[str, ExpressionText] = Field({}, description="columns that differ: name to branch or expression")
    weight: ExpressionText | None = Field(None, description="weight of the varied events")

    @model_validator(mode="after")
    def _changes_something(self) -> ShapeVariation:
        if not (self.files or self.tree or self.columns or self.weight):
            raise ValueError("a shape variation needs at least one of files, tree, columns, weight")
        return self


class WeightSource(Section):
    """Other weights for the same events."""

    kind: Literal["weight"]
    label: LabelText | None = SOURCE_LABEL
    decorrelate: Decorrelate = DECORRELATE
    processes: Names = Field(
        ["*"], description="processes it acts on; wildcards allowed; all simulated ones by default"
    )
    up: ExpressionText = Field(description="varied weight; `nominal` stands for the nominal one: nominal * sf_up / sf")
    down: ExpressionText | None = Field(None, description="the same for down; without it the source is one-sided")


class ShapeSource(Section):
    """Another set of events, whose number may differ."""

    kind: Literal["shape"]
    label: LabelText | None = SOURCE_LABEL
    decorrelate: Decorrelate = DECORRELATE
    processes: Names = Field(
        ["*"], description="processes it acts on; wildcards allowed; all simulated ones by default"
    )
    up: ShapeVariation = Field(description="events varied up")
    down: ShapeVariation | None = Field(None, description="events varied down; without it the source is one-sided")


class NormSource(Section):
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


Source = Annotated[WeightSource | ShapeSource | NormSource, Field(discriminator="kind")]


class Folds(Section):
    """How events are divided for cross-training: by identifiers, so that shifted copies stay together."""

    by: Literal["modulo", "hash", "split"] = Field(
        "modulo", description="column modulo k; a hash of several columns; or a column that holds the fold"
    )
    columns: Names = Field(description="identifier columns")
    k: int = Field(2, ge=2, le=1000, description="number of folds")
    salt: int = Field(0, description="for `hash`: another number gives another division")

    @model_validator(mode="after")
    def _one_column(self) -> Folds:
        if self.by != "hash" and len(self.columns) != 1:
            raise ValueError(f"by: {self.by} takes one column, not {len(self.columns)}; use by: hash for several")
        if self.by != "hash" and self.salt:
            raise ValueError(f"salt goes with by: hash, not with by: {self.by}")
        return self


def _fields_of_settings() -> dict[str, Any]:
    """The settings of a training as fields of a section: types, defaults, bounds and descriptions."""
    types, found = get_type_hints(Settings), {}
    for name, rule in Settings.rules().items():
        default, kind = getattr(Settings, name, None), Literal[rule.choices] if rule.choices else types[name]
        bounds: Any = {"ge": rule.at_least, "gt": rule.above, "le": rule.at_most}
        annotation = kind | None if default is None else kind
        found[name] = (annotation, Field(default, description=rule.description, **bounds))
    del found["categorical_features"]  # a key of its own, since columns and the fit know them too
    return found


_Training: Any = create_model("_Training", __base__=Section, **_fields_of_settings())


class Training(_Training):
    """Settings of the training, named as in `QBDTClassifier`: those declared in `qbdt.training`."""

    if TYPE_CHECKING:  # read here; types cannot see the others
        method: str = "profile"

    binning: Literal["quantile"] | dict[str, tuple[int, float, float]] = Field(
        "quantile", description="quantile, or for each feature its equal-width bins: [number, low, high]"
    )
    random_state: int | None = Field(
        None, ge=0, le=2**63 - 1, description="seed, where settings ask for random numbers"
    )
    monotonic_constraints: dict[str, Literal[-1, 0, 1]] = Field(
        {}, description=Settings.rules()["monotonic_constraints"].description
    )
    systematics: list[str] | None = Field(None, description="sources to train with; all by default, [] for none")


class BuiltinDataset(Section):
    """A dataset that comes with qbdt, instead of samples in files."""

    name: str = Field(description="for example inferno")
    options: dict[str, int | float | str | bool] = Field({}, description="arguments of the dataset: n, seed, …")


class Variable(Section):
    """How figures call a feature."""

    label: LabelText | None = Field(None, description="title of the axis; formulas between dollar signs")
    unit: str | None = Field(None, description="unit, written after the label: GeV")

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


_AFTER_TRAINING: Any = {
    "fit": True,
    "variables": True,
    "figures": True,
    "samples": {"__all__": {"label", "color"}},
    "systematics": {"__all__": {"label", "decorrelate"}},
    "regions": {"__all__": {"label", "title", "bins", "range", "edges", "blind"}},
}
"""Keys that a training does not depend on."""


class Analysis(Section):
    """One analysis: features, samples, systematic sources, folds, training, fit."""

    name: str = Field("analysis", description="what reports call it")
    dataset: BuiltinDataset | None = Field(
        None, description="a dataset that comes with qbdt, instead of samples in files"
    )
    features: list[str] = Field([], description="what is trained on: branches or derived columns")
    categorical: OptionalNames = Field(
        [], description="features whose values are categories: whole numbers without an order"
    )
    columns: dict[str, ExpressionText] = Field({}, description="derived columns: name to expression")
    weight: ExpressionText = Field("1", description="weight of an event: its true expected yield")
    selection: ExpressionText | None = Field(None, description="events to keep, in nominal and varied samples")
    missing: Placeholders | dict[str, Placeholders] = Field(
        [], description="values that mean missing, such as -999 or .nan: for all columns, or for each by name"
    )
    tree: str | None = Field(None, description="TTree or RNTuple in ROOT files; not needed where a file has one only")
    samples: dict[str, SampleFiles] = Field({}, description="process name to role and files")
    systematics: dict[str, Source] = Field({}, description="source name to what it does")
    regions: dict[str, Region] = Field(
        {}, description="region name to its events and what is histogrammed; one region with the score by default"
    )
    folds: Folds | None = Field(None, description="how events are divided for cross-training")
    variables: dict[str, Variable] = Field({}, description="labels and units of features in figures")
    figures: FigureText = Field(FigureText(), description="experiment, energy and luminosity above figures")
    training: Training = Field(Training(), description="settings of the training")
    fit: Fit = Field(Fit(), description="from scores to templates and a likelihood fit")

    def what_is_trained(self) -> dict[str, Any]:
        """Plain content that training and scores depend on."""
        return self.model_dump(mode="json", exclude={"name": True, **_AFTER_TRAINING})

    def what_is_shown(self) -> dict[str, Any]:
        """Plain content that the fit and its figures depend on, beside the scores."""
        return self.model_dump(mode="json", include=_AFTER_TRAINING)

    def figure_labels(self) -> Labels:
        """Labels, colours and the line above figures."""
        from qbdt.report import Labels

        samples, sources = self.samples, self.systematics
        return Labels(
            processes={name: sample.label for name, sample in samples.items() if sample.label},
            variables={name: variable.title(name) for name, variable in self.variables.items()},
            sources={name: source.label for name, source in sources.items() if source.label},
            regions={name: region.label for name, region in self.regions.items() if region.label},
            colours={name: sample.color for name, sample in samples.items() if sample.color},
            **self.figures.model_dump(),
        )

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """JSON schema of an analysis file, for editors that complete and check while typing."""
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **cls.model_json_schema()}

    @model_validator(mode="after")
    def _complete(self) -> Analysis:
        if self.dataset is not None:
            own = ("features", "columns", "weight", "selection", "missing", "tree", "samples", "systematics")
            given = [key for key in own if key in self.model_fields_set]
            if given:
                raise ValueError(f"dataset comes with its own {', '.join(given)}: remove one or the other")
            return self
        for key in ("features", "samples"):
            if not getattr(self, key):
                raise ValueError(f"{key}: at least one is needed")
        if twice := find_repeated(self.features):
            raise ValueError(f"features: {', '.join(twice)} is given twice")
        self._check_training()
        return self

    @model_validator(mode="after")
    def _categories_have_no_order(self) -> Analysis:
        if both := [name for name in self.categorical if self.training.monotonic_constraints.get(name)]:
            raise ValueError(f"training.monotonic_constraints: {both[0]} is categorical: its values have no order")
        return self

    @model_validator(mode="after")
    def _fit_of_the_profiled_method(self) -> Analysis:
        """Bins that keep the profiled information, and no transform, are what a profiled score is made for."""
        if self.training.method == "profile":
            given = self.fit.model_fields_set
            own = {"transform": "none", "binning": "optimised"}
            changed = {key: value for key, value in own.items() if key not in given}
            self.__dict__["fit"] = self.fit.model_copy(update=changed)
        return self

    @model_validator(mode="after")
    def _variables_are_features(self) -> Analysis:
        if self.features and (unknown := [name for name in self.variables if name not in self.features]):
            raise ValueError(f"variables: no feature {', '.join(unknown)}; there are: {', '.join(self.features)}")
        return self

    @model_validator(mode="after")
    def _regions_are_words(self) -> Analysis:
        for name in self.regions:
            if not re.fullmatch(r"[A-Za-z]\w*", name):
                raise ValueError(f"regions: {name!r}: letters, digits and underscores are needed, a letter first")
        return self

    def _check_training(self) -> None:
        unknown = [name for name in self.training.systematics or () if name not in self.systematics]
        if unknown:
            raise ValueError(f"training.systematics: no source {', '.join(unknown)}")
        for key, names in (
            ("categorical", self.categorical),
            ("training.monotonic_constraints", self.training.monotonic_constraints),
        ):
            if unknown := [name for name in names if name not in self.features]:
                raise ValueError(f"{key}: no feature {', '.join(unknown)}; there are: {', '.join(self.features)}")
        if isinstance(self.training.binning, dict):
            wrong = sorted((set(self.features) - set(self.categorical)) ^ set(self.training.binning))
            if wrong:
                raise ValueError(f"training.binning: features and bins do not match: {', '.join(wrong)}")
            for name, (number, low, high) in self.training.binning.items():
                if number < 1 or not low < high:
                    raise ValueError(f"training.binning.{name}: [{number}, {low}, {high}] are no bins")
