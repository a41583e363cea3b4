"""How settings are judged: by σ_μ of out-of-fold scores, with one fold of the analysis always set aside.

For every (outer) fold of the analysis the rest of the events is divided into inner folds by a hash of the identifiers;
models are trained and judged among these only. So every outer fold has a verdict on every setting that its own events
took no part in: the setting that is best by this verdict may be tried on the fold, and the result is no optimum of
anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qbdt.analysis.diagnosis.strength import strength_of
from qbdt.data import Dataset, HashFolds, Role, event_keys, tells_events_apart
from qbdt.errors import ConfigError, DataError
from qbdt.inference import FitSettings
from qbdt.statistics import Sensitivity
from qbdt.training import FoldedEnsemble, Settings
from qbdt.training.profile import ProfiledEnsemble
from qbdt.trees import Ensemble

__all__ = ["Judge"]

INNER = 0x1AAE_F01D_5EED
"""Salt of the inner folds, so that they have nothing to do with outer folds by hash."""


@dataclass(frozen=True, eq=False)
class Judge:
    """Trains and judges settings on one dataset.

    Parameters
    ----------
    dataset
        Events with the folds of the analysis.
    fit
        How scores become templates.
    train
        Trains with settings on given events.
    inner
        Number of inner folds.
    n_threads
        Threads of the scoring.
    """

    dataset: Dataset
    fit: FitSettings
    train: Callable[[Dataset, Settings], Ensemble | ProfiledEnsemble]
    inner: int = 3
    n_threads: int | None = None

    def __post_init__(self) -> None:
        if self.dataset.folds is None:
            raise ConfigError("folds: needed to tune, so that settings are judged on events that were not trained on")
        if self.inner < 2:
            raise ConfigError(f"inner={self.inner}: at least 2 inner folds are needed")
        for sample in self.dataset.samples:
            if not tells_events_apart(event_keys(sample.events)):
                raise DataError(
                    f"sample {sample.name}: the columns of the folds ({', '.join(self.dataset.folds.columns)}) do not "
                    "tell events apart, so that no inner folds can be made: divide by an event number"
                )

    @property
    def n_outer(self) -> int:
        """Number of outer folds."""
        assert self.dataset.folds is not None
        return self.dataset.folds.k

    def inside(self, fold: int, settings: Settings) -> Sensitivity:
        """Judge settings on all events but those of one outer fold; the yields are scaled up to stand for all."""
        assert self.dataset.folds is not None
        rest = self.dataset.without_fold(fold)
        rest = rest.with_folds(HashFolds(self.inner, self.dataset.folds.columns, INNER)).require_full_folds()
        scale = self.dataset.total(Role.BACKGROUND) / rest.total(Role.BACKGROUND)
        return strength_of(self._scored(rest, [settings] * self.inner), self._scaled(scale))

    def outside(self, settings: list[Settings]) -> Sensitivity:
        """σ_μ of the analysis: every fold scored by a model trained on the others, with settings for each fold."""
        return strength_of(self._scored(self.dataset, settings), self.fit)

    def _scored(self, dataset: Dataset, settings: list[Settings]) -> Dataset:
        assert dataset.folds is not None
        ensembles = [self.train(dataset.without_fold(fold), chosen) for fold, chosen in enumerate(settings)]
        models = FoldedEnsemble(tuple(ensembles), dataset.folds)
        return dataset.transform(lambda events: {"score": models.score(events, self.n_threads)})

    def _scaled(self, factor: float) -> FitSettings:
        return self.fit.model_copy(update={"scale": factor * self.fit.scale})
