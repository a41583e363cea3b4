"""The factor C/D of a background from data: the ratio of the yields of two selections, data less simulation.

In: the events of both selections, for each sample that counts there, with its sources. Out: a `Transfer`, which
multiplies the events of a third selection. A source that moves what is subtracted moves C and D, and so the factor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qbdt.analysis.region_events import RegionEvents
from qbdt.analysis.schema import Region
from qbdt.data import Dataset, Kind, Systematic
from qbdt.errors import DataError

NUMERATOR, DENOMINATOR = "numerator", "denominator"


def ratio_regions(numerator: str, denominator: str) -> dict[str, Region]:
    """Regions of the events above and below the line."""
    cuts = {NUMERATOR: numerator, DENOMINATOR: denominator}
    return {name: Region(selection=cut, observable="yield") for name, cut in cuts.items()}


@dataclass(frozen=True)
class Transfer:
    """Ratio of the yields of two selections, data less simulation, and its statistical error."""

    process: str
    ratio: float
    error: float
    moved: Mapping[str, tuple[float, ...]]  # by source: the ratio up and, where there is one, down, in units of itself

    @classmethod
    def of(cls, process: str, counted: Sequence[RegionEvents]) -> Transfer:
        """Divide the yields in the `ratio_regions` of all samples that count, which are negative if subtracted."""
        sides = [_Side(process, name, [one.select(name) for one in counted]) for name in (NUMERATOR, DENOMINATOR)]
        above, below = (side.nominal() for side in sides)
        error = np.sqrt(sum(side.relative_variance() for side in sides))
        sources = {s.name: s for one in counted for s in one.whole.systematics}
        moved = {
            name: tuple(
                sides[0].varied(name, way) / above / (sides[1].varied(name, way) / below) for way, _ in s.directions
            )
            for name, s in sources.items()
        }
        moved = {name: factors for name, factors in moved.items() if any(factor != 1 for factor in factors)}
        return cls(process, above / below, above / below * float(error), moved)

    def source(self, era: str = "") -> Systematic:
        """Return the statistical error as a source of the background; each era has its own, of events of its own."""
        size, name = min(self.error / self.ratio, 0.99), f"{self.process}_ratio"
        return Systematic.norm(Systematic.name_component(name, era) if era else name, size, processes=[self.process])

    def apply(self, events: Dataset) -> Dataset:
        """Multiply events of the background, nominal ones and those of each source with the ratio that it has there."""
        scaled = events.scaled(self.ratio)
        known = {source.name: source for source in scaled.systematics}
        own = [self._move(source, scaled) for source in scaled.systematics]
        others = [self._scale(name) for name in self.moved if name not in known]
        return Dataset(scaled.samples, [*own, *others], scaled.folds)

    def _move(self, source: Systematic, events: Dataset) -> Systematic:
        """Give a source of these events the ratio that it has."""
        if source.name not in self.moved:
            return source
        nominal, factors = events.sample(self.process).events, self.moved[source.name]
        sides = [
            {self.process: effect[self.process].with_weight(factor * effect[self.process].apply(nominal).weight)}
            for (_, effect), factor in zip(source.directions, factors, strict=True)
        ]
        kind = Kind.WEIGHT if source.kind is Kind.NORM else source.kind
        return Systematic(source.name, kind, sides[0], sides[1] if source.two_sided else None)

    def _scale(self, name: str) -> Systematic:
        """Return a source that moves other events of the background: these have its ratio only."""
        up, *down = self.moved[name]
        source = Systematic.norm(name, {self.process: (down[0] - 1 if down else 0.0, up - 1)})
        return source if down else Systematic(name, source.kind, source.up, None)


@dataclass(frozen=True)
class _Side:
    """Events above or below the line: of each sample that counts."""

    process: str
    name: str
    samples: Sequence[Dataset]

    def nominal(self) -> float:
        """Yield without variations."""
        return self._require(sum(float(s.events.weight.sum()) for one in self.samples for s in one.samples))

    def relative_variance(self) -> float:
        """Variance of the yield over its square."""
        variance = sum(float(np.square(s.events.weight).sum()) for one in self.samples for s in one.samples)
        return variance / self.nominal() ** 2

    def varied(self, source: str, direction: str) -> float:
        """Yield under a source; samples that do not have it stay as they are."""
        total = 0.0
        for one in self.samples:
            found = [s for s in one.systematics if s.name == source]
            events = one.varied(source, direction) if found else {s.name: s.events for s in one.samples}
            total += sum(float(each.weight.sum()) for each in events.values())
        return self._require(total, f" with {source} {direction}")

    def _require(self, total: float, where: str = "") -> float:
        if total <= 0:
            raise DataError(
                f"samples.{self.process}.from_data.ratio.{self.name}: {total:.4g} events are left after "
                f"subtraction{where}: a positive number is needed"
            )
        return total
