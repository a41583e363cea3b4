"""MC statistics in a workspace: which factors on the expected events, and what constrains them.

`bin`: one Gaussian factor per bin on the sum of the backgrounds (Barlow–Beeston lite), HistFactory's `staterror`. The
signal has none: its nominal yield in the sum would shrink the uncertainty of the background by b/(s + b) just where the
signal is, and raise the discovery significance. `bin_poisson`: the same with a Poisson constraint of (Σw)²/Σw² events,
ROOT's default. `process`: one factor for each process and bin, the signal's too (full Barlow–Beeston), with a Gaussian
constraint; `process_poisson`: the same with a Poisson constraint, `shapesys`.

pyhf has no Poisson constraint that samples share. But the constraint is a Poisson count like that of any bin: in a
workspace the factors are a `shapefactor`, and a channel of their name counts (Σw)²/Σw² events that they scale. That is
the same likelihood, in pyhf too. `take_constraints` turns such channels into constraints of `staterror` factors, and
`write_constraints` does the reverse.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.inference.measurement import Measurement
from qbdt.inference.templates.template_set import ProcessTemplates

McModel: TypeAlias = Literal["bin", "bin_poisson", "process", "process_poisson"]
"""How MC statistics enter the likelihood."""

MOST_EVENTS = 1e10
"""Counts of a bin whose simulation has no error, or less than 1e-5 of its content: its factor is held."""


def name_mc_stat(measurement: Measurement, model: McModel) -> dict[tuple[str, str], str]:
    """Names of the modifiers of each region and process."""
    if model in ("bin", "bin_poisson"):
        return {key: f"staterror_{key[0]}" for key in measurement.cells}
    return dict(zip(measurement.cells, measurement.mc_stat_names, strict=True))


def describe_mc_stat(process: ProcessTemplates, name: str, model: McModel) -> dict[str, Any] | None:
    """Modifier of one process in one region; None where it has none."""
    if model in ("bin", "bin_poisson"):
        errors = np.sqrt(process.variance)
        return None if process.role is Role.SIGNAL else {"name": name, "type": "staterror", "data": errors.tolist()}
    # A factor cannot change an empty bin, nor a negative one: these are held.
    errors = np.where(process.nominal > 0, np.sqrt(process.variance), 0.0)
    if not np.any(errors > 0):
        return None
    return {"name": name, "type": "shapesys" if model == "process_poisson" else "staterror", "data": errors.tolist()}


def is_shared(modifier: Mapping[str, Any], region: str) -> bool:
    """Whether a modifier is the one factor per bin of all backgrounds of a region."""
    return bool(modifier["type"] == "staterror" and modifier["name"] == f"staterror_{region}")


def write_constraints(spec: Mapping[str, Any], regions: Collection[str]) -> dict[str, Any]:
    """Make the constraints of the factors per bin of some regions Poisson ones: counts in channels of their own."""
    channels, counted = [], []
    for channel in spec["channels"]:
        errors = _errors(channel) if channel["name"] in regions else {}
        channels.append(_replace_factors(channel, dict.fromkeys(errors)))
        if errors:
            counted.append(_describe_counts(channel, errors))
    sums = [{"name": c["name"], "data": np.sum([s["data"] for s in c["samples"]], axis=0).tolist()} for c in counted]
    return {**spec, "channels": [*channels, *counted], "observations": [*spec["observations"], *sums]}


def take_constraints(spec: Mapping[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """Return a workspace without channels that are constraints, and the names of the factors these constrain."""
    names = {f"staterror_{channel['name']}" for channel in spec["channels"]}
    counted = {c["name"]: c for c in spec["channels"] if c["name"] in names and _is_constraint(c)}
    if not counted:
        return dict(spec), frozenset()
    channels = []
    for channel in spec["channels"]:
        if channel["name"] not in counted:
            counts = counted.get(f"staterror_{channel['name']}")
            channels.append(channel if counts is None else _replace_factors(channel, _recover_errors(channel, counts)))
    observations = [one for one in spec["observations"] if one["name"] not in counted]
    return {**spec, "channels": channels, "observations": observations}, frozenset(counted)


def _errors(channel: Mapping[str, Any]) -> dict[str, Floats]:
    """Statistical errors of the samples that share a factor per bin, by name."""
    return {
        sample["name"]: np.asarray(modifier["data"], dtype=np.float64)
        for sample in channel["samples"]
        for modifier in sample["modifiers"]
        if is_shared(modifier, channel["name"])
    }


def _describe_counts(channel: Mapping[str, Any], errors: Mapping[str, Floats]) -> dict[str, Any]:
    """Channel of the constraint: (Σw)²/Σw² events in each bin, of which a sample has its share of Σw²."""
    name = f"staterror_{channel['name']}"
    total = np.sum([sample["data"] for sample in channel["samples"] if sample["name"] in errors], axis=0)
    squares = np.where(total > 0, np.square(list(errors.values())), 0.0)
    variance, square = squares.sum(axis=0), np.where(total > 0, total, 1.0) ** 2
    events = square / np.maximum(variance, square / MOST_EVENTS)
    shares = np.where(variance > 0, squares, 1.0) / np.where(variance > 0, variance, len(errors))
    factor = {"name": name, "type": "shapefactor", "data": None}
    samples = [
        {"name": sample, "data": (share * events).tolist(), "modifiers": [dict(factor)]}
        for sample, share in zip(errors, shares, strict=True)
    ]
    return {"name": name, "samples": samples}


def _is_constraint(channel: Mapping[str, Any]) -> bool:
    kinds = [(m["type"], m["name"]) for sample in channel["samples"] for m in sample["modifiers"]]
    return kinds == [("shapefactor", channel["name"])] * len(channel["samples"])


def _recover_errors(channel: Mapping[str, Any], counts: Mapping[str, Any]) -> dict[str, list[float]]:
    """Inverse of `_describe_counts`."""
    shares = {sample["name"]: np.asarray(sample["data"], dtype=np.float64) for sample in counts["samples"]}
    total = np.sum([sample["data"] for sample in channel["samples"] if sample["name"] in shares], axis=0)
    events = np.sum(list(shares.values()), axis=0)
    held = events >= MOST_EVENTS * (1 - 1e-9)
    return {name: np.where(held, 0.0, total * np.sqrt(share) / events).tolist() for name, share in shares.items()}


def _replace_factors(channel: Mapping[str, Any], errors: Mapping[str, list[float] | None]) -> dict[str, Any]:
    """Give the samples of a channel other factors: of the given errors, or without a constraint where they are None."""
    name = f"staterror_{channel['name']}"

    def change(sample: Mapping[str, Any]) -> dict[str, Any]:
        data = errors[sample["name"]]
        new = {"name": name, "type": "shapefactor" if data is None else "staterror", "data": data}
        return {**sample, "modifiers": [new if m["name"] == name else m for m in sample["modifiers"]]}

    return {**channel, "samples": [change(s) if s["name"] in errors else s for s in channel["samples"]]}
