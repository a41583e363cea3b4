"""Eras: an analysis of several periods of running as one analysis for each, whose events are joined after reading.

In: an `Analysis` with `eras`. Out: analyses without, in which files, luminosities, weights and sources are those of one
era. A source that is not correlated between eras gets the era's name, so that joining gives it a nuisance parameter for
each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from qbdt.analysis.schema import Analysis, Region, SampleFiles, ShapeSource, ShapeVariation, Source
from qbdt.data import Systematic

ERA = "{era}"
"""Stands in paths and names of trees for the name of the era."""

ERA_NUMBER = "era_number"
"""Column with the number of the era, 0, 1, …, for selections and weights, and as a feature that trees divide by."""

Text = TypeVar("Text", str, str | None)


def split_eras(analysis: Analysis, acts_on: Mapping[str, Sequence[str]]) -> dict[str, Analysis]:
    """Return one analysis for each era, or the analysis itself, under an empty name, where it has none.

    `acts_on` names the processes that each source acts on.
    """
    if not analysis.eras:
        return {"": analysis}
    return {era: _in_era(analysis, era, acts_on) for era in analysis.eras}


def separate_models(analysis: Analysis) -> Analysis:
    """Return the analysis in which regions that have the score, or train, are one for each era with a model of its own.

    Scores of different models do not mean the same, so each era is histogrammed by itself; control regions stay.
    """
    if not analysis.training.by_era:
        return analysis
    given = analysis.regions or {analysis.fit.channel: Region()}
    numbers = {era: number for number, era in enumerate(analysis.eras)}
    regions: dict[str, Region] = {}
    for (region, era), (name, model) in analysis.era_regions.items():
        own = regions[name] = given[region]
        if era:
            chosen = f"{ERA_NUMBER} == {numbers[era]}"
            changed = {
                "selection": chosen if own.selection is None else f"({own.selection}) and {chosen}",
                "model": model,
                "label": f"{own.label or region}, {era}",
            }
            regions[name] = own.model_copy(update=changed)
    training = analysis.training.model_copy(update={"by_era": False})
    return analysis.model_copy(update={"regions": regions, "training": training})


def _in_era(analysis: Analysis, era: str, acts_on: Mapping[str, Sequence[str]]) -> Analysis:
    own = analysis.eras[era]
    samples = {
        name: _sample_in_era(s, era) for name, s in analysis.samples.items() if s.files or s.from_data or era in s.eras
    }
    sources: dict[str, Source] = {}
    for name, source in analysis.systematics.items():
        processes = [process for process in acts_on[name] if process in samples]
        if processes and (not source.eras or era in source.eras):
            changed: dict[str, Any] = {"eras": [], "correlated": True}
            if isinstance(source, ShapeSource):
                changed |= {"up": _variation_in_era(source.up, era), "down": _variation_in_era(source.down, era)}
            key = name if source.correlated else Systematic.name_component(name, era)
            sources[key] = source.act_on({one: one for one in processes}).model_copy(update=changed)
    return analysis.model_copy(
        update={
            "eras": {},
            "luminosity": own.luminosity,
            "weight": own.weight or analysis.weight,
            "selection": own.selection or analysis.selection,
            "tree": _insert_era(analysis.tree, era),
            "friends": _friends_in_era(analysis.friends, era),
            "columns": {ERA_NUMBER: str(list(analysis.eras).index(era)), **analysis.columns},
            "samples": samples,
            "systematics": sources,
        }
    )


def _sample_in_era(sample: SampleFiles, era: str) -> SampleFiles:
    given = sample.eras[era].model_dump(exclude_none=True, exclude_unset=True) if era in sample.eras else {}
    own = {key: getattr(sample.eras[era], key) for key in given}
    merged = sample.model_copy(update={**own, "eras": {}})
    return merged.model_copy(
        update={
            "files": [_insert_era(path, era) for path in merged.files],
            "tree": _insert_era(merged.tree, era),
            "friends": None if merged.friends is None else _friends_in_era(merged.friends, era),
        }
    )


def _friends_in_era(friends: Sequence[Any], era: str) -> list[Any]:
    return [
        one.model_copy(update={"files": _insert_era(one.files, era), "tree": _insert_era(one.tree, era)})
        for one in friends
    ]


def _variation_in_era(variation: ShapeVariation | None, era: str) -> ShapeVariation | None:
    if variation is None:
        return None
    files = None if variation.files is None else [_insert_era(path, era) for path in variation.files]
    return variation.model_copy(update={"files": files, "tree": _insert_era(variation.tree, era)})


def _insert_era(text: Text, era: str) -> Text:
    return text.replace(ERA, era) if text else text
