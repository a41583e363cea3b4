"""Sources that a benchmark adds: without any effect, with smooth effects, and with nothing but noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from qbdt.data import Dataset, Events, Role, Sample, Systematic

__all__ = ["resampled", "shuffled", "tilted", "with_idle_sources", "with_sources"]

TILT = 0.02
"""Largest relative change of a weight by a smooth source."""

SCATTER = 0.2
"""Relative scatter of weights by a source that is nothing but noise."""

LOST = 0.05
"""Share of events that a resampled variation loses, and share that it holds twice."""


def with_sources(data: Dataset, sources: list[Systematic]) -> Dataset:
    """Add sources to a dataset."""
    return Dataset(data.samples, [*data.systematics, *sources], data.folds)


def with_idle_sources(data: Dataset, n: int) -> Dataset:
    """Replace all sources by `n` that leave every event as it is."""
    sources = [
        Systematic.shape(f"idle{k}", up={sample.name: sample.events for sample in data.of_role(Role.BACKGROUND)})
        for k in range(n)
    ]
    return Dataset(data.samples, sources, data.folds)


def tilted(data: Dataset, n: int, seed: int) -> list[Systematic]:
    """Sources with an effect: background weights tilted along random directions of the features."""
    random = np.random.default_rng(seed)
    directions = random.normal(size=(n, len(data.features)))
    centre, spread = _moments(data)

    def change(direction: NDArray[np.float64], sample: Sample) -> NDArray[np.float64]:
        z = np.nan_to_num((np.asarray(sample.events.matrix(), dtype=np.float64) - centre) / spread)
        return np.asarray(TILT * np.tanh(z @ direction / np.linalg.norm(direction)))

    return [_reweighting(f"tilt{k}", data, partial(change, direction)) for k, direction in enumerate(directions)]


def shuffled(data: Dataset, n: int, seed: int) -> list[Systematic]:
    """Noise of weights: each background event moves by its own random amount, zero on average."""
    random = np.random.default_rng(seed)
    return [
        _reweighting(f"noise{k}", data, lambda sample: SCATTER * random.normal(size=sample.events.n_rows))
        for k in range(n)
    ]


def resampled(data: Dataset, n: int, seed: int) -> list[Systematic]:
    """Noise of events: variations of the background that lose some events and hold others twice, at random."""
    random = np.random.default_rng(seed)

    def drawn() -> dict[str, Events]:
        found = {}
        for sample in data.of_role(Role.BACKGROUND):
            times = random.choice([0, 1, 2], size=sample.events.n_rows, p=[LOST, 1 - 2 * LOST, LOST])
            found[sample.name] = sample.events[np.repeat(np.arange(sample.events.n_rows), times)]
        return found

    return [Systematic.shape(f"resampled{k}", up=drawn(), down=drawn()) for k in range(n)]


def _reweighting(name: str, data: Dataset, change: Callable[[Sample], NDArray[np.float64]]) -> Systematic:
    effects = {s.name: (s.events.weight, change(s)) for s in data.of_role(Role.BACKGROUND)}
    up, down = ({p: w * (1 + sign * e) for p, (w, e) in effects.items()} for sign in (1, -1))
    return Systematic.weight(name, up=up, down=down)


def _moments(data: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = np.concatenate([np.asarray(s.events.matrix(), dtype=np.float64) for s in data.of_role(Role.BACKGROUND)])
    return np.nanmean(values, axis=0), np.nanstd(values, axis=0)
