"""A measurement as a HistFactory workspace in pyhf's JSON form, and back from a file.

What becomes of a source: a pure normalisation is a `normsys`; everything else (weight and shape sources, and a
normalisation of part of a process) is a `histosys` that keeps its effect on the yield, one nuisance parameter for both.
The yield is not split off: with linear interpolation a shift of the yield and of the shape by the same θ is what the
paper's likelihood has, and for two-sided sources with a small asymmetry the difference is of second order. MC
statistics are in `mc_statistics`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.arrays import LARGEST_YIELD, Floats
from qbdt.data import Role
from qbdt.errors import FitError
from qbdt.files import write_text
from qbdt.inference.asimov import expected_errors
from qbdt.inference.hs3 import is_hs3, read_hs3
from qbdt.inference.mc_statistics import McModel, describe_mc_stat, name_mc_stat, write_constraints
from qbdt.inference.measurement import Measurement
from qbdt.inference.pyhf_model import PyhfModel
from qbdt.inference.templates.template_set import ProcessTemplates, TemplateSet

REACH = 100.0
"""Bounds of parameters in standard deviations. MINUIT's errors of bounded parameters are too small by 1 − (σ/bound)²/6:
0.7 % for pyhf's usual ±5, 2e-5 for ±100, so that all programs quote the same uncertainties."""


LIMIT_REACH = 10.0
"""The same for the strength in searches for limits: at 10 standard deviations CLs is below 1e-20."""


def build_workspace(
    templates: TemplateSet,
    *,
    poi: str = "mu",
    measurement: str = "measurement",
    mc_stat: bool = True,
) -> dict[str, Any]:
    """Write templates of one region with one signal strength as a pyhf workspace; see `describe_measurement`.

    Parameters
    ----------
    templates
        Templates with a positive expectation in every bin.
    poi
        Name of the signal strength: a factor on all signal processes.
    measurement
        Name of the measurement in the workspace.
    mc_stat
        Whether to add the MC-statistics modifiers.

    Examples
    --------
    >>> s = ProcessTemplates("higgs", Role.SIGNAL, np.array([1.0, 4.0]), np.array([0.1, 0.4]))
    >>> b = ProcessTemplates("ttbar", Role.BACKGROUND, np.array([90.0, 10.0]), np.array([9.0, 1.0]))
    >>> spec = build_workspace(TemplateSet("score", np.array([0.0, 0.5, 1.0]), (s, b)))
    >>> spec["observations"]
    [{'name': 'signal_region', 'data': [91.0, 14.0]}]
    """
    signals = [process.name for process in templates.of_role(Role.SIGNAL)]
    regions = Measurement({"signal_region": templates}, {poi: signals})
    return describe_measurement(regions, name=measurement, mc_stat=mc_stat)


def describe_measurement(
    measurement: Measurement, *, name: str = "measurement", mc_stat: bool = True, mc_model: McModel = "bin"
) -> dict[str, Any]:
    """Write a measurement as a pyhf workspace: its regions, with a positive expectation in every bin, are the channels.

    The observations are the recorded data where all regions have them, otherwise the Asimov data, so that any tool that
    opens the file gets the expected result. Each strength of interest has two measurements in the workspace: one for
    fits, with wide bounds, and one ending in `_limit`, for upper limits, with a strength that is not negative, as the
    test statistic for limits in pyhf wants it. That of the first strength comes first and has the given name. MC
    statistics are one factor per bin or one per process and bin, with Gaussian or Poisson constraints (`mc_model`).

    HistFactory constrains every source. A source that is a parameter of interest of one of the measurements has no
    constraint for `PyhfModel`; pyhf itself would give it one.
    """
    _check(measurement)
    if not any(np.any(region.signal > 0) for region in measurement.regions.values()):
        raise FitError("the signal templates are empty: no bin expects signal")
    parameters = _parameters(measurement, mc_stat)
    names = {poi: name if number == 0 else f"{name}_{poi}" for number, poi in enumerate(measurement.of_interest)}
    fits = [{"name": names[poi], "config": {"poi": poi, "parameters": parameters}} for poi in names]
    limits = [
        {"name": f"{names[poi]}_limit", "config": {"poi": poi, "parameters": _bound_strength(parameters, poi)}}
        for poi in names
        if poi in measurement.factors
    ]
    measurements = [*fits, *limits]
    spec = _describe(measurement, mc_stat, mc_model, measurements, measurement.recorded or measurement.asimov)
    if measurement.recorded is None and measurement.fixed:
        expected = expect_counts(measurement, spec)
        spec["observations"] = [{"name": channel, "data": counts.tolist()} for channel, counts in expected.items()]
    return write_constraints(spec, measurement.regions) if mc_stat and mc_model == "bin_poisson" else spec


