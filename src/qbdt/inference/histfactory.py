"""HistFactory's XML form with its ROOT file: pyhf writes and reads it, what ROOT needs besides is added here.

Paths are relative to the folder, so that it can be moved. MC statistics are declared Gaussian or Poisson and for all
bins: without that ROOT assumes a Poisson constraint and leaves out bins below 5 %, and pyhf a Gaussian one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from qbdt.errors import FitError
from qbdt.files import choose_file_names, choose_words, stable_root_files
from qbdt.inference.mc_statistics import is_shared, take_constraints, write_constraints

WITH_HISTOGRAMS = ("histosys", "shapesys", "staterror")
"""Kinds of modifiers that pyhf writes histograms of, by their names."""


def write_xml(spec: Mapping[str, Any], folder: Path | str, name: str = "measurement") -> Path:
    """Write a workspace as `NAME.xml`, one file per channel in `config/` and the histograms in `data/data.root`.

    Parameters
    ----------
    spec
        pyhf workspace.
    folder
        Where to write; made if it is not there.
    name
        Prefix of the files; what a file cannot be called is written in another way.

    Returns
    -------
    Path
        The top XML file, for `hist2workspace` (from within the folder), `pyhf xml2json` or `read_workspace`.
    """
    from pyhf import writexml

    root, (stem,) = Path(folder), choose_file_names([name])
    spec, poisson = take_constraints(spec)
    config, data = root / "config", root / "data"
    for inner in (config, data):
        inner.mkdir(parents=True, exist_ok=True)
    # Gaussian factors of one sample are written as `shapesys`, whose constraint is declared afterwards.
    numbered, samples = _number_samples(_retype_modifiers(spec, _list_gaussian(spec), "shapesys"))
    spelled, sources = _spell_sources(numbered)
    with stable_root_files(data):
        combination = ElementTree.fromstring(writexml.writexml(spelled, config, data, stem))
    _restore_parameters(combination, sources)
    combination.set("OutputFilePrefix", f"config/{stem}")
    for entry in combination.iter("Input"):
        channel = Path(entry.text or "")
        _complete_channel(channel, samples, sources, _list_gaussian(spec), poisson)
        entry.text = f"config/{channel.name}"
    return _write(combination, root / f"{stem}.xml", "HistFactorySchema.dtd")


def read_xml(path: Path | str) -> dict[str, Any]:
    """Read a HistFactory measurement into a pyhf workspace; relative paths start from its folder."""
    from pyhf import exceptions, readxml

    source = Path(path)
    try:
        spec: dict[str, Any] = dict(readxml.parse(source, source.parent))
        spec = _retype_modifiers(spec, _read_gaussian(source), "staterror")
        spec = write_constraints(spec, _read_poisson(source))
    except (OSError, KeyError, RuntimeError, ElementTree.ParseError, exceptions.InvalidSpecification) as error:
        raise FitError(f"{source} cannot be read as a HistFactory measurement: {error}") from error
    finally:
        readxml.clear_filecache()
    return spec


def _list_gaussian(spec: Mapping[str, Any]) -> set[str]:
    """Names of Gaussian factors of the bins of one sample: HistFactory has `ShapeSys` for them."""
    return {
        modifier["name"]
        for channel in spec["channels"]
        for sample in channel["samples"]
        for modifier in sample["modifiers"]
        if modifier["type"] == "staterror" and not is_shared(modifier, channel["name"])
    }


def _read_gaussian(path: Path) -> set[str]:
    """Names of `ShapeSys` with a Gaussian constraint, which pyhf does not look at."""
    found = [one for channel in _read_channels(path) for one in channel.iter("ShapeSys")]
    return {one.attrib["Name"] for one in found if one.get("ConstraintType") == "Gaussian"}


def _read_poisson(path: Path) -> set[str]:
    """Names of channels whose shared factors are declared to have a Poisson constraint, which pyhf does not look at."""
    declared = {channel.attrib["Name"]: channel.find("StatErrorConfig") for channel in _read_channels(path)}
    return {name for name, one in declared.items() if one is not None and one.get("ConstraintType") == "Poisson"}


def _read_channels(path: Path) -> list[ElementTree.Element]:
    inputs = ElementTree.parse(path).iter("Input")
    return [ElementTree.parse(path.parent / (entry.text or "")).getroot() for entry in inputs]


def _retype_modifiers(spec: Mapping[str, Any], names: Collection[str], kind: str) -> dict[str, Any]:
    """Return a workspace in which some modifiers are of another type."""
    if not names:
        return dict(spec)
    channels = []
    for channel in spec["channels"]:
        samples = [
            {**s, "modifiers": [{**m, "type": kind} if m["name"] in names else m for m in s["modifiers"]]}
            for s in channel["samples"]
        ]
        channels.append({**channel, "samples": samples})
    return {**spec, "channels": channels}


def _number_samples(spec: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Call the samples of a workspace sample0, sample1, …; returns it and their names by number.

    pyhf names histograms CHANNEL_SAMPLE_SOURCE, which are the same for the source a_b of s and the source b of s_a.
    """
    names = list(dict.fromkeys(sample["name"] for channel in spec["channels"] for sample in channel["samples"]))
    numbers = {name: f"sample{i}" for i, name in enumerate(names)}
    channels = [
        {**channel, "samples": [{**sample, "name": numbers[sample["name"]]} for sample in channel["samples"]]}
        for channel in spec["channels"]
    ]
    return {**spec, "channels": channels}, {number: name for name, number in numbers.items()}


