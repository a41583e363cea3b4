"""Base of all sections of an analysis file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

__all__ = ["Section"]


class Section(BaseModel):
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
