"""A trained model: its trees, and how, on what and how far it was trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from qbdt.data import FoldRule
from qbdt.errors import DataError
from qbdt.statistics import Expectation
from qbdt.tables import Table, format_count, render_html
from qbdt.training.ensembles import FoldedEnsemble, Model, SingleModel, gain_shares
from qbdt.training.settings import Settings
from qbdt.trees import Binning


class Ending(Enum):
    """How a training ended."""

    COMPLETE = "complete"
    NO_GAIN = "no split gains anything"
    NO_YIELD = "signal or background has no positive yield"
    STOPPED_EARLY = "stopped early"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class End:
    """How a training ended and, where it was before its end, after how much: "3 trees", "1 of 10 sums of trees"."""

    how: Ending = Ending.COMPLETE
    after: str = ""

    @property
    def message(self) -> str | None:
        """Why there are fewer trees than asked for, otherwise None; the text that model files hold."""
        return None if self.how is Ending.COMPLETE else f"{self.how.value} after {self.after}"

    @classmethod
    def interrupted(cls, after: str) -> End:
        """Return the end of a training that was interrupted."""
        return cls(Ending.INTERRUPTED, after)

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
        Events of the training: rows and yield of each sample, names of the sources.
    expectations
        For each parameter of interest its expected σ and what each source does to it; of the profiled method only.
    """

    ensemble: SingleModel
    binning: Binning
    settings: Settings
    history: tuple[float, ...] = ()
    end: End = End()
    data: Mapping[str, Any] = field(default_factory=dict)
    expectations: tuple[Expectation, ...] = ()

    @property
    def expectation(self) -> Expectation | None:
        """Expected σ_μ, or that of the first of several parameters of interest; None where there is none."""
        return self.expectations[0] if self.expectations else None

    @property
    def trainings(self) -> tuple[TrainedModel, ...]:
        """Trainings of all folds: this one."""
        return (self,)

    @property
    def folds(self) -> None:
        """No fold rule: one model is trained on all events."""

    @property
    def stopped(self) -> str | None:
        """Why there are fewer trees than asked for, otherwise None."""
        return self.end.message

    @property
    def complete(self) -> bool:
        """Whether it came to its end: all trees, or a reason other than an interruption to have fewer."""
        return self.end.how is not Ending.INTERRUPTED

    @property
    def reports_folds(self) -> bool:
        """Whether its checkpoints come after inner folds, as of the profiled method, and not after trees."""
        return self.settings.method == "profile"

    def is_checkpoint(self, every: int) -> bool:
        """Whether an unfinished training is to be written: after so many trees, or after each inner fold."""
        return self.reports_folds or len(self.ensemble.trees) % every == 0

    @property
    def headline(self) -> str:
        """The model in one line."""
        counts = (
            f"{format_count(len(self.ensemble.trees), 'tree')} of up to {self.settings.n_leaves} leaves",
            format_count(len(self.ensemble.features), "feature"),
            format_count(len(self.data.get("systematics", ())), "systematic source"),
        )
        notes = [note for note in (self._few_folds, self.stopped) if note]
        return "; ".join([", ".join(counts), *notes])

    @property
    def _few_folds(self) -> str:
        """How many inner folds a profiled training had, where its events did not fill all."""
        match self.data.get("inner_folds"):
            case None:
                return ""
            case 1:
                return "too few events to hold any out: judged by the events it was trained on"
            case number:
                return f"{number} inner folds, which is all that so few events fill"

    def tables(self) -> tuple[Table, ...]:
        """Features by gain, expected result, samples it was trained on, settings."""
        return tuple(table for table in self._all_tables() if table.rows)

    def _all_tables(self) -> Iterator[Table]:
        yield _gain_table(self.ensemble)
        for expectation in self.expectations:
            yield from expectation.tables()
        samples = self.data.get("samples", ())
        rows = tuple((s["name"], s["role"], f"{s['rows']:,}", f"{s['yield']:,.5g}") for s in samples)
        yield Table("Trained on", ("process", "role", "rows", "yield"), rows)
        yield Table("Systematic sources", ("source",), tuple((name,) for name in self.data.get("systematics", ())))
        settings = self.settings.to_dict()
        yield Table("Settings", ("setting", "value"), tuple((name, str(value)) for name, value in settings.items()))

    def __str__(self) -> str:
        return "\n\n".join([self.headline, *map(str, self.tables())])

    def _repr_html_(self) -> str:
        return render_html(self.headline, self.tables())


@dataclass(frozen=True, eq=False)
class CrossTrainedModel:
    """Trainings of the first folds, in their order, and the rule that says which fold an event is in."""

    # One for each fold, trained without its events; fewer than k, or a last one that is cut short, where the
    # cross-training was interrupted
    trainings: tuple[TrainedModel, ...]
    folds: FoldRule  # The rule

    def __post_init__(self) -> None:
        if len(self.trainings) > self.folds.k:
            raise DataError(f"{len(self.trainings)} trainings for {self.folds.k} folds")
        if len({training.ensemble.features for training in self.trainings}) > 1:
            raise DataError("the trainings of the folds have different features")

    @property
    def complete(self) -> bool:
        """Whether the models of all folds are trained to their end."""
        return len(self.trainings) == self.folds.k and all(training.complete for training in self.trainings)

    @property
    def ensemble(self) -> FoldedEnsemble:
        """The models of all folds, as one that scores every event by the one that never saw it."""
        for fold in range(self.folds.k):
            if fold >= len(self.trainings) or not self.trainings[fold].complete:
                state = "not trained yet" if fold >= len(self.trainings) else "trained in part only"
                raise DataError(
                    f"fold {fold} of {self.folds.k} is {state}: the cross-training was interrupted; resume it"
                )
        return FoldedEnsemble(tuple(training.ensemble for training in self.trainings), self.folds)

    @property
    def headline(self) -> str:
        """The model in one line."""
        trees = " + ".join(str(len(training.ensemble.trees)) for training in self.trainings)
        return f"{len(self.trainings)} of {self.folds.k} folds by {', '.join(self.folds.columns)}: {trees} trees"

    def tables(self) -> tuple[Table, ...]:
        """Features by gain in the model of each fold, and the other tables of the first."""
        if not self.trainings:
            return ()
        names = [f"fold {fold}" for fold in range(len(self.trainings))]
        gains = _gain_table(*(training.ensemble for training in self.trainings), columns=names)
        return (gains, *self.trainings[0].tables()[1:])

    def _repr_html_(self) -> str:
        return render_html(self.headline, self.tables())


AnyTrainedModel: TypeAlias = TrainedModel | CrossTrainedModel
"""A model of one training or of one for each fold: both have `trainings`, `folds`, `complete`, `ensemble`, `tables`."""


def _gain_table(*models: Model, columns: Sequence[str] = ("share",)) -> Table:
    """Share of each feature in the gain, one column for each model, the largest mean first."""
    shares = 100 * np.concatenate([gain_shares(model) for model in models])
    order = np.argsort(-shares.mean(axis=0), kind="stable")
    rows = tuple((models[0].features[i], *(f"{share:.1f}" for share in shares[:, i])) for i in order)
    return Table("Share of each feature in the gain (%)", ("feature", *columns), rows)


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
