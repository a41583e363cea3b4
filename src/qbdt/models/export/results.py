"""What an export leaves: its files, how far they agree with the model, and what they cannot hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Check", "Export"]


@dataclass(frozen=True)
class Check:
    """Scores of one set of rows, from the file that was read back and from the model.

    Attributes
    ----------
    what
        Which rows.
    rows
        How many.
    difference
        Largest absolute difference of the scores.
    """

    what: str
    rows: int
    difference: float


@dataclass(frozen=True)
class Export:
    """Files that were written and read back.

    Attributes
    ----------
    format
        `onnx`, `xgboost`, `tmva` or `cpp`.
    files
        All files; where there are several, the last is a JSON file that says how to use them together.
    checks
        What was compared; empty where the file could not be read back here.
    warnings
        What the format cannot hold and why, and what its reader must still compute.
    """

    format: str
    files: tuple[Path, ...]
    checks: tuple[Check, ...]
    warnings: tuple[str, ...]

    @property
    def difference(self) -> float:
        """Largest difference of all checks."""
        return max((check.difference for check in self.checks), default=float("nan"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "format": self.format,
            "files": [str(path) for path in self.files],
            "checks": [{"what": c.what, "rows": c.rows, "difference": c.difference} for c in self.checks],
            "warnings": list(self.warnings),
        }
