"""The sections `samples` and `eras` of an analysis file: files of a process, and how its weights are scaled."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from qbdt.analysis.schema.schema_fields import Colour, ExpressionText, LabelText
from qbdt.settings import Names, OptionalNames, SettingsSection


class Generated(SettingsSection):
    """How many events were generated, or the sum of their weights, before any selection.

    A number, or what is summed over all files of the sample: an expression over the events of a tree, or a histogram.
    """

    number: float | None = Field(None, gt=0, allow_inf_nan=False, description="the number itself")
    sum: ExpressionText | None = Field(None, description="expression to sum over all events: genEventSumw")
    tree: str | None = Field(None, description="tree of that sum, such as Runs; that of the events by default")
    histogram: str | None = Field(None, description="histogram to sum the contents of, instead of events")
    bin: int | None = Field(None, ge=1, description="one bin of the histogram, counted from 1; all by default")

    @model_validator(mode="after")
    def _one_of_them(self) -> Generated:
        given = [key for key in ("number", "sum", "histogram") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(f"one of a number, sum and histogram is needed, not {' and '.join(given) or 'none'}")
        if (self.tree and self.sum is None) or (self.bin and self.histogram is None):
            raise ValueError("tree goes with sum, bin with histogram")
        return self


def _as_generated(value: Any) -> Any:
    """Accept a number, also one that YAML takes for text (1e6), or the expression that is summed."""
    with suppress(TypeError, ValueError):
        return value if isinstance(value, bool) else {"number": float(value)}
    return {"sum": value} if isinstance(value, str) else value


GeneratedEvents = Annotated[Generated, BeforeValidator(_as_generated)]


class SampleEra(SettingsSection):
    """Differences of a sample in one era."""

    files: OptionalNames = Field([], description="paths or wildcards; those of the sample, with {era}, by default")
    tree: str | None = Field(None, description="TTree or RNTuple")
    weight: ExpressionText | None = Field(None, description="weight in this era")
    selection: ExpressionText | None = Field(None, description="further selection in this era, instead of the sample's")
    scale: float | None = Field(None, description="factor on all weights", allow_inf_nan=False)
    cross_section: float | None = Field(None, gt=0, allow_inf_nan=False, description="cross section in pb")
    generated: GeneratedEvents | None = Field(None, description="generated events, or their sum of weights")


class Era(SettingsSection):
    """One year of running, or any other period with files of its own."""

    luminosity: float | None = Field(None, gt=0, allow_inf_nan=False, description="integrated luminosity in fb⁻¹")
    weight: ExpressionText | None = Field(None, description="weight in this era, instead of the one at the top")
    selection: ExpressionText | None = Field(None, description="selection in this era, instead of the one at the top")


class TransferRatio(SettingsSection):
    """Two selections whose yields, data less simulation, make a factor."""

    numerator: ExpressionText = Field(description="selection of the events above the line")
    denominator: ExpressionText = Field(description="selection of the events below the line")


class DataDriven(SettingsSection):
    """A background made of other samples' events in another selection."""

    samples: Names = Field(description="samples whose events are taken: recorded data, most often")
    subtract: OptionalNames = Field([], description="simulated samples whose events are subtracted")
    selection: ExpressionText | None = Field(
        None, description="events to take, instead of the selection at the top; not with abcd"
    )
    weight: ExpressionText = Field("1", description="factor on the weight of each event: a fake or transfer factor")
    ratio: TransferRatio | None = Field(
        None, description="factor from the yields of two more selections: with it the background is an ABCD estimate"
    )

    abcd: tuple[str, str, str, str] | None = Field(
        None, description="four regions of the fit, A to D: its yields are tied in the fit, and B gives its shape in A"
    )

    @model_validator(mode="after")
    def _selects(self) -> DataDriven:
        if (self.selection is None) == (self.abcd is None):
            raise ValueError("selection is missing, or abcd: one of them says which events are taken")
        if self.abcd is not None and self.ratio is not None:
            raise ValueError("abcd and ratio: the relation is in the fit, or in a factor; remove one")
        return self


class FriendFiles(SettingsSection):
    """Another tree, of the same file or of others, with more columns of the same events."""

    files: str | None = Field(
        None, description="path in which {file} is each file of the sample, without folder and ending; the same file"
    )
    tree: str | None = Field(None, description="its tree; {tree} is that of the events")
    by: OptionalNames = Field([], description="identifier columns that both have; by default rows in the same order")

    @model_validator(mode="after")
    def _is_another(self) -> FriendFiles:
        if self.files is None and self.tree is None:
            raise ValueError("a friend needs files, tree or both")
        return self


class SampleFiles(SettingsSection):
    """One process and where its events are."""

    role: Literal["signal", "background", "data"] = Field(description="what the sample is")
    files: OptionalNames = Field([], description="paths or wildcards, relative to the data folder; {era} is replaced")
    tree: str | None = Field(None, description="TTree or RNTuple; by default the one named at the top")
    weight: ExpressionText | None = Field(
        None, description="weight of this sample; by default the one named at the top"
    )
    scale: float = Field(
        1.0, description="factor on all weights of this sample, also on varied ones", allow_inf_nan=False
    )
    selection: ExpressionText | None = Field(None, description="further selection of this sample")
    cross_section: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="cross section in pb: weights are scaled to the luminosity"
    )
    generated: GeneratedEvents | None = Field(
        None, description="generated events or their sum of weights: a number, or what to sum over all files"
    )
    from_data: DataDriven | None = Field(
        None, description="a background made of other samples' events in another selection, instead of files"
    )
    friends: list[FriendFiles] | None = Field(
        None, description="trees with more columns of its events; by default those named at the top"
    )
    eras: dict[str, SampleEra] = Field({}, description="what is different by era; without files, only these eras")
    label: LabelText | None = Field(None, description="what figures call it; formulas between dollar signs")
    color: Colour | None = Field(None, description="fill colour in figures: a name such as orange, or #rrggbb")

    @property
    def is_scaled(self) -> bool:
        """Whether weights are scaled to a luminosity, in some era at least."""
        return any([self.cross_section, *(era.cross_section for era in self.eras.values())])

    @model_validator(mode="after")
    def _has_files(self) -> SampleFiles:
        if self.from_data is not None:
            others = ("files", "weight", "selection", "cross_section", "generated", "tree", "eras")
            if given := [key for key in others if key in self.model_fields_set]:
                raise ValueError(f"from_data and {given[0]}: its events are those of other samples; remove one")
            if self.role != "background":
                raise ValueError(f"from_data: role {self.role}: a background is made of them")
            return self
        if not self.files and not (self.eras and all(era.files for era in self.eras.values())):
            raise ValueError("files is missing")
        for era, own in {"": self, **self.eras}.items():
            scaled = [key for key in ("cross_section", "generated") if (getattr(own, key) or getattr(self, key))]
            if scaled and self.role == "data":
                raise ValueError(f"{scaled[0]}: recorded data are not scaled to a luminosity")
            if len(scaled) == 1 and (era or not self.eras):
                absent = "generated" if scaled == ["cross_section"] else "cross_section"
                raise ValueError(f"{scaled[0]} without {absent}{f' in era {era}' if era else ''}: both are needed")
        return self