def _spell_sources(spec: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Give words to sources with histograms whose names are none; returns the workspace and their names by word.

    A slash in the name of a histogram is a folder of the ROOT file, and a semicolon begins the number of a version.
    """
    found = [m for c in spec["channels"] for s in c["samples"] for m in s["modifiers"]]
    odd = [m["name"] for m in found if m["type"] in WITH_HISTOGRAMS and not re.fullmatch(r"\w+", m["name"], re.ASCII)]
    names, taken = list(dict.fromkeys(odd)), {m["name"] for m in found}
    words = dict(zip(names, choose_words(names, taken), strict=True))

    def spell(modifier: Mapping[str, Any]) -> Mapping[str, Any]:
        name = modifier["name"]
        return {**modifier, "name": words.get(name, name)} if modifier["type"] in WITH_HISTOGRAMS else modifier

    channels = [
        {**c, "samples": [{**s, "modifiers": list(map(spell, s["modifiers"]))} for s in c["samples"]]}
        for c in spec["channels"]
    ]
    kept = {m["name"] for m in found if m["type"] not in WITH_HISTOGRAMS}
    gone = {name: word for name, word in words.items() if name not in kept}
    measurements = [_rename_parameters(one, gone) for one in spec["measurements"]]
    sources = {word: name for name, word in words.items()}
    return {**spec, "channels": channels, "measurements": measurements}, sources


def _rename_parameters(measurement: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    config = measurement["config"]
    parameters = [{**one, "name": words.get(one["name"], one["name"])} for one in config["parameters"]]
    return {**measurement, "config": {**config, "parameters": parameters}}


def _restore_parameters(combination: ElementTree.Element, sources: Mapping[str, str]) -> None:
    """Give fixed sources, which are called alpha_NAME, their names."""

    def restore(word: str) -> str:
        source = sources.get(word.removeprefix("alpha_"))
        return word if source is None else f"alpha_{source}"

    for fixed in combination.iter("ParamSetting"):
        fixed.text = " ".join(map(restore, (fixed.text or "").split()))


def _complete_channel(
    path: Path,
    samples: Mapping[str, str],
    sources: Mapping[str, str],
    gaussian: Collection[str],
    poisson: Collection[str],
) -> None:
    """Give samples and sources of one channel their names, make its paths relative and declare its MC statistics."""
    channel = ElementTree.parse(path).getroot()
    for kind, names in (("Sample", samples), ("HistoSys", sources), ("ShapeSys", sources)):
        for element in channel.iter(kind):
            element.set("Name", names.get(element.attrib["Name"], element.attrib["Name"]))
    for factors in channel.iter("ShapeSys"):
        if factors.attrib["Name"] in gaussian:
            factors.set("ConstraintType", "Gaussian")
    for element in channel.iter():
        if "InputFile" in element.attrib:
            element.set("InputFile", f"data/{Path(element.attrib['InputFile']).name}")
    if channel.find("Sample/StatError") is not None:
        kind = "Poisson" if f"staterror_{channel.attrib['Name']}" in poisson else "Gaussian"
        declared = ElementTree.Element("StatErrorConfig", RelErrorThreshold="0", ConstraintType=kind)
        channel.insert(len(channel.findall("Data")), declared)
    _write(channel, path, "../HistFactorySchema.dtd")


def _write(element: ElementTree.Element, path: Path, schema: str) -> Path:
    ElementTree.indent(element)
    text = ElementTree.tostring(element, encoding="unicode")
    path.write_text(f"<!DOCTYPE {element.tag} SYSTEM '{schema}'>\n\n{text}\n", encoding="utf-8")
    return path
