"""A trained model: its trees, and how, on what and how far it was trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from qbdt.errors import DataError
from qbdt.statistics import Expectation
from qbdt.tables import Table, counted, notebook_html
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.settings import Settings
from qbdt.trees import Binning, Ensemble

__all__ = ["End", "Ending", "TrainedModel", "require_resumable"]


class Ending(Enum):
    """How a training ended."""

    COMPLETE = "complete"
    NO_GAIN = "no split gains anything"
    NO_YIELD = "signal or background has no positive yield"
    STOPPED_EARLY = "stopped early"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class End:
    """How a training ended and, where it was before its last tree, after how much: "3 trees", "1 of 5 folds"."""

    how: Ending = Ending.COMPLETE
    after: str = ""

    @property
    def message(self) -> str | None:
        """Why there are fewer trees than asked for, otherwise None; the text that model files hold."""
        return None if self.how is Ending.COMPLETE else f"{self.how.value} after {self.after}"

    @classmethod
    def from_message(cls, text: str | None) -> End:
        """Read the text of a model file."""
        if text is None:
            return cls()
        how, _, after = text.partition(" after ")
        try:
            return cls(Ending(how), after)
        except ValueError:
            raise DataError(f"stopped: {text!r} is no ending of a training that is known here") from None


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A finished (or interrupted) training.

    Attributes
    ----------
    ensemble
        The trees.
    binning
        Where features could be cut.
    settings
        How it was trained.
    history
        Binned Q of the validation sample after each tree; empty where there was none.
    end
        How the training ended.
    data
        What it was trained on: rows and yield of each sample, names of the sources.
    expectation
        Expected σ_μ and what each source does to it; of the profiled method only.
    """

    ensemble: Ensemble | ProfiledEnsemble
    binning: Binning
    settings: Settings
    history: tuple[float, ...] = ()
    end: End = End()
    data: Mapping[str, Any] = field(default_factory=dict)
    expectation: Expectation | None = None

    @property
    def stopped(self) -> str | None:
        """Why there are fewer trees than asked for, otherwise None."""
        return self.end.message

    @property
    def complete(self) -> bool:
        """Whether it came to its end: all trees, or a reason other than an interruption to have fewer."""
        return self.end.how is not Ending.INTERRUPTED

    def is_checkpoint(self, every: int) -> bool:
        """Whether an unfinished training is to be written: after so many trees; a profiled one, whenever reported."""
        return self.settings.method == "profile" or len(self.ensemble.trees) % every == 0

    @property
    def headline(self) -> str:
        """The model in one line."""
        counts = (
            f"{counted(len(self.ensemble.trees), 'tree')} of up to {self.settings.n_leaves} leaves",
            counted(len(self.ensemble.features), "feature"),
            counted(len(self.data.get("systematics", ())), "systematic source"),
        )
        return ", ".join(counts) + (f"; {self.stopped}" if self.stopped else "")

    def tables(self) -> tuple[Table, ...]:
        """Features by gain, expected result, samples it was trained on, settings."""
        return tuple(table for table in self._all_tables() if table.rows)

    def _all_tables(self) -> Iterator[Table]:
        gains = self.ensemble.gains()
        share = 100 * gains / max(float(gains.sum()), 1e-300)
        order = np.argsort(-share, kind="stable")
        rows = tuple((self.ensemble.features[i], f"{share[i]:.1f}") for i in order)
        yield Table("Share of each feature in the gain (%)", ("feature", "share"), rows)
        if self.expectation is not None:
            yield self.expectation.to_table()
        samples = self.data.get("samples", ())
        rows = tuple((s["name"], s["role"], f"{s['rows']:,}", f"{s['yield']:,.5g}") for s in samples)
        yield Table("Trained on", ("process", "role", "rows", "yield"), rows)
        yield Table("Systematic sources", ("source",), tuple((name,) for name in self.data.get("systematics", ())))
        settings = self.settings.to_dict()
        yield Table("Settings", ("setting", "value"), tuple((name, str(value)) for name, value in settings.items()))

    def __str__(self) -> str:
        return "\n\n".join([self.headline, *map(str, self.tables())])

    def _repr_html_(self) -> str:
        return notebook_html(self.headline, self.tables())


def require_resumable(resume: TrainedModel, binning: Binning, settings: Settings, data: Mapping[str, Any]) -> None:
    """Refuse to go on with a training that had other settings or events; `data` is the record of these."""
    if replace(resume.settings, n_trees=settings.n_trees) != settings:
        raise DataError("cannot resume: the earlier training had other settings")
    same = resume.binning.features == binning.features and all(
        np.array_equal(mine, other) for mine, other in zip(resume.binning.edges, binning.edges, strict=True)
    )
    same = same and resume.binning.categories.keys() == binning.categories.keys()
    same = same and all(np.array_equal(resume.binning.categories[n], own) for n, own in binning.categories.items())
    if not same or any(resume.data.get(key) != value for key, value in data.items()):
        raise DataError("cannot resume: the earlier training was on other events")
