"""Scores of events by a model, on the CPU or on a GPU: the same numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.training import FoldedEnsemble, Model, SingleModel
from qbdt.trees.device import Device, open_device, score_on_device


def score_events(model: Model, events: Events, n_threads: int | None = None, device: str | None = None) -> Floats:
    """Score of every event; of a model with folds by the member that never saw it, which its identifiers tell.

    Examples
    --------
    >>> import numpy as np
    >>> from qbdt.trees import Ensemble
    >>> score_events(Ensemble(("pt",), ()), Events({"pt": [1.0, 2.0]}, np.ones(2)))
    array([0., 0.])
    """
    return place_model(model, device).score(events, n_threads)


def classify_events(model: Model, events: Events, n_threads: int | None = None, device: str | None = None) -> Floats:
    """Probabilities of background and of each signal of every event, as (event, class); the member as for scores."""
    return place_model(model, device).probabilities(events, n_threads)


class PlacedModel(Protocol):
    """Scores events, wherever it does it."""

    def score(self, events: Events, n_threads: int | None = None) -> Floats:
        """Score of every event."""

    def average(self, events: Events, n_threads: int | None = None) -> Floats:
        """Mean of the scores of all members."""

    def probabilities(self, events: Events, n_threads: int | None = None) -> Floats:
        """Probabilities of background and of each signal, as (event, class)."""


def place_model(model: Model, device: str | None) -> PlacedModel:
    """Return a model that scores on a device; the model itself for None; a missing device is refused."""
    opened = open_device(device)
    if opened is None:
        return model
    members: Any = tuple(_OnDevice(member, opened) for member in model.members)
    return replace(model, members=members) if isinstance(model, FoldedEnsemble) else members[0]


@dataclass(frozen=True, eq=False)
class _OnDevice:
    """A model whose sums of trees are found on a device; the CPU combines them."""

    model: SingleModel
    device: Device

    def score(self, events: Events, n_threads: int | None = None) -> Floats:
        return self.model.combine(self._find_sums(events))

    def average(self, events: Events, n_threads: int | None = None) -> Floats:
        return self.score(events, n_threads)

    def probabilities(self, events: Events, n_threads: int | None = None) -> Floats:
        return self.model.classify(self._find_sums(events))

    def _find_sums(self, events: Events) -> dict[str, Floats]:
        return {name: score_on_device(one, events, self.device) for name, one in self.model.components.items()}
