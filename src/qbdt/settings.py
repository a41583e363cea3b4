"""Base of all sections of an analysis file, and names in them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

__all__ = ["Names", "OptionalNames", "SettingsSection", "as_list", "one_or_many"]


def as_list(value: Any) -> Any:
    """Put a single word or number into a list; anything else stays."""
    return [value] if isinstance(value, str | int | float) else value


def one_or_many(kind: str) -> WithJsonSchema:
    """Schema of a single entry or a list of them."""
    return WithJsonSchema({"anyOf": [{"type": kind}, {"type": "array", "items": {"type": kind}}]})


Names = Annotated[list[str], BeforeValidator(as_list), Field(min_length=1), one_or_many("string")]
OptionalNames = Annotated[list[str], BeforeValidator(as_list), one_or_many("string")]


class SettingsSection(BaseModel):
    """A section of an analysis file; unknown keys are errors, a key without a value counts as not given."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        for name, value in data.items():
            known = cls.model_fields.get(name)
            if isinstance(value, bool) and known is not None and known.annotation in (int, float, int | None):
                raise ValueError(f"{name}: a number is needed, not {str(value).lower()}")
        return {name: value for name, value in data.items() if value is not None}
