"""`SumsOfTrees`: what models have in common whose score is a formula of several sums of trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.errors import require
from qbdt.trees import Ensemble, Tree


class TermScorer(Protocol):
    """Gives the two terms of the score r − g of events."""

    def terms(self, events: Events, n_threads: int | None = None) -> tuple[Floats, Floats]:
        """Return r and g of every event."""


class SumsOfTrees(ABC):
    """One model, without folds, of several sums of trees."""

    shift: Ensemble
    """Trees of the shifts."""

    source_values: tuple[Floats, ...]
    """For every tree of `shift` an array (node, source) of what the node adds to the shift of the source."""

    folds: ClassVar[None] = None
    """No fold rule: one model scores all events."""

    @abstractmethod
    def of_parameter(self, number: int) -> TermScorer:
        """Return the two terms of the score of one parameter of interest."""

    @property
    @abstractmethod
    def sums(self) -> dict[str, Ensemble]:
        """Sums of trees by name, each tree once: the ratio of densities of each strength, and last the shifts."""

    @property
    @abstractmethod
    def components(self) -> dict[str, Ensemble]:
        """Sums of trees by name that the formula of the score takes."""

    @abstractmethod
    def combine(self, sums: Mapping[str, Floats]) -> Floats:
        """Score from the values of the components."""

    @abstractmethod
    def classify(self, sums: Mapping[str, Floats]) -> Floats:
        """Probabilities of background and of each signal from the values of the components, as (event, class)."""

    @property
    def trees(self) -> tuple[Tree, ...]:
        """All trees, those of the first sum first."""
        return tuple(tree for one in self.sums.values() for tree in one.trees)

    @property
    def weights(self) -> Floats:
        """Tree weights, in the order of `trees`."""
        return np.concatenate([one.weights for one in self.sums.values()])

    @property
    def members(self) -> tuple[Self, ...]:
        """The model itself: there are no folds."""
        return (self,)

    def score(self, events: Events, n_threads: int | None = None) -> Floats:
        """Score of every event."""
        return self.combine(self._find_sums(events, n_threads))

    def probabilities(self, events: Events, n_threads: int | None = None) -> Floats:
        """Probabilities of background and of each signal of every event."""
        return self.classify(self._find_sums(events, n_threads))

    def _find_sums(self, events: Events, n_threads: int | None) -> dict[str, Floats]:
        return {name: one.score(events, n_threads) for name, one in self.components.items()}

    def average(self, events: Events, n_threads: int | None = None) -> Floats:
        """The score: there is one model to average."""
        return self.score(events, n_threads)

    def staged_scores(self, events: Events, n_threads: int | None = None) -> Iterator[Floats]:
        """Scores with one tree of each sum, with two, and so on; shorter sums stay as they are at their end."""
        sums = dict.fromkeys(self.components, np.zeros(events.n_rows))
        stages = (component.staged_scores(events, n_threads) for component in self.components.values())
        for stage in zip_longest(*stages):
            sums |= {name: value for name, value in zip(sums, stage, strict=True) if value is not None}
            yield self.combine(sums)

    def leaves(self, events: Events, n_threads: int | None = None) -> NDArray[np.int32]:
        """Index, in each tree's array of nodes, of the leaf that each event falls into, as (event, tree)."""
        return np.concatenate([one.leaves(events, n_threads) for one in self.sums.values()], axis=1)

    def gains(self) -> Floats:
        """Gain of all splits on each feature, in units of the profiled information."""
        return np.asarray(sum(one.gains() for one in self.sums.values()))

    def to_frame(self) -> Any:
        """Return all nodes as a pandas table; the column `sum` says which sum a tree belongs to."""
        pandas = require("pandas", "to_frame")
        frames = {name: one.to_frame() for name, one in self.sums.items()}
        return pandas.concat(frames, names=["sum"]).reset_index(level=0).reset_index(drop=True)