def describe_expectation(measurement: Measurement, mc_stat: bool = True) -> dict[str, Any]:
    """Write what regions expect as a pyhf workspace that is not for fits: its parameters have no bounds.

    So they need not be measurable by these regions alone, and signal need not be there.
    """
    _check(measurement)
    fixed = [{"name": name, "inits": [value], "fixed": True} for name, value in measurement.fixed.items()]
    pois = [name for name in measurement.unconstrained if name in measurement.sources]
    measurements = [
        {"name": f"expectation {poi}".strip(), "config": {"poi": poi, "parameters": fixed}} for poi in ("", *pois)
    ]
    return _describe(measurement, mc_stat, "bin", measurements, measurement.asimov)


def expect_counts(measurement: Measurement, spec: Mapping[str, Any]) -> dict[str, Floats]:
    """Asimov data: expected events at the nominal values of the parameters, or where these are fixed."""
    if not measurement.fixed:
        return measurement.asimov
    model = PyhfModel(spec)
    expected = model.split(model.expected(model.start))
    return {name: expected[name] for name in measurement.regions}


def write_workspace(spec: Mapping[str, Any], path: Path | str) -> Path:
    """Write a workspace as JSON, after checking it against pyhf's schema."""
    import pyhf

    pyhf.schema.validate(dict(spec), "workspace.json")
    target = Path(path)
    write_text(target, json.dumps(spec, indent=1) + "\n")
    return target


def read_workspace(path: Path | str) -> dict[str, Any]:
    """Read a workspace: pyhf's JSON, HS3, or the top file of a HistFactory XML measurement."""
    source = Path(path)
    there = False
    with suppress(OSError):  # a name that is too long
        there = source.exists() and not source.is_char_device()  # /dev/zero has no end
    if not there:
        raise FitError(f"no workspace at {source}")
    if source.suffix == ".xml":
        from qbdt.inference.histfactory import read_xml

        return read_xml(source)
    import pyhf

    try:
        plain = json.loads(source.read_text(encoding="utf-8"))
        spec: dict[str, Any] = read_hs3(plain) if is_hs3(plain) else plain
        pyhf.schema.validate(spec, "workspace.json")
    except (OSError, ValueError, RecursionError, pyhf.exceptions.InvalidSpecification) as error:
        raise FitError(f"{source} is not a pyhf workspace: {error}") from error
    return spec


def _describe(
    measurement: Measurement,
    mc_stat: bool,
    mc_model: McModel,
    measurements: Sequence[Mapping[str, Any]],
    data: Mapping[str, Floats],
) -> dict[str, Any]:
    names_mc = name_mc_stat(measurement, mc_model)

    def describe(channel: str, region: TemplateSet, process: ProcessTemplates) -> dict[str, Any]:
        found = describe_mc_stat(process, names_mc[channel, process.name], mc_model) if mc_stat else None
        return _sample(process, region.sources, measurement.factors_of(channel, process.name), found)

    channels = [
        {"name": channel, "samples": [describe(channel, region, process) for process in region.processes]}
        for channel, region in measurement.regions.items()
    ]
    observations = [{"name": channel, "data": counts.tolist()} for channel, counts in data.items()]
    return {"channels": channels, "observations": observations, "measurements": measurements, "version": "1.0.0"}


