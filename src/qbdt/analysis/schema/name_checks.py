"""Names that an analysis makes of those it is given: no two things may get one name, which would make them one.

Sources that are no longer one parameter everywhere, factors of the fit, and regions of eras are called after what they
are made of. Each check says which names to change; all of them are made before anything is read.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING

from qbdt.analysis.schema.region_schema import Region
from qbdt.analysis.schema.source_schema import FamilySource, Source
from qbdt.data import Systematic
from qbdt.errors import FitError
from qbdt.files import choose_words
from qbdt.inference import Measurement

if TYPE_CHECKING:
    from qbdt.analysis.schema.analysis_schema import Analysis


def name_era_sources(name: str, source: Source, eras: Collection[str]) -> list[str]:
    """Names of a source in the eras in which it acts: one where it is correlated between them."""
    acting = [era for era in eras if not source.eras or era in source.eras]
    return [name] if source.correlated or not acting else [Systematic.name_component(name, era) for era in acting]


def name_era_regions(regions: Mapping[str, Region], eras: Collection[str]) -> dict[tuple[str, str], tuple[str, str]]:
    """Names of regions and their models, by region and era, where each era has a model of its own.

    A control region stays as it is, of no era.
    """
    spelled = (word[1:] for word in choose_words(f"x{era}" for era in eras))
    words = dict(zip(eras, spelled, strict=True))
    scored = {name: region.model_name for name, region in regions.items() if not region.is_control}
    pairs = [(model, era) for model in dict.fromkeys(scored.values()) for era in eras]
    chosen = choose_words(f"{model or 'era'}_{words[era]}" for model, era in pairs)
    models = dict(zip(pairs, chosen, strict=True))
    return {
        (name, era): (f"{name}_{words[era]}", models[scored[name], era]) if era else (name, region.model_name)
        for name, region in regions.items()
        for era in (eras if name in scored else [""])
    }


def require_different_regions(analysis: Analysis) -> None:
    """Refuse two regions of one name where each era has a model of its own."""
    if not analysis.training.by_era:
        return
    known: dict[str, str] = {}
    for (region, era), (name, _) in analysis.era_regions.items():
        what = f"region {region} of era {era}" if era else f"region {region}"
        if name in known:
            raise ValueError(f"training.by_era: {known[name]} and {what} would both be called {name}: rename one")
        known[name] = what


def require_different_sources(analysis: Analysis) -> None:
    """Refuse a source that is called like a component of another, or like one that a background from data makes."""
    sources, eras = analysis.systematics, analysis.eras
    divided = [name for name, source in sources.items() if isinstance(source, FamilySource) or not source.correlated]
    if reserved := [name for name in divided if "#" in name]:
        raise ValueError(f"systematics.{reserved[0]}: # divides a source from its components; choose another name")
    made = {
        f"{name}_ratio": name
        for name, sample in analysis.samples.items()
        if sample.from_data is not None and sample.from_data.ratio is not None and name not in analysis.tied
    }
    for name in sources:
        first, mark, _ = name.partition("#")
        if mark and first in divided and (eras or isinstance(sources[first], FamilySource)):
            raise ValueError(
                f"systematics.{name}: {first} is divided into components, which are called "
                f"{Systematic.name_component(first, next(iter(eras), 1))} and so on; choose another name"
            )
        if first in made:
            raise ValueError(
                f"systematics.{name}: samples.{made[first]}.from_data.ratio makes a source {first}, the statistical "
                "error of its ratio; choose another name"
            )


def require_different_parts(analysis: Analysis) -> None:
    """Refuse regions, processes and sources whose names make the same name where a source is decorrelated."""
    taken = {name: f"source {name}" for name in analysis.systematics}
    divided = [name for name, s in analysis.systematics.items() if isinstance(s, FamilySource) or not s.correlated]
    for source, region, process in _list_parts(analysis):
        place = " and ".join([*([f"region {region}"] if region else []), *([f"process {process}"] if process else [])])
        name = "_".join(one for one in (source, region, process) if one)
        first = name.partition("#")[0]
        is_component = first in divided and first != source.partition("#")[0]
        other = taken.get(name) or (f"a component of source {first}" if is_component else None)
        if other is not None:
            what = f"in {place}, where it is decorrelated, and {other}"
            raise ValueError(f"systematics.{source}: {what} would both be called {name}: rename one")
        taken[name] = f"{source} in {place}"


def _list_parts(analysis: Analysis) -> Iterator[tuple[str, str, str]]:
    """Decorrelated sources with their regions and processes; these are empty where they do not matter."""
    regions: Collection[str] = analysis.regions or [analysis.fit.channel]
    if analysis.training.by_era:
        regions = [name for name, _ in analysis.era_regions.values()]
    patterns = {
        own: source.patterns
        for name, source in analysis.systematics.items()
        for own in name_era_sources(name, source, analysis.eras)
    }
    for source, ways in analysis.split_sources.items():
        processes = _list_processes(analysis, patterns[source])
        yield from product(
            [source], regions if "region" in ways else [""], processes if "process" in ways and processes else [""]
        )


def _list_processes(analysis: Analysis, patterns: Collection[str]) -> list[str]:
    """Processes that a source acts on, backgrounds from data among them that are made of these."""
    samples = analysis.samples
    acting = [name for name in samples if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
    made = {name: [*s.from_data.samples, *s.from_data.subtract] for name, s in samples.items() if s.from_data}
    return [name for name, s in samples.items() if s.role != "data" and ({name, *made.get(name, ())} & {*acting})]


def require_different_factors(analysis: Analysis) -> None:
    """Refuse a strength or free normalisation that is called like another factor of the fit, as those of ABCD."""
    fit = analysis.fit
    try:
        Measurement.require_different_factors(fit.parameters or [fit.poi], fit.free, analysis.tied)
    except FitError as error:
        raise ValueError(f"fit: {error}") from error
