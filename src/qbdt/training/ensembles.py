"""Models as they score: the protocol of every model, and models by folds.

A model is a paper's `Ensemble`, a `ProfiledEnsemble`, `EfficientScores`, or a `FoldedEnsemble` of one of them.
Scoring, drawing and exporting use the protocols below and never ask which it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Events, FoldRule
from qbdt.errors import DataError
from qbdt.trees import Ensemble, Tree


class Model(Protocol):
    """Scores events; made of one member, or of one for each fold."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in order."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters of interest with a score each; empty where there is one score, for the signal strength."""

    @property
    def strengths(self) -> tuple[str, ...]:
        """Strengths of the signals that are told apart; empty where there is one signal."""

    @property
    def folds(self) -> FoldRule | None:
        """Rule that says which member scores an event; None where there is one member only."""

    @property
    def members(self) -> tuple[SingleModel, ...]:
        """Models of the folds in their order, or the model itself."""

    def score(self, events: Events, n_threads: int | None = None) -> Floats:
        """Score of every event."""

    def average(self, events: Events, n_threads: int | None = None) -> Floats:
        """Mean of the scores of all members."""

    def probabilities(self, events: Events, n_threads: int | None = None) -> Floats:
        """Probabilities of background and of each signal, as (event, class)."""


class SingleModel(Model, Protocol):
    """A model without folds: its score is a function of a few sums of trees, its components."""

    @property
    def trees(self) -> tuple[Tree, ...]:
        """Trees of all components."""

    @property
    def weights(self) -> Floats:
        """Tree weights, in the order of `trees`."""

    @property
    def components(self) -> dict[str, Ensemble]:
        """Sums of trees by name: `score`, `ratio` and `shift`, or one for each strength and one for each score."""

    @property
    def constants(self) -> Mapping[str, Any]:
        """Numbers besides the components that the score is computed from: none, or what its formula names."""

    def combine(self, sums: Mapping[str, Floats]) -> Floats:
        """Score from the values of the components."""

    def bound_error(self, errors: Mapping[str, float]) -> float:
        """Upper bound on the error of a score, from those of the components."""

    def classify(self, sums: Mapping[str, Floats]) -> Floats:
        """Probabilities of background and of each signal from the values of the components, as (event, class)."""

    def gains(self) -> Floats:
        """Gain of all splits on each feature."""

    def staged_scores(self, events: Events, n_threads: int | None = None) -> Iterator[Floats]:
        """Scores with one tree of each component, with two, and so on."""

    def leaves(self, events: Events, n_threads: int | None = None) -> NDArray[np.int32]:
        """Index of the leaf of each event in each tree, as (event, tree)."""

    def to_frame(self) -> Any:
        """Return all nodes as a pandas table."""


def gain_shares(model: Model) -> Floats:
    """Share of each feature in the gain of all splits, as (member, feature); zeros where nothing was split.

    Examples
    --------
    >>> gain_shares(Ensemble(("pt", "m"), ()))
    array([[0., 0.]])
    """
    gains = np.array([member.gains() for member in model.members])
    return np.asarray(gains / np.maximum(gains.sum(axis=1, keepdims=True), 1e-300))


@dataclass(frozen=True, eq=False)
class FoldedEnsemble:
    """One model per fold, each trained without that fold: every event is scored by the one that never saw it."""

    members: tuple[SingleModel, ...]  # In the order of folds
    folds: FoldRule  # The rule that says which fold an event is in

    def __post_init__(self) -> None:
        if len(self.members) != self.folds.k:
            raise DataError(f"{len(self.members)} models for {self.folds.k} folds: one for each is needed")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        return self.members[0].features

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters of interest with a score each, the same in all folds."""
        return self.members[0].parameters

    @property
    def strengths(self) -> tuple[str, ...]:
        """Strengths of the signals that are told apart, the same in all folds."""
        return self.members[0].strengths

    def score(self, events: Events, n_threads: int | None = None) -> Floats:
        """Score of every event, from the member of its fold."""
        return self._by_fold(events, lambda member, own: member.score(own, n_threads))

    def probabilities(self, events: Events, n_threads: int | None = None) -> Floats:
        """Probabilities of every event, from the member of its fold."""
        return self._by_fold(events, lambda member, own: member.probabilities(own, n_threads))

    def _by_fold(self, events: Events, compute: Callable[[SingleModel, Events], Floats]) -> Floats:
        absent = [name for name in self.folds.columns if name not in events.id_names]
        if absent:
            raise DataError(
                f"the events have no identifier column {', '.join(absent)}, so which model did not see them is not "
                "known; for events that took no part in the training ask for the average of the models"
            )
        fold = self.folds.assign(events)
        of_folds = [compute(member, events[fold == number]) for number, member in enumerate(self.members)]
        found = np.empty((events.n_rows, *of_folds[0].shape[1:]))  # a column for each score, where there are several
        for number, own in enumerate(of_folds):
            found[fold == number] = own
        return found

    def average(self, events: Events, n_threads: int | None = None) -> Floats:
        """Mean of the scores of all members, for events of which none took part in the training.

        It is spread less than the scores of single models are, so what is compared in one template must be scored in
        one way: recorded data beside simulated events by the rule, like these.
        """
        first, *others = self.members
        total = first.score(events, n_threads)
        for member in others:
            total = total + member.score(events, n_threads)
        return total / len(self.members)
