"""Variables that are drawn and not trained on: an analysis that reads them beside its features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qbdt.analysis.loader import FilePartition
from qbdt.analysis.schema import Analysis
from qbdt.data import Expression
from qbdt.errors import ConfigError

TINY = 1_000_000
"""Partitions of which one is read to see whether all columns are there."""


def list_drawn(analysis: Analysis) -> list[str]:
    """Everything that regions ask the report to draw."""
    return list(dict.fromkeys(name for region in analysis.regions.values() for name in region.draw))


def add_variables(analysis: Analysis, variables: Sequence[str]) -> Analysis:
    """Return an analysis whose features are also these variables: expressions, or names under `variables`."""
    own = {name: variable.expression for name, variable in analysis.variables.items()}
    extra = {name: own.get(name) or name for name in variables if name not in analysis.features}
    if not extra:
        return analysis
    if analysis.dataset is not None:
        raise ConfigError(f"{next(iter(extra))}: a dataset that comes with qbdt has no other columns than its features")
    derived = {name: text for name, text in extra.items() if name != text or not _is_column(text)}
    if isinstance(analysis.missing, dict):
        missing = {**analysis.missing, **{name: [float("nan")] for name in extra if name not in analysis.missing}}
        return _extend(analysis, extra, derived, missing)
    return _extend(analysis, extra, derived, [*analysis.missing, float("nan")])


def _extend(analysis: Analysis, extra: dict[str, str], derived: dict[str, str], missing: object) -> Analysis:
    features, columns = [*analysis.features, *extra], {**analysis.columns, **derived}
    return analysis.model_copy(update={"features": features, "columns": columns, "missing": missing})


def _is_column(text: str) -> bool:
    """Whether an expression is the name of a column; it is parsed, and refused where it is no expression."""
    return Expression(text).names == {text}


def require_drawable(analysis: Analysis, folder: Path) -> None:
    """Refuse expressions of `draw` whose columns are not in the files; next to nothing is read."""
    if extended := set(list_drawn(analysis)) - set(analysis.features):
        FilePartition(add_variables(analysis, sorted(extended)), folder, 0, TINY).read()
