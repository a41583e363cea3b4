"""The section `training` of an analysis file: the settings of a training, and what is fitted beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import BeforeValidator, Field, create_model, model_validator

from qbdt.settings import Names, OptionalNames, SettingsSection
from qbdt.training import Partner, Settings

CONTROL_REGIONS = "control regions"
"""Value of `with` for the control regions of the same analysis."""


def _as_partner(value: Any) -> Any:
    if value == CONTROL_REGIONS:
        return {"control_regions": True}
    return {"file": value} if isinstance(value, str) else value


class _Partner(SettingsSection):
    """Other regions and channels that are fitted together with the trained one."""

    file: str | None = Field(None, description="pyhf workspace; a path relative to the analysis file")
    control_regions: bool = Field(False, description="whether it is the control regions of this analysis")
    poi: str | None = Field(
        None,
        description="name there of the trained signal strength, by default that of the fit; none where the trained "
        "signal is not part of it",
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> _Partner:
        if (self.file is None) != self.control_regions:
            raise ValueError(f"a file, or {CONTROL_REGIONS!r}, is needed")
        if "\0" in (self.file or ""):
            raise ValueError("file: a name without the character NUL is needed")
        if self.control_regions and self.poi is not None:
            raise ValueError(f"poi: goes with a file; {CONTROL_REGIONS} have the strengths of this analysis")
        return self


PartnerKey = Annotated[_Partner, BeforeValidator(_as_partner)]


def _fields_of_settings() -> dict[str, Any]:
    """The settings of a training as fields of a section: types, defaults, bounds and descriptions."""
    types, found = get_type_hints(Settings), {}
    for name, rule in Settings.rules().items():
        default, kind = getattr(Settings, name, None), Literal[rule.choices] if rule.choices else types[name]
        bounds: Any = {"ge": rule.at_least, "gt": rule.above, "le": rule.at_most}
        annotation = kind | None if default is None else kind
        found[name] = (annotation, Field(default, description=rule.description, **bounds))
    del found["categorical_features"]  # a key of its own, since columns and the fit know them too
    del found["partner"]  # read from a file
    described = f"what is fitted beside the trained regions: a pyhf workspace, or {CONTROL_REGIONS!r}"
    found["with"] = (PartnerKey | None, Field(None, description=described))
    return found


_Training: Any = create_model("_Training", __base__=SettingsSection, **_fields_of_settings())


class Training(_Training):
    """Settings of the training, named as in `QBDTClassifier`: those declared in `qbdt.training`."""

    if TYPE_CHECKING:  # read here; types cannot see the others
        method: str = "profile"

    strengths: dict[str, Names] = Field({}, description=Settings.rules()["strengths"].description)
    free: OptionalNames = Field([], description=Settings.rules()["free"].description)
    of_interest: OptionalNames = Field([], description=Settings.rules()["of_interest"].description)
    at: dict[str, float] = Field({}, description=Settings.rules()["at"].description)

    @property
    def partner(self) -> _Partner | None:
        """The key `with`, which is no name that Python lets one write."""
        found: _Partner | None = getattr(self, "with")
        return found

    @property
    def partner_file(self) -> str | None:
        """Path of the workspace of the key `with`, where it names one."""
        return None if self.partner is None else self.partner.file

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
    by_era: bool = Field(False, description="one model, and one region of the fit, for each era")

    def settings(self, categorical: Sequence[str], partner: Partner | None = None) -> Settings:
        """Settings of the training, with what stands elsewhere: which features are categories, and the partner."""
        values = self.model_dump(exclude={"systematics", "with", "by_era"})
        given = {name: value for name, value in values.items() if value is not None}
        return Settings(**given, categorical_features=categorical, partner=partner)
