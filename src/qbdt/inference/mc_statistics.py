"""MC statistics in a workspace: which factors on the expected events, and what constrains them.

`bin`: one Gaussian factor per bin on the sum of the backgrounds (Barlow–Beeston lite), HistFactory's `staterror`. The
signal has none: its nominal yield in the sum would shrink the uncertainty of the background by b/(s + b) just where the
signal is, and raise the discovery significance. `process`: one factor for each process and bin, the signal's too (full
Barlow–Beeston), with a Gaussian constraint; `poisson`: the same with a Poisson constraint of (Σw)²/Σw² events,
`shapesys`. One Poisson factor for several samples is not to be had: pyhf shares only Gaussian ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

from qbdt.data import Role
from qbdt.inference.measurement import Measurement
from qbdt.inference.templates.template_set import ProcessTemplates

__all__ = ["McModel", "describe_mc_stat", "is_shared", "name_mc_stat"]

McModel: TypeAlias = Literal["bin", "process", "poisson"]
"""How MC statistics enter the likelihood."""


def name_mc_stat(measurement: Measurement, model: McModel) -> dict[tuple[str, str], str]:
    """Names of the modifiers of each region and process."""
    if model == "bin":
        return {key: f"staterror_{key[0]}" for key in measurement.cells}
    return dict(zip(measurement.cells, measurement.mc_stat_names, strict=True))


def describe_mc_stat(process: ProcessTemplates, name: str, model: McModel) -> dict[str, Any] | None:
    """Modifier of one process in one region; None where it has none."""
    if model == "bin":
        errors = np.sqrt(process.variance)
        return None if process.role is Role.SIGNAL else {"name": name, "type": "staterror", "data": errors.tolist()}
    # A factor cannot change an empty bin, nor a negative one: these are held.
    errors = np.where(process.nominal > 0, np.sqrt(process.variance), 0.0)
    if not np.any(errors > 0):
        return None
    return {"name": name, "type": "shapesys" if model == "poisson" else "staterror", "data": errors.tolist()}


def is_shared(modifier: Mapping[str, Any], region: str) -> bool:
    """Whether a modifier is the one factor per bin of all backgrounds of a region."""
    return bool(modifier["type"] == "staterror" and modifier["name"] == f"staterror_{region}")
