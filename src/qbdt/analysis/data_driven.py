"""Backgrounds from data: a sample made of other samples' events in another selection, times a weight.

Each contributing sample is read by itself under its own name, with its own normalisation and sources; what is
subtracted has the opposite sign. Joined under the new name they are the background: a source that moves a subtracted
process moves the background with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qbdt.analysis.input_files import name_in_errors
from qbdt.analysis.schema import Analysis, DataDriven, Region, Source
from qbdt.data import Dataset, Expression, Role, Sample, Systematic
from qbdt.data.readers import NOMINAL

NEVER = "1 < 0"
"""Selection that no event passes."""


@dataclass(frozen=True)
class Contribution:
    """Events of one sample that make up, or are subtracted from, a background from data."""

    process: str  # The background
    origin: str  # The sample whose events are taken
    analysis: Analysis  # Analysis that reads them, with this sample only
    sign: int  # 1, or −1 where they are subtracted
    transferred: bool  # Whether they are multiplied with the ratio of the background, where it has one
    sources: Mapping[str, Source]  # Sources of the sample, without those of the background alone

    def with_regions(self, regions: Mapping[str, Region]) -> Analysis:
        """Return the analysis that counts the events of other regions, with sources of the sample and no features."""
        off: dict[str, Any] = {"features": [], "folds": None, "missing": [], "selection": None}
        return self.analysis.model_copy(update={**off, "systematics": dict(self.sources), "regions": dict(regions)})


def split_data_driven(analysis: Analysis, acts_on: Mapping[str, Sequence[str]]) -> tuple[Analysis, list[Contribution]]:
    """Return an analysis (without eras) less its backgrounds from data, and what these are made of.

    `acts_on` names the processes that each source acts on.
    """
    made = {name: sample.from_data for name, sample in analysis.samples.items() if sample.from_data is not None}
    if not made:
        return analysis, []
    plain = {name: sample for name, sample in analysis.samples.items() if name not in made}
    bare = analysis.model_copy(
        update={"samples": plain, "systematics": _sources(analysis, acts_on, {name: name for name in plain})}
    )
    found = [c for name, rule in made.items() for c in _contributions(analysis, name, rule, acts_on) if c is not None]
    return bare, found


def _contributions(
    analysis: Analysis, name: str, rule: DataDriven, acts_on: Mapping[str, Sequence[str]]
) -> Iterator[Contribution]:
    for sign, origins in ((1, rule.samples), (-1, rule.subtract)):
        for origin in (one for one in origins if one in analysis.samples):  # not all are in every era
            sample = analysis.samples[origin]
            own = sample.weight or ("1" if sample.role == "data" else analysis.weight)
            changed = {"role": "background", "weight": f"({own}) * ({rule.weight})", "scale": sign * sample.scale}
            alone, both = (
                _weigh_sources(_sources(analysis, acts_on, names), acts_on, origin, own, rule.weight)
                for names in ({origin: origin}, {origin: origin, name: origin})
            )
            taken = {"samples": {origin: sample.model_copy(update=changed)}, "systematics": both}
            for places, transferred in _places(analysis, rule):
                read = analysis.model_copy(update={**taken, **places})
                yield Contribution(name, origin, read, sign, transferred, alone)


def _places(analysis: Analysis, rule: DataDriven) -> Iterator[tuple[dict[str, Any], bool]]:
    """Selections of the events that are taken, the regions that they are put into, and whether they are transferred.

    Of an ABCD background, events of B, C and D are in their own regions; those of B are in A, too, for its shape there.
    """
    if rule.abcd is None:
        yield {"selection": rule.selection}, True
        return
    regions = analysis.regions
    first, shape, *others = rule.abcd
    cuts = [str(regions[name].selection) for name in (shape, *others)]
    yield {"selection": join_cuts(analysis.selection, " or ".join(f"({cut})" for cut in cuts))}, False
    moved = {
        name: region.model_copy(update={"selection": cuts[0] if name == first else NEVER})
        for name, region in regions.items()
    }
    yield {"selection": join_cuts(analysis.selection, cuts[0]), "regions": moved}, True


def find_ratio(analysis: Analysis, rule: DataDriven) -> tuple[str, str] | None:
    """Selections of the numerator and the denominator of the factor on a background; None where there is none."""
    if rule.ratio is not None:
        return rule.ratio.numerator, rule.ratio.denominator
    if rule.abcd is None:
        return None
    cuts = [str(analysis.regions[name].selection) for name in rule.abcd[2:]]
    return join_cuts(analysis.selection, cuts[0]), join_cuts(analysis.selection, cuts[1])


def join_cuts(*cuts: str | None) -> str:
    """Join selections that must all hold."""
    return " and ".join(f"({cut})" for cut in cuts if cut is not None)


def _sources(analysis: Analysis, acts_on: Mapping[str, Sequence[str]], names: Mapping[str, str]) -> dict[str, Source]:
    """Sources that act on some processes, under the names that these are read with."""
    found = {}
    for source, rule in analysis.systematics.items():
        acting = {process: names[process] for process in acts_on[source] if process in names}
        if acting:
            with name_in_errors(f"systematics.{source}"):
                found[source] = rule.act_on(acting)
    return found


def _weigh_sources(
    sources: Mapping[str, Source], acts_on: Mapping[str, Sequence[str]], origin: str, own: str, factor: str
) -> dict[str, Source]:
    """Multiply the varied weights of a sample with the factor of the background, as its nominal weight is.

    Their `nominal` is the weight of the sample itself. A source of the background alone has the factor in its own.
    """
    if factor == "1":
        return dict(sources)

    def weigh(text: str | None) -> str | None:
        return None if text is None else f"({Expression(text).substitute(NOMINAL, Expression(own)).text}) * ({factor})"

    return {n: s.with_weights(weigh) if origin in acts_on[n] else s for n, s in sources.items()}


def rename_process(dataset: Dataset, old: str, new: str) -> Dataset:
    """Return a dataset of one process under another name."""
    sample = dataset.sample(old)
    sources = [
        Systematic(s.name, s.kind, {new: s.up[old]}, None if s.down is None else {new: s.down[old]})
        for s in dataset.systematics
    ]
    return Dataset([Sample(new, Role.BACKGROUND, sample.events)], sources, dataset.folds)
