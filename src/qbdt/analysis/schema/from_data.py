"""Checks of backgrounds from data: what they are made of, and sources that give their events weights."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping

from qbdt.analysis.schema.sample_schema import DataDriven, SampleFiles
from qbdt.analysis.schema.source_schema import ShapeSource, Source, WeightSource
from qbdt.data import Expression
from qbdt.data.readers import NOMINAL


def require_made_of_samples(samples: Mapping[str, SampleFiles]) -> None:
    """Refuse backgrounds from data that do not take events of samples in files, or do not subtract simulated ones."""
    files = [name for name, sample in samples.items() if sample.from_data is None]
    simulated = [name for name in files if samples[name].role != "data"]
    for name, rule in _list_made(samples):
        for key, named, known in (("samples", rule.samples, files), ("subtract", rule.subtract, simulated)):
            if unknown := [one for one in named if one not in known]:
                place = f"samples.{name}.from_data.{key}"
                raise ValueError(f"{place}: no sample {unknown[0]} in files; there are: {', '.join(known)}")


def require_factors(samples: Mapping[str, SampleFiles], sources: Mapping[str, Source]) -> None:
    """Refuse a source of a background from data that gives one weight to events whose own weights are different.

    Recorded events count 1, so that a whole weight may be a factor; subtracted ones would lose the weight of theirs.
    """
    for name, rule in _list_made(samples):
        weighted = [one for one in (*rule.samples, *rule.subtract) if _is_weighted(samples[one])]
        for source, given in sources.items():
            alone = [one for one in weighted if not any(fnmatch.fnmatchcase(one, p) for p in given.processes)]
            if name not in given.processes or not alone:
                continue  # a source of both changes the weights of both
            for key, text in _list_weights(given):
                if NOMINAL not in Expression(text).names:
                    raise ValueError(
                        f"systematics.{source}.{key}: {text} would take the place of the weights of {alone[0]}, which "
                        f"{name} is made of, too: write a factor, {NOMINAL} * ..."
                    )


def _list_made(samples: Mapping[str, SampleFiles]) -> list[tuple[str, DataDriven]]:
    """Backgrounds from data, and what they are made of."""
    return [(name, sample.from_data) for name, sample in samples.items() if sample.from_data is not None]


def _is_weighted(sample: SampleFiles) -> bool:
    """Whether events of a sample have other weights than 1."""
    own = [sample.weight, *(era.weight for era in sample.eras.values())]
    return sample.role != "data" or any(weight is not None for weight in own)


def _list_weights(source: Source) -> Iterator[tuple[str, str]]:
    """Keys and expressions of the varied weights of a source."""
    for key in ("up", "down"):
        if isinstance(source, WeightSource) and (text := getattr(source, key)) is not None:
            yield key, text
        elif isinstance(source, ShapeSource) and (side := getattr(source, key)) is not None and side.weight is not None:
            yield f"{key}.weight", side.weight
