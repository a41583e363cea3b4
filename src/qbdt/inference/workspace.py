"""Templates as a HistFactory workspace in pyhf's JSON form, and back from a file.

What becomes of a source: a pure normalisation is a `normsys`; everything else (weight and shape sources, and a
normalisation of part of a process) is a `histosys` that keeps its effect on the yield, one nuisance parameter for both.
The yield is not split off: with linear interpolation a shift of the yield and of the shape by the same θ is what the
paper's likelihood has, and for two-sided sources with a small asymmetry the difference is of second order. MC
statistics are one `staterror` per bin for all backgrounds (Barlow–Beeston lite, Gaussian). The signal has none: its
nominal yield in the sum would shrink the uncertainty of the background by b/(s + b) just where the signal is, and raise
the discovery significance.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.data import Role
from qbdt.errors import FitError
from qbdt.files import write_text
from qbdt.inference.asimov import fit_asimov
from qbdt.inference.templates.template_set import Note, ProcessTemplates, TemplateSet
from qbdt.names import choose_words

__all__ = ["build_workspace", "read_workspace", "rename_reserved", "write_workspace"]

REACH = 100.0
"""Bounds of parameters in standard deviations. MINUIT's errors of bounded parameters are too small by 1 − (σ/bound)²/6:
0.7 % for pyhf's usual ±5, 2e-5 for ±100, so that all programs quote the same uncertainties."""


def build_workspace(
    templates: TemplateSet,
    *,
    poi: str = "mu",
    measurement: str = "measurement",
    channel: str = "signal_region",
    mc_stat: bool = True,
) -> dict[str, Any]:
    """Write templates as a pyhf workspace.

    The observations are the recorded data where the templates have them, otherwise the Asimov data s + b, so that any
    tool that opens the file gets the expected result.

    Parameters
    ----------
    templates
        Templates with a positive expectation in every bin.
    poi
        Name of the signal strength: a factor on all signal processes.
    measurement
        Name of the measurement in the workspace.
    channel
        Name of the channel in the workspace.
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
    _check(templates, poi, channel)
    samples = [_sample(p, templates.sources, poi, channel, mc_stat) for p in templates.processes]
    data = templates.asimov if templates.data is None else templates.data
    parameters = [{"name": poi, "inits": [1.0], "bounds": [_poi_bounds(templates, mc_stat)]}]
    parameters += [{"name": name, "bounds": [[-REACH, REACH]]} for name in templates.sources]
    return {
        "channels": [{"name": channel, "samples": samples}],
        "observations": [{"name": channel, "data": data.tolist()}],
        "measurements": [{"name": measurement, "config": {"poi": poi, "parameters": parameters}}],
        "version": "1.0.0",
    }


def write_workspace(spec: Mapping[str, Any], path: Path | str) -> Path:
    """Write a workspace as JSON, after checking it against pyhf's schema."""
    import pyhf

    pyhf.schema.validate(dict(spec), "workspace.json")
    target = Path(path)
    write_text(target, json.dumps(spec, indent=1) + "\n")
    return target


def read_workspace(path: Path | str) -> dict[str, Any]:
    """Read a workspace: pyhf's JSON, or the top file of a HistFactory XML measurement."""
    source = Path(path)
    if not source.exists():
        raise FitError(f"no workspace at {source}")
    if source.suffix == ".xml":
        from qbdt.inference.histfactory import read_xml

        return read_xml(source)
    import pyhf

    try:
        spec: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
        pyhf.schema.validate(spec, "workspace.json")
    except (json.JSONDecodeError, pyhf.exceptions.InvalidSpecification) as error:
        raise FitError(f"{source} is not a pyhf workspace: {error}") from error
    return spec


def _sample(
    process: ProcessTemplates, sources: tuple[str, ...], poi: str, channel: str, mc_stat: bool
) -> dict[str, Any]:
    modifiers: list[dict[str, Any]] = []
    if process.role is Role.SIGNAL:
        modifiers.append({"name": poi, "type": "normfactor", "data": None})
    for name in sources:
        if name in process.shifts:
            modifiers.append(_modifier(name, process))
    if mc_stat and process.role is Role.BACKGROUND:
        errors = np.sqrt(process.variance).tolist()
        modifiers.append({"name": f"staterror_{channel}", "type": "staterror", "data": errors})
    return {"name": process.name, "data": process.nominal.tolist(), "modifiers": modifiers}


def _modifier(name: str, process: ProcessTemplates) -> dict[str, Any]:
    shift = process.shifts[name]
    if shift.factors is not None:
        low, high = shift.factors
        return {"name": name, "type": "normsys", "data": {"lo": low, "hi": high}}
    data = {"lo_data": shift.down.tolist(), "hi_data": shift.up.tolist()}
    return {"name": name, "type": "histosys", "data": data}


def _poi_bounds(templates: TemplateSet, mc_stat: bool) -> list[float]:
    model = templates.arrays() if mc_stat else templates.arrays().without_mc_stat()
    reach = max(10.0, REACH * float(fit_asimov(model).sigma_mu))
    return [float(f"{1 - reach:.4g}"), float(f"{1 + reach:.4g}")]


def rename_reserved(templates: TemplateSet, poi: str = "mu", channel: str = "signal_region") -> TemplateSet:
    """Give sources whose names mean something else in a workspace other ones, and say so in a note.

    These are the signal strength, the luminosity of HistFactory and the MC statistics of the channel.
    """
    reserved = {poi, "lumi", "Lumi", f"staterror_{channel}"}
    wanted = [name for name in templates.sources if name in reserved]
    words = choose_words(wanted, {*reserved, *templates.sources})
    notes = [
        Note(f"source {name}", f"called {word} in the fit: {name} means something else in a workspace")
        for name, word in zip(wanted, words, strict=True)
    ]
    return templates.renamed({}, dict(zip(wanted, words, strict=True))).with_notes(notes)


def _check(templates: TemplateSet, poi: str, channel: str) -> None:
    if poi in templates.sources:
        raise FitError(f"source {poi} has the name of the signal strength: rename one (fit: poi)")
    taken = sorted({"lumi", "Lumi", f"staterror_{channel}"} & {*templates.sources, poi})
    if taken:
        raise FitError(f"the name {taken[0]} means something else in HistFactory: rename it")
    if not np.any(templates.signal > 0):
        raise FitError("the signal templates are empty: no bin expects signal")
    empty = np.flatnonzero((templates.background <= 0) | (templates.asimov <= 0))
    if empty.size:
        number = int(empty[0])
        where = f"bin {number + 1} ({templates.edges[number]:.4g} to {templates.edges[number + 1]:.4g})"
        raise FitError(
            f"{where} expects {templates.background[number]:.3g} background "
            f"and {templates.signal[number]:.3g} signal events: "
            "merge it with its neighbour (qbdt.inference.templates.repair.merge_unusable_bins)"
        )
