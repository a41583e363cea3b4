"""An analysis file as a whole: its top-level keys, training and folds, and checks across its sections."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from qbdt.analysis.schema.fit_schema import FigureText, Fit, Variable
from qbdt.analysis.schema.from_data import require_factors, require_made_of_samples
from qbdt.analysis.schema.name_checks import (
    name_era_regions,
    name_era_sources,
    require_different_factors,
    require_different_parts,
    require_different_regions,
    require_different_sources,
)
from qbdt.analysis.schema.region_schema import Region
from qbdt.analysis.schema.sample_schema import Era, FriendFiles, SampleFiles
from qbdt.analysis.schema.schema_fields import ExpressionText, Placeholders
from qbdt.analysis.schema.source_schema import FamilySource, Source
from qbdt.analysis.schema.training_schema import Training
from qbdt.data import FoldRule, HashFolds
from qbdt.errors import ConfigError, find_repeated, hint_at, require_known
from qbdt.settings import OptionalNames, SettingsSection

if TYPE_CHECKING:
    from qbdt.report import Labels


class Folds(SettingsSection):
    """How events are divided for cross-training: by identifiers, so that shifted copies stay together."""

    by: Literal["modulo", "hash", "split", "content", "position"] = Field(
        "modulo",
        description="column modulo k; a hash of several columns; a column that holds the fold; without an event number "
        "a hash of the values of columns that no source moves, or the position of the row in its file",
    )
    columns: OptionalNames = Field([], description="identifier columns; for position: columns that must be the same")
    k: int = Field(2, ge=2, le=1000, description="number of folds")
    salt: int = Field(0, description="for `hash`: another number gives another division")

    @model_validator(mode="after")
    def _one_column(self) -> Folds:
        if self.by != "position" and not self.columns:
            raise ValueError(f"columns is missing: by: {self.by} needs to know which")
        if self.by in ("modulo", "split") and len(self.columns) != 1:
            raise ValueError(f"by: {self.by} takes one column, not {len(self.columns)}; use by: hash for several")
        if self.by in ("modulo", "split") and self.salt:
            raise ValueError(f"salt goes with by: hash, not with by: {self.by}")
        return self

    def rule(self) -> FoldRule:
        """Return the rule, as models keep it: content and position are hashes of identifiers that readers make."""
        if self.by == "content":
            return HashFolds.by_content(self.k, self.columns, self.salt)
        if self.by == "position":
            return HashFolds.by_position(self.k, self.salt)
        return FoldRule.from_dict(self.model_dump())


class BuiltinDataset(SettingsSection):
    """A dataset that comes with qbdt, instead of samples in files."""

    name: str = Field(description="for example inferno")
    options: dict[str, int | float | str | bool] = Field({}, description="arguments of the dataset: n, seed, …")


_AFTER_TRAINING: Any = {
    "fit": True,
    "variables": True,
    "figures": True,
    "samples": {"__all__": {"label", "color"}},
    "systematics": {"__all__": {"label", "decorrelate"}},
    "regions": {"__all__": {"label", "title", "bins", "range", "edges", "blind", "draw"}},
}
"""Keys that a training does not depend on, but for those of `_BESIDE` where control regions are fitted beside it."""

_BESIDE: Any = {
    "fit": {
        *("min_entries", "scale", "mc_stat", "mc_model", "systematics", "prune", "smooth", "symmetrise"),
        *("poi", "parameters", "of_interest", "free", "fixed", "abcd"),
    },
    "systematics": {"__all__": {"decorrelate"}},
    "regions": {"__all__": {"bins", "range", "edges"}},
}
"""Keys of the fit that change what control regions know of its parameters."""


class Analysis(SettingsSection):
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
    friends: list[FriendFiles] = Field([], description="trees with more columns of the same events")
    luminosity: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="integrated luminosity in fb⁻¹, for samples with a cross section"
    )
    eras: dict[str, Era] = Field({}, description="periods of running, such as years: name to luminosity and weight")
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

    def describe_training(self) -> dict[str, Any]:
        """Plain content that training and scores depend on."""
        seen = self.model_dump(mode="json", exclude={"name": True, **_AFTER_TRAINING})
        if not self.needs_control_regions:
            return seen
        control = {name: region for name, region in self.regions.items() if region.is_control}
        fitted = self.model_copy(update={"regions": control})
        return {**seen, "beside": fitted.model_dump(mode="json", include=_BESIDE, warnings=False)}

    @property
    def needs_control_regions(self) -> bool:
        """Whether the control regions of this analysis are fitted beside the training."""
        return self.training.partner is not None and self.training.partner.control_regions

    def describe_results(self) -> dict[str, Any]:
        """Plain content that the fit and its figures depend on, beside the scores."""
        # Before 2.13, pydantic warns where part of a source is written, which may be of several types.
        return self.model_dump(mode="json", include=_AFTER_TRAINING, warnings=False)

    def figure_labels(self) -> Labels:
        """Labels, colours and the line above figures."""
        from qbdt.report import Labels

        samples, sources = self.samples, self.systematics
        given = Labels(colours={name: sample.color for name, sample in samples.items() if sample.color})
        signals, backgrounds = ([n for n, s in samples.items() if s.role == role] for role in ("signal", "background"))
        return Labels(
            processes={name: sample.label for name, sample in samples.items() if sample.label},
            variables={name: variable.title(name) for name, variable in self.variables.items()},
            sources={name: source.label for name, source in sources.items() if source.label},
            regions={name: region.label for name, region in self.regions.items() if region.label},
            colours=given.fill_colours(backgrounds, signals),  # the same in all regions and figures
            **self.figures.model_dump(exclude={"luminosity"}),
            luminosity=self.figures.luminosity or self.total_luminosity,
        )

    @property
    def total_luminosity(self) -> float | None:
        """Luminosity of all eras in fb⁻¹, where it is known."""
        known = [era.luminosity for era in self.eras.values()]
        return sum(one for one in known if one) if known and all(known) else self.luminosity

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
    def _names_can_be_printed(self) -> Analysis:
        for key in ("samples", "systematics", "eras"):
            if odd := [name for name in getattr(self, key) if not name.strip() or not name.isprintable()]:
                raise ValueError(f"{key}: a name that can be printed is needed, not {odd[0]!r}")
        return self

    @model_validator(mode="after")
    def _scaled_to_a_luminosity(self) -> Analysis:
        """Samples and sources name eras that exist, and every era of a sample with a cross section has a luminosity."""
        for key, named in (
            *((f"samples.{name}.eras", list(sample.eras)) for name, sample in self.samples.items()),
            *((f"systematics.{name}.eras", list(source.eras)) for name, source in self.systematics.items()),
        ):
            if unknown := [era for era in named if era not in self.eras]:
                raise ValueError(f"{key}: no era {', '.join(unknown)}; there are: {', '.join(self.eras) or 'none'}")
        if self.training.by_era and len(self.eras) < 2:
            raise ValueError("training.by_era: two eras are needed at least")
        if self.eras and self.luminosity is not None:
            raise ValueError("luminosity: each era has its own; remove the one at the top")
        scaled = [name for name, sample in self.samples.items() if sample.is_scaled]
        periods = {f"eras.{name}: ": era.luminosity for name, era in self.eras.items()} or {"": self.luminosity}
        dark = [place for place, luminosity in periods.items() if luminosity is None]
        if scaled and dark:
            raise ValueError(f"{dark[0]}luminosity is missing: {scaled[0]} has a cross section")
        return self

    @model_validator(mode="after")
    def _made_of_samples(self) -> Analysis:
        require_made_of_samples(self.samples)
        require_factors(self.samples, self.systematics)
        return self

    @property
    def era_regions(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Names of regions and models by region and era, where each era has a model of its own: `training.by_era`."""
        return name_era_regions(self.regions or {self.fit.channel: Region()}, self.eras)

    @property
    def tied(self) -> dict[str, tuple[str, str, str, str]]:
        """Backgrounds whose yields are tied, A = B·C/D, and these regions."""
        made = {name: s.from_data.abcd for name, s in self.samples.items() if s.from_data is not None}
        return {**self.fit.abcd, **{name: regions for name, regions in made.items() if regions is not None}}

    @model_validator(mode="after")
    def _regions_of_abcd(self) -> Analysis:
        for name, four in self.tied.items():
            if unknown := [one for one in four if one not in self.regions]:
                raise ValueError(
                    f"abcd of {name}: no region {unknown[0]}; there are: {', '.join(self.regions) or 'none'}"
                )
            if len(set(four)) < 4 or any(self.regions[one].selection is None for one in four):
                raise ValueError(f"abcd of {name}: four different regions, each with a selection, are needed")
        return self

    @model_validator(mode="after")
    def _categories_have_no_order(self) -> Analysis:
        if both := [name for name in self.categorical if self.training.monotonic_constraints.get(name)]:
            raise ValueError(f"training.monotonic_constraints: {both[0]} is categorical: its values have no order")
        return self

    @model_validator(mode="after")
    def _settings_go_together(self) -> Analysis:
        try:
            self.training.settings(self.categorical)
        except ConfigError as error:
            raise ValueError(f"training: {error}") from error
        if self.training.method == "paper" and self.training.partner is not None:
            raise ValueError("training.with: a setting of method: profile; method: paper knows no fit")
        return self

    @property
    def measures_more(self) -> bool:
        """Whether scores are trained for more than one strength of all signals."""
        return len(self.training.strengths) > 1 or bool(self.training.of_interest)

    @property
    def beside_the_score(self) -> str:
        """What a fit of one score with one strength leaves out of the measurement, for readers; empty where nothing."""
        trained = [name for name, region in self.regions.items() if region.trains]
        parts = [f"regions {', '.join(trained)} are one"] if len(trained) > 1 else []
        parts += [f"region {name} is left out" for name in self.regions if name not in trained]
        parts += [f"{', '.join(self.fit.free)} not free"] if self.fit.free else []
        parts += ["all signals have one strength"] if len(self.fit.parameters) > 1 else []
        if not parts:
            return ""
        return f"σ_μ here is that of the score alone: {'; '.join(parts)}. The whole measurement is fitted by qbdt run."

    def require_one_strength(self, what: str) -> None:
        """Refuse an analysis of several parameters where `what` looks at the score of one signal strength."""
        if self.measures_more:
            key = "of_interest" if self.training.of_interest else "strengths"
            raise ConfigError(
                f"training.{key}: {what} looks at one signal strength with one score; qbdt run measures more"
            )

    @model_validator(mode="after")
    def _fit_of_the_profiled_method(self) -> Analysis:
        """Bins that keep the profiled information, and no transform, are what a profiled score is made for."""
        if self.training.method == "profile":
            given = self.fit.model_fields_set
            own: dict[str, Any] = {"transform": "none", "binning": "optimised"}
            strengths = {name: list(names) for name, names in self.training.strengths.items()}
            interest = list(self.training.of_interest)
            if strengths:
                own["parameters"] = strengths
            if interest:
                own["of_interest"] = interest
            if self.measures_more:
                own |= {"binning": "cells", "bins": 40 if len(interest or strengths) > 1 else 20}
            changed = {key: value for key, value in own.items() if key not in given}
            self.__dict__["fit"] = self.fit.model_copy(update=changed)
        return self

    @model_validator(mode="after")
    def _trains_what_is_there(self) -> Analysis:
        """Strengths, free backgrounds and parameters of interest of the training name what the analysis has."""
        if self.dataset is not None:
            return self
        training, sources = self.training, [name.partition("#")[0] for name in self.systematics]
        for name in training.strengths:
            self.fit.require_word("training.strengths:", name)
        if twice := find_repeated(training.of_interest):
            raise ValueError(f"training.of_interest: {twice[0]} is given twice")
        signals, backgrounds = (
            [name for name, sample in self.samples.items() if sample.role == role] for role in ("signal", "background")
        )
        trained = sources if training.systematics is None else [n.partition("#")[0] for n in training.systematics]
        interest = [name.partition("#")[0] for name in training.of_interest]  # of a family, components may be named
        try:
            if training.method == "profile":
                settings = replace(training.settings(self.categorical), of_interest=interest)
                settings.require_parameters(signals, trained)
            require_known("free", training.free, backgrounds, "background process")
        except ConfigError as error:
            raise ValueError(f"training.{error}") from error
        return self

    @model_validator(mode="after")
    def _measures_what_is_there(self) -> Analysis:
        """Parameters of interest of the fit, and the figure of its cells, name what is measured."""
        fit = self.fit
        if self.dataset is None:
            if twice := find_repeated(fit.of_interest):
                raise ValueError(f"fit.of_interest: {twice[0]} is given twice")
            for name in set(self.systematics).intersection(fit.parameters or [fit.poi], fit.of_interest):
                raise ValueError(
                    f"fit.of_interest: {name} is a source, and a signal strength (poi or parameters): rename one"
                )
        if fit.binning == "cells":
            measured = fit.of_interest or list(fit.parameters)
            if fit.figure not in (known := ("determinant", "sum", *measured)):
                raise ValueError(f"fit.figure: {fit.figure!r}: {hint_at(fit.figure, known)}")
            if fit.bins <= len(measured):
                raise ValueError(f"fit.bins: {fit.bins}: to measure {len(measured)} parameters takes more cells")
        return self

    @model_validator(mode="after")
    def _variables_are_features(self) -> Analysis:
        drawn = [name for name, variable in self.variables.items() if variable.expression is not None]
        if both := [name for name in drawn if name in self.features]:
            raise ValueError(f"variables.{both[0]}: a feature has no expression here; it belongs into columns")
        unknown = [name for name in self.variables if name not in (*self.features, *drawn)]
        if self.features and unknown:
            raise ValueError(f"variables: no feature {', '.join(unknown)}; there are: {', '.join(self.features)}")
        return self

    @property
    def split_sources(self) -> dict[str, list[str]]:
        """Sources whose nuisance parameters are split, era by era if not correlated, and by what; families are not."""
        alone = {name: s for name, s in self.systematics.items() if not isinstance(s, FamilySource) and s.decorrelate}
        return {own: list(s.decorrelate) for n, s in alone.items() for own in name_era_sources(n, s, self.eras)}

    @model_validator(mode="after")
    def _names_are_different(self) -> Analysis:
        """Regions are words, and what is called after regions, processes, sources and eras has a name of its own."""
        for name in self.regions:
            self.fit.require_word("regions:", name)
        require_different_regions(self)
        require_different_sources(self)
        require_different_parts(self)
        require_different_factors(self)
        return self

    def _check_training(self) -> None:
        unknown = [name for name in self.training.systematics or () if name not in self.systematics]
        if unknown:
            raise ValueError(f"training.systematics: no source {', '.join(unknown)}")
        known = {name.partition("#")[0] for name in self.systematics}  # of a source that is split, parts may be named
        for key, named in (("fit.systematics", self.fit.systematics or ()), ("training.at", self.training.at)):
            if unknown := [name for name in named if name.partition("#")[0] not in known]:
                raise ValueError(f"{key}: no source {', '.join(unknown)}; {hint_at(unknown[0], sorted(known))}")
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