def _sample(
    process: ProcessTemplates,
    sources: tuple[str, ...],
    factors: Sequence[str],
    mc_stat: Mapping[str, Any] | None,
) -> dict[str, Any]:
    modifiers: list[dict[str, Any]] = [{"name": name, "type": "normfactor", "data": None} for name in factors]
    for name in sources:
        if name in process.shifts:
            modifiers.append(_modifier(name, process))
    if mc_stat is not None:
        modifiers.append(dict(mc_stat))
    return {"name": process.name, "data": process.nominal.tolist(), "modifiers": modifiers}


def _modifier(name: str, process: ProcessTemplates) -> dict[str, Any]:
    shift = process.shifts[name]
    if shift.factors is not None:
        low, high = shift.factors
        return {"name": name, "type": "normsys", "data": {"lo": low, "hi": high}}
    data = {"lo_data": shift.down.tolist(), "hi_data": shift.up.tolist()}
    return {"name": name, "type": "histosys", "data": data}


def _parameters(measurement: Measurement, mc_stat: bool) -> list[dict[str, Any]]:
    """Starting values, bounds and whether they are fixed of all factors and sources."""
    errors = expected_errors(measurement, mc_stat)
    reaches = {name: max(10.0, REACH * errors[name]) for name in measurement.factors}
    lows = {name: 1 - reach if name in measurement.strengths else 0.0 for name, reach in reaches.items()}
    parameters: list[dict[str, Any]] = []
    for name in measurement.factors:
        bounds = [float(f"{end:.4g}") for end in (lows[name], 1 + reaches[name])]
        parameters.append({"name": name, "inits": [1.0], "bounds": [bounds]})
    for name in measurement.sources:
        reach = max(10.0, float(f"{REACH * errors[name]:.4g}")) if name in measurement.unconstrained else REACH
        parameters.append({"name": name, "bounds": [[-reach, reach]]})
    for parameter in parameters:
        name = parameter["name"]
        if name in measurement.bounds:
            parameter["bounds"] = [list(measurement.bounds[name])]
        if name in measurement.fixed:
            value = measurement.fixed[name]
            low, high = parameter["bounds"][0]
            parameter |= {"inits": [value], "bounds": [[min(low, value), max(high, value)]], "fixed": True}
    return parameters


def _bound_strength(parameters: Sequence[Mapping[str, Any]], poi: str) -> list[dict[str, Any]]:
    """Bounds of one strength for limits: 0, and a tenth of the reach of a fit, where CLs is small but not 0/0."""
    bounded = []
    for parameter in parameters:
        changed = dict(parameter)
        if parameter["name"] == poi:
            high = parameter["bounds"][0][1]
            changed["bounds"] = [[0.0, float(f"{1 + (high - 1) * LIMIT_REACH / REACH:.4g}") if high > 11 else high]]
        bounded.append(changed)
    return bounded


def _check(measurement: Measurement) -> None:
    for name in measurement.sources:
        if name in measurement.factors:
            raise FitError(f"source {name} has the name of the signal strength: rename one (fit: poi)")
    for name in (*measurement.factors, *measurement.sources):
        if name in measurement.reserved:
            raise FitError(f"the name {name} means something else in HistFactory: rename it")
    for name, region in measurement.regions.items():
        _check_bins(region, f"region {name}, " if len(measurement.regions) > 1 else "")


def _check_bins(templates: TemplateSet, prefix: str) -> None:
    if (total := float(templates.asimov.sum())) > LARGEST_YIELD:
        raise FitError(f"{prefix}all bins together expect {total:.3g} events: a fit holds up to {LARGEST_YIELD:g}")
    empty = np.flatnonzero((templates.background <= 0) | (templates.asimov <= 0))
    if empty.size:
        number = int(empty[0])
        where = f"{prefix}bin {number + 1} ({templates.edges[number]:.4g} to {templates.edges[number + 1]:.4g})"
        raise FitError(
            f"{where} expects {templates.background[number]:.3g} background "
            f"and {templates.signal[number]:.3g} signal events: "
            "merge it with its neighbour (qbdt.inference.templates.repair.merge_unusable_bins)"
        )
