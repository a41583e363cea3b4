"""After each tree: score of the validation sample, early stopping, callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Role
from qbdt.errors import ConfigError, is_number
from qbdt.statistics import scan_tanh
from qbdt.trees import Ensemble, Tree


@dataclass(frozen=True)
class TreeReport:
    """State of a training after one tree."""

    # index, n_trees: number of this tree, from 0, and of trees asked for
    index: int
    n_trees: int
    tree: Tree  # The tree
    validation: float | None = None  # Binned Q of the validation sample with all trees so far; None where there is none


Callback: TypeAlias = Callable[[TreeReport], bool | None]
"""Called after each tree; training stops where it returns True."""


@dataclass
class Monitor:
    """Follows a validation sample and decides when to stop.

    Parameters
    ----------
    validation
        Dataset whose nominal signal and background are scored after every tree.
    patience
        Trees without a better binned Q after which training stops; the trees after the best are dropped. None never
        stops.
    callbacks
        Called after every tree.
    """

    validation: Dataset | None = None
    patience: int | None = None
    callbacks: Sequence[Callback] = ()
    history: list[float] = field(default_factory=list, init=False)
    _scores: dict[str, Floats] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.patience is not None and not (is_number(self.patience) and self.patience == int(self.patience) >= 1):
            raise ConfigError(f"early stopping: patience={self.patience!r}: must be a whole number, at least 1")
        if self.patience is not None and self.validation is None:
            raise ConfigError(f"early stopping after {self.patience} trees needs a validation sample")
        if not isinstance(self.callbacks, Iterable) or not all(map(callable, self.callbacks)):
            raise ConfigError(f"callbacks={self.callbacks!r}: a list of functions is needed")
        self.callbacks = tuple(self.callbacks)

    @property
    def best(self) -> int | None:
        """Number of trees with the largest binned Q so far."""
        return int(np.argmax(self.history)) + 1 if self.history else None

    def start(self, features: tuple[str, ...]) -> None:
        """Begin a training over these features."""
        self.history.clear()
        if self.validation is not None:
            self.validation = self.validation.with_features(features).require_usable()
            self._scores = {sample.name: np.zeros(sample.events.n_rows) for sample in self.validation.samples}

    def judge(self, report: TreeReport, features: tuple[str, ...], n_threads: int) -> bool:
        """Take note of one more tree; return whether to stop."""
        if self.validation is not None:
            self._add_scores(self.validation, Ensemble(features, (report.tree,)), n_threads)
            # Binned Q (eq:Q0 over bins of tanh(c·y)) of signal and background for the best c.
            scan = scan_tanh(*self._join(self.validation, Role.SIGNAL), *self._join(self.validation, Role.BACKGROUND))
            self.history.append(scan.largest_q)
            report = replace(report, validation=self.history[-1])
        stops = [bool(callback(report)) for callback in self.callbacks]
        tired = self.patience is not None and self.best is not None and len(self.history) - self.best >= self.patience
        return tired or any(stops)

    def _add_scores(self, validation: Dataset, tree: Ensemble, n_threads: int) -> None:
        for role in (Role.SIGNAL, Role.BACKGROUND):
            for sample in validation.of_role(role):
                self._scores[sample.name] += tree.score(sample.events, n_threads)

    def _join(self, validation: Dataset, role: Role) -> tuple[Floats, Floats]:
        """Scores and weights of all samples of a role."""
        samples = validation.of_role(role)
        scores = np.concatenate([self._scores[sample.name] for sample in samples])
        return scores, np.concatenate([sample.events.weight for sample in samples])
