"""Which features matter: by gain, and by what σ_μ loses when a feature is scrambled.

Scrambling hands every event the value of another event of the same fold, signal or background alike. The order in which
values are handed on is that of a hash of the identifiers, so that an event and its shifted copies get the value of the
same donor, nominal and shifted: the sources stay what they are, only the feature knows nothing of its event any more.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.analysis.diagnosis.sensitivity import compute_template_sensitivity
from qbdt.data import Dataset, Events, FoldRule, Role, Sample
from qbdt.errors import DataError
from qbdt.inference import FitSettings, build_templates, refill
from qbdt.progress import Progress, silent
from qbdt.training import FoldedEnsemble, gain_shares


@dataclass(frozen=True)
class FeatureRank:
    """Worth of one feature."""

    feature: str
    gain: float  # Share of the gain of all splits, mean over the models
    # full, stat: rise of σ_μ, with and without systematics, when the feature is scrambled: mean over repeats
    full: float
    # full_spread, stat_spread: standard deviation over repeats; zero for one repeat
    full_spread: float
    stat: float
    stat_spread: float


def rank_features(
    dataset: Dataset,
    models: FoldedEnsemble,
    settings: FitSettings,
    *,
    repeats: int = 3,
    seed: int = 0,
    n_threads: int | None = None,
    progress: Progress = silent,
) -> tuple[FeatureRank, ...]:
    """Rank features by the rise of the full σ_μ when each is scrambled, largest first; mean over `repeats`.

    Transform and bins of the fit are those chosen on the true events.
    """

    def scored(events: Dataset) -> Dataset:
        return events.transform(lambda e: {"score": models.score(e, n_threads)})

    built = build_templates(scored(dataset), settings)
    before = compute_template_sensitivity(built.templates, settings.mc_stat)
    share = gain_shares(models).mean(axis=0)
    ranks = []
    with progress("scrambling features", len(dataset.features) * repeats) as advance:
        for feature, gain in zip(dataset.features, share, strict=True):
            rises = []
            for repeat in range(repeats):
                templates = refill(scored(scramble_feature(dataset, feature, seed + repeat)), settings, built)
                after = compute_template_sensitivity(templates, settings.mc_stat)
                rises.append((after.sigma_full - before.sigma_full, after.sigma_stat - before.sigma_stat))
                advance(1)
            (full, stat), spread = np.mean(rises, axis=0), np.std(rises, axis=0, ddof=1 if repeats > 1 else 0)
            ranks.append(
                FeatureRank(feature, float(gain), float(full), float(spread[0]), float(stat), float(spread[1]))
            )
    return tuple(sorted(ranks, key=lambda rank: -rank.full))


def scramble_feature(dataset: Dataset, feature: str, seed: int = 0) -> Dataset:
    """Return simulated events whose values of one feature are those of other events of the same fold.

    Examples
    --------
    >>> from qbdt.data import ModuloFolds
    >>> events = Events({"x": np.arange(6.0), "y": np.arange(6.0)}, np.ones(6), {"event": np.arange(6)})
    >>> mixed = scramble_feature(Dataset([Sample("b", Role.BACKGROUND, events)], folds=ModuloFolds(2, "event")), "x")
    >>> found = mixed.sample("b").events
    >>> bool(np.all(found.column("x") != found.column("y"))), sorted(found.column("x").tolist())
    (True, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    """
    folds = dataset.folds
    if folds is None:
        raise DataError("scrambling a feature needs folds: values stay within the fold of their event")
    kept = [sample for sample in dataset.samples if sample.role is not Role.DATA]
    nominal = {sample.name: sample.events for sample in kept}
    mixed = _hand_on(nominal, feature, folds, seed)
    samples = [Sample(s.name, s.role, mixed[s.name]) for s in kept]

    def scramble(moved: Mapping[str, Events]) -> dict[str, Events]:
        """Scramble replaced events among all events as they are when the source is moved."""
        return _hand_on({**nominal, **moved}, feature, folds, seed)

    sources = [source.map_replacements(scramble) for source in dataset.systematics]
    return Dataset(samples, sources, folds)


def _hand_on(events: Mapping[str, Events], feature: str, folds: FoldRule, seed: int) -> dict[str, Events]:
    """Give every event the value of the next one of its fold, in the order of a hash of their identifiers."""
    fold = np.concatenate([folds.assign(e) for e in events.values()])
    salts = {process: (seed << 32) + zlib.crc32(process.encode()) for process in events}
    keys = np.concatenate([e.hash_identifiers(salts[process]) for process, e in events.items()])
    rows = np.concatenate([e.hash_rows(seed) for e in events.values()])
    values = np.concatenate([np.asarray(e.column(feature)) for e in events.values()])
    order = np.lexsort((rows, keys, fold))
    taken = np.empty_like(values)
    for number in range(folds.k):
        members = order[fold[order] == number]
        taken[members] = values[np.roll(members, -1)]
    return _split_values(events, feature, taken)


def _split_values(events: Mapping[str, Events], feature: str, values: NDArray[np.floating]) -> dict[str, Events]:
    ends: Sequence[int] = np.cumsum([e.n_rows for e in events.values()])[:-1].tolist()
    pieces = np.split(values, ends)
    return {p: e.with_column(feature, piece) for (p, e), piece in zip(events.items(), pieces, strict=True)}
