"""How settings are judged: by σ_μ of out-of-fold scores, with one fold of the analysis always set aside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

from qbdt.analysis.diagnosis.sensitivity import compute_sensitivity
from qbdt.analysis.tuning.nested_folds import NestedFolds, Scorer, score_by_fold
from qbdt.data import Dataset, FoldRule, HashFolds, Role
from qbdt.errors import ConfigError, DataError
from qbdt.inference import FitSettings
from qbdt.models import place_model
from qbdt.statistics import Sensitivity
from qbdt.training import Settings, SingleModel

INNER_SALT = 0x1AAE_F01D_5EED
"""Salt of the inner folds, so that they have nothing to do with outer folds by hash."""


@dataclass(frozen=True, eq=False)
class Judge:
    """Trains and judges settings on one dataset."""

    dataset: Dataset  # Events with the folds of the analysis, which are the outer ones
    fit: FitSettings  # How scores become templates
    train: Callable[[Dataset, Settings], SingleModel]  # Trains with settings on given events
    inner: int = 3  # Number of inner folds
    # n_threads, device: threads of the scoring; "cuda" to score on a GPU
    n_threads: int | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        if self.dataset.folds is None:
            raise ConfigError("folds: needed to tune, so that settings are judged on events that were not trained on")
        if self.inner < 2:
            raise ConfigError(f"inner={self.inner}: at least 2 inner folds are needed")
        for sample in self.dataset.samples:
            if not sample.events.identifiers_differ:
                raise DataError(
                    f"sample {sample.name}: the columns of the folds ({', '.join(self.dataset.folds.columns)}) do not "
                    "tell events apart, so that no inner folds can be made: divide by an event number"
                )

    @cached_property
    def _folds(self) -> NestedFolds:
        return NestedFolds(self.dataset, self._outer, HashFolds(self.inner, self._outer.columns, INNER_SALT))

    @property
    def _outer(self) -> FoldRule:
        assert self.dataset.folds is not None
        return self.dataset.folds

    @property
    def n_outer(self) -> int:
        """Number of outer folds."""
        return self._outer.k

    def inside(self, fold: int, settings: Settings) -> Sensitivity:
        """Judge settings on all events but those of one outer fold; the yields are scaled up to stand for all."""
        self.dataset.without_fold(fold).with_folds(self._folds.inner).require_full_folds()
        scored = self._folds.score_inside(fold, partial(self._scorer, settings))
        factor = self.dataset.total(Role.BACKGROUND) / scored.total(Role.BACKGROUND)
        return compute_sensitivity(scored, self.fit.model_copy(update={"scale": factor * self.fit.scale}))

    def outside(self, settings: list[Settings]) -> Sensitivity:
        """σ_μ of the analysis: every fold scored by a model trained on the others, with settings for each fold."""
        scorers = {fold: self._scorer(s, self.dataset.without_fold(fold)) for fold, s in enumerate(settings)}
        return compute_sensitivity(score_by_fold(self.dataset, self._outer, scorers), self.fit)

    def _scorer(self, settings: Settings, events: Dataset) -> Scorer:
        return partial(place_model(self.train(events, settings), self.device).score, n_threads=self.n_threads)
