"""HS3, the HEP Statistics Serialization Standard: the likelihood as JSON that RooFit and pyhs3 read.

Each region is a `histfactory_dist` with named axes, its data are `binned`, constraints are distributions of their own,
and an analysis names the parameters of interest. MC statistics take the errors of the samples' contents.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qbdt.errors import MALFORMED, FitError
from qbdt.files import write_text
from qbdt.inference.expected_events import list_pois
from qbdt.inference.mc_statistics import is_shared, take_constraints, write_constraints
from qbdt.inference.measurement import Measurement

VERSION = "0.2"
"""Of the standard."""

CONSTRAINTS = {"staterror": "Gauss", "shapesys": "Poisson"}
"""Constraint of the factors of the bins of one sample, by pyhf's name of the modifier."""


def describe_hs3(measurement: Measurement, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Write the pyhf workspace of a measurement in the form of HS3, which wants the edges of the bins."""
    spec, poisson = take_constraints(spec)
    observed = {one["name"]: one["data"] for one in spec["observations"]}
    axes = {n: {"name": f"obs_{n}", "edges": r.edges.tolist()} for n, r in measurement.regions.items()}
    constraints = list(_constraints(spec))
    terms = _Terms(poisson, [constraint["x"] for constraint in constraints])
    regions = [_region(channel, axes[channel["name"]], terms) for channel in spec["channels"]]
    data = [
        {"name": f"data_{name}", "type": "binned", "axes": [axis], "contents": observed[name]}
        for name, axis in axes.items()
    ]
    likelihood = {
        "name": "likelihood",
        "distributions": [region["name"] for region in regions],
        "data": [one["name"] for one in data],
        "aux_distributions": [constraint["name"] for constraint in constraints],
    }
    parameters = spec["measurements"][0]["config"]["parameters"]
    domain = [{"name": p["name"], "min": p["bounds"][0][0], "max": p["bounds"][0][1]} for p in parameters]
    return {
        "metadata": {"hs3_version": VERSION, "description": "written by qbdt"},
        "distributions": [*regions, *constraints],
        "data": data,
        "likelihoods": [likelihood],
        "domains": [{"name": "domain", "type": "product_domain", "axes": domain}],
        "parameter_points": [{"name": "nominal", "parameters": list(_values(spec, parameters))}],
        "analyses": [
            {
                "name": spec["measurements"][0]["name"],
                "likelihood": "likelihood",
                "parameters_of_interest": list(measurement.of_interest),
                "domains": ["domain"],
                "init": "nominal",
            }
        ],
    }


def write_hs3(measurement: Measurement, spec: Mapping[str, Any], path: Path | str) -> Path:
    """Write a workspace as an HS3 file."""
    target = Path(path)
    write_text(target, json.dumps(describe_hs3(measurement, spec), indent=1) + "\n")
    return target


def is_hs3(plain: Any) -> bool:
    """Whether plain data are an HS3 document rather than a pyhf workspace."""
    return isinstance(plain, Mapping) and "distributions" in plain and "likelihoods" in plain


def read_hs3(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Make a pyhf workspace of an HS3 document that is made of histograms.

    Examples
    --------
    >>> read_hs3({"distributions": [], "likelihoods": []})
    Traceback (most recent call last):
    ...
    qbdt.errors.FitError: the HS3 document cannot be read: it has no histfactory_dist
    """
    try:
        return _read(plain)
    except (*MALFORMED, StopIteration) as error:
        raise FitError(f"the HS3 document cannot be read: {error}") from error


class _Terms(NamedTuple):
    """Names of the bins' factors with a Poisson constraint, and of the sources that have one."""

    poisson: Collection[str]
    sources: Collection[str]


def _region(channel: Mapping[str, Any], axis: Mapping[str, Any], terms: _Terms) -> dict[str, Any]:
    samples = [_sample(channel["name"], sample, terms) for sample in channel["samples"]]
    return {"name": f"model_{channel['name']}", "type": "histfactory_dist", "axes": [axis], "samples": samples}


def _sample(region: str, sample: Mapping[str, Any], terms: _Terms) -> dict[str, Any]:
    """A sample with the errors of its contents, where it has MC statistics."""
    errors = next((m["data"] for m in sample["modifiers"] if is_shared(m, region)), None)
    contents = {"contents": sample["data"]} if errors is None else {"contents": sample["data"], "errors": errors}
    modifiers = [_modifier(region, modifier, sample["data"], terms) for modifier in sample["modifiers"]]
    return {"name": sample["name"], "data": contents, "modifiers": modifiers}


def _modifier(region: str, modifier: Mapping[str, Any], contents: Sequence[float], terms: _Terms) -> dict[str, Any]:
    name, kind, data = modifier["name"], modifier["type"], modifier["data"]
    plain = {"name": name, "type": kind}
    constraint = {"constraint_name": f"constraint_{name}"} if name in terms.sources else {}
    match kind:
        case "normfactor":
            return {**plain, "parameter": name}
        case "normsys":
            values = {"hi": data["hi"], "lo": data["lo"]}
            return {**plain, "parameter": name, "data": values, **constraint}
        case "histosys":
            shapes = {"hi": {"contents": data["hi_data"]}, "lo": {"contents": data["lo_data"]}}
            return {**plain, "parameter": name, "data": shapes, **constraint}
        case "staterror" if is_shared(modifier, region):
            parameters = [f"gamma_{region}_bin_{i}" for i in range(len(contents))]
            return {**plain, "parameters": parameters, "constraint": "Poisson" if name in terms.poisson else "Gauss"}
        case "staterror" | "shapesys":
            # HS3 has relative uncertainties here, pyhf absolute ones. Its staterror is that of all samples together.
            relative = [error / content if content > 0 else 0.0 for error, content in zip(data, contents, strict=True)]
            own = {"type": "shapesys", "parameters": [f"{name}_bin_{i}" for i in range(len(contents))]}
            return {**plain, **own, "constraint": CONSTRAINTS[kind], "data": {"vals": relative}}
        case _:
            raise FitError(f"modifier {name} is a {kind}, which this package does not write")


def _constraints(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A unit Gaussian for each source that is not of interest."""
    free = list_pois(spec)
    names = dict.fromkeys(
        modifier["name"]
        for channel in spec["channels"]
        for sample in channel["samples"]
        for modifier in sample["modifiers"]
        if modifier["type"] in ("normsys", "histosys") and modifier["name"] not in free
    )
    for name in names:
        yield {"name": f"constraint_{name}", "type": "gaussian_dist", "x": name, "mean": f"nom_{name}", "sigma": 1.0}


def _values(spec: Mapping[str, Any], parameters: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for parameter in parameters:
        value = parameter.get("inits", [0.0])[0]
        fixed = {"const": True} if parameter.get("fixed") else {}
        yield {"name": parameter["name"], "value": value, **fixed}
    for constraint in _constraints(spec):
        yield {"name": constraint["mean"], "value": 0.0, "const": True}


def _read(plain: Mapping[str, Any]) -> dict[str, Any]:
    dists = {dist["name"]: dist for dist in plain["distributions"] if dist["type"] == "histfactory_dist"}
    if not dists:
        raise ValueError("it has no histfactory_dist")
    likelihood, analysis = plain["likelihoods"][0], plain["analyses"][0]
    data = {one["name"]: one for one in plain["data"]}
    pairs = list(zip(likelihood["distributions"], likelihood["data"], strict=True))
    points = {p["name"]: p for p in plain["parameter_points"][0]["parameters"]}
    domains = {axis["name"]: [axis["min"], axis["max"]] for axis in plain["domains"][0]["axes"]}
    parameters = [_read_parameter(name, bounds, points[name]) for name, bounds in domains.items()]
    names = [name.removeprefix("model_") for name, _ in pairs]
    channels = [
        {"name": name, "samples": [_read_sample(sample) for sample in dists[dist]["samples"]]}
        for name, (dist, _) in zip(names, pairs, strict=True)
    ]
    observations = [
        {"name": name, "data": data[found]["contents"]} for name, (_, found) in zip(names, pairs, strict=True)
    ]
    first, *others = analysis["parameters_of_interest"]
    titles = {first: analysis["name"], **{poi: f"{analysis['name']}_{poi}" for poi in others}}
    measurements = [{"name": title, "config": {"poi": poi, "parameters": parameters}} for poi, title in titles.items()]
    spec = {"channels": channels, "observations": observations, "measurements": measurements, "version": "1.0.0"}
    poisson = [name for name, (dist, _) in zip(names, pairs, strict=True) if _is_poisson(dists[dist])]
    return write_constraints(spec, poisson)


def _is_poisson(dist: Mapping[str, Any]) -> bool:
    """Whether the factors that the samples of a region share have a Poisson constraint."""
    modifiers = [modifier for sample in dist["samples"] for modifier in sample["modifiers"]]
    return any(m["type"] == "staterror" and m.get("constraint") == "Poisson" for m in modifiers)


def _read_parameter(name: str, bounds: Sequence[float], point: Mapping[str, Any]) -> dict[str, Any]:
    fixed = {"fixed": True} if point.get("const") else {}
    return {"name": name, "bounds": [list(bounds)], "inits": [point["value"]], **fixed}


def _read_sample(sample: Mapping[str, Any]) -> dict[str, Any]:
    modifiers = [_read_modifier(modifier, sample["data"]) for modifier in sample["modifiers"]]
    return {"name": sample["name"], "data": sample["data"]["contents"], "modifiers": modifiers}


def _read_modifier(modifier: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    kind = modifier["type"]
    plain = {"name": modifier.get("parameter", modifier["name"]), "type": kind}
    match kind:
        case "normfactor":
            return {**plain, "data": None}
        case "normsys":
            return {**plain, "data": {"hi": modifier["data"]["hi"], "lo": modifier["data"]["lo"]}}
        case "histosys":
            high, low = (modifier["data"][side]["contents"] for side in ("hi", "lo"))
            return {**plain, "data": {"hi_data": high, "lo_data": low}}
        case "staterror":
            return {**plain, "data": data["errors"]}
        case "shapesys":
            pairs = zip(modifier["data"]["vals"], data["contents"], strict=True)
            own = {"type": next(kind for kind, word in CONSTRAINTS.items() if word == modifier["constraint"])}
            return {**plain, **own, "data": [relative * content for relative, content in pairs]}
        case _:
            raise ValueError(f"modifier {modifier['name']} is a {kind}")
