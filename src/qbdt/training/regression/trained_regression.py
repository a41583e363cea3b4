"""`TrainedRegression`: a trained regression, and the expected errors of its predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from qbdt.tables import Table
from qbdt.training.model import TrainedModel
from qbdt.training.regression.losses import Loss


@dataclass(frozen=True)
class SourceShift:
    """Shift of the mean prediction for one standard deviation of a source, in units of the target."""

    name: str
    unprofiled: float
    profiled: float


@dataclass(frozen=True)
class RegressionExpectation:
    """Errors and shifts of the predictions on held-out events, in units of the target."""

    # unprofiled, profiled: root mean square of y − f: of the prediction with the smallest loss, and of the profiled one
    unprofiled: float
    profiled: float
    # Events N whose mean is measured: W/(1 + w̄) of W expected events, simulated with a mean weight w̄
    n_effective: float
    sources: tuple[SourceShift, ...] = ()  # Shifts of the mean prediction

    @property
    def unprofiled_mean_error(self) -> float:
        """Uncertainty of a measured mean, statistical and systematic, for the prediction with the smallest loss."""
        return self._mean_error(self.unprofiled, *(source.unprofiled for source in self.sources))

    @property
    def mean_error(self) -> float:
        """The same for the profiled prediction."""
        return self._mean_error(self.profiled, *(source.profiled for source in self.sources))

    def _mean_error(self, rms: float, *shifts: float) -> float:
        return math.hypot(rms / math.sqrt(self.n_effective), *shifts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the model file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> RegressionExpectation:
        """Inverse of `to_dict`."""
        sources = tuple(SourceShift(**one) for one in plain["sources"])
        return cls(plain["unprofiled"], plain["profiled"], plain["n_effective"], sources)

    def tables(self) -> tuple[Table, ...]:
        """Resolution, shifts of the mean under each source, and the uncertainty of a measured mean."""
        rows = [("rms of y − f", self.unprofiled, self.profiled)]
        rows += [(f"shift of the mean, {one.name}", one.unprofiled, one.profiled) for one in self.sources]
        rows.append(("uncertainty of the mean", self.unprofiled_mean_error, self.mean_error))
        text = tuple((name, f"{before:.4g}", f"{after:.4g}") for name, before, after in rows)
        return (Table("Predictions of held-out events", ("", "smallest loss", "profiled"), text),)


@dataclass(frozen=True, eq=False)
class TrainedRegression(TrainedModel):
    """A trained regression: its trees add up to the prediction.

    `n_events` are those whose mean is measured, where they were given.
    """

    loss: Loss = field(default_factory=Loss)
    prediction: RegressionExpectation | None = None
    n_events: float | None = None

    def _all_tables(self) -> Iterator[Table]:
        if self.prediction is not None:
            yield from self.prediction.tables()
        yield from super()._all_tables()
