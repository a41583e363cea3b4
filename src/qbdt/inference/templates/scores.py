"""Scores of events: read and checked, mapped to tanh(c·y), and summarised as ROC curves and histograms.

A scored dataset is a `Dataset` whose one feature is the score; larger is more signal-like.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role
from qbdt.errors import DataError, FitError
from qbdt.statistics import TanhScan, scan_tanh

ROC_POINTS = 201
"""Points of a ROC curve: steps of half a per cent of signal efficiency."""


def read_score(events: Events, what: str) -> Floats:
    """Score column of events, checked; `what` names the events in messages."""
    if len(events.features) != 1:
        names = ", ".join(events.features)
        raise DataError(f"{what} has the columns {names}: a scored dataset has one, use Dataset.with_features")
    score = np.asarray(events.column(events.features[0]), dtype=np.float64)
    bad = int((~np.isfinite(score)).sum())
    if bad:
        raise DataError(f"{what}: the score of {bad} of {len(score)} events is NaN or infinite")
    return score


def collect_scores(scored: Dataset, role: Role) -> tuple[Floats, Floats]:
    """Nominal scores and weights of all events of one role."""
    samples = scored.of_role(role)
    if not any(sample.events.n_rows for sample in samples):
        raise FitError(f"no {role} events: more events, or fewer folds, are needed")
    scores = np.concatenate([read_score(sample.events, f"sample {sample.name}") for sample in samples])
    return scores, np.concatenate([sample.events.weight for sample in samples])


def score_range(scored: Dataset) -> tuple[float, float]:
    """Smallest and largest score of simulated events."""
    every = [read_score(s.events, f"sample {s.name}") for s in scored.samples if s.role is not Role.DATA]
    return min(float(x.min(initial=np.inf)) for x in every), max(float(x.max(initial=-np.inf)) for x in every)


def tanh_scores(scored: Dataset, c: float) -> Dataset:
    """Map the scores of nominal and varied events to tanh(c·y), which lies in (−1, 1)."""
    name = scored.features[0]
    return scored.transform(lambda events: {name: np.tanh(c * np.asarray(events.column(name), dtype=float))})


def rank_scores(scored: Dataset, like: Dataset) -> Dataset:
    """Map scores to the share of events of `like` at or below them, its signal and background with equal sums.

    Examples
    --------
    >>> from qbdt import Events, Sample
    >>> signal = Sample("s", "signal", Events({"score": [0.90, 0.91]}, [1.0, 1.0]))
    >>> background = Sample("b", "background", Events({"score": [0.89, 0.90]}, [8.0, 8.0]))
    >>> scored = Dataset([signal, background])
    >>> rank_scores(scored, like=scored).sample("s").events.column("score")
    array([0.75, 1.  ])
    """
    halves = [collect_scores(like, role) for role in (Role.SIGNAL, Role.BACKGROUND)]
    scores = np.concatenate([score for score, _ in halves])
    order = np.argsort(scores, kind="stable")
    shares = np.concatenate([weight / weight.sum() / 2 for _, weight in halves])
    below = np.maximum.accumulate(np.append(0.0, np.cumsum(shares[order])))
    name = scored.features[0]

    def rank(events: Events) -> dict[str, Floats]:
        places = np.searchsorted(scores[order], np.asarray(events.column(name), dtype=float), side="right")
        return {name: below[places] / below[-1]}

    return scored.transform(rank)


def scan_transform(scored: Dataset, n_bins: int = 20) -> TanhScan:
    """Find the constant c with the largest binned Q without systematics, as the paper does.

    A constant counts only if the last bin still holds background; at least one must.

    Examples
    --------
    >>> from qbdt import Events, Sample
    >>> rng = np.random.default_rng(1)
    >>> signal = Sample("s", "signal", Events({"score": rng.normal(2, 2, 5000)}, np.full(5000, 0.01)))
    >>> background = Sample("b", "background", Events({"score": rng.normal(-2, 2, 5000)}, np.full(5000, 1.0)))
    >>> 0.05 < scan_transform(Dataset([signal, background])).best < 0.5
    True
    """
    scan = scan_tanh(*collect_scores(scored, Role.SIGNAL), *collect_scores(scored, Role.BACKGROUND), n_bins)
    if scan.best is None:
        raise FitError("scan of c: no constant leaves background in the last bin; give c a smaller value")
    return scan


def area_under_roc(scored: Dataset) -> float:
    """Probability that a signal event has a larger score than a background event; ties count half."""
    signal, s_weight = collect_scores(scored, Role.SIGNAL)
    background, b_weight = collect_scores(scored, Role.BACKGROUND)
    order = np.argsort(background, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(b_weight[order])])
    left, right = (np.searchsorted(background[order], signal, side=side) for side in ("left", "right"))
    share = (below[left] + below[right]) / 2
    return float(np.sum(share * s_weight) / (s_weight.sum() * b_weight.sum()))


def roc_points(scored: Dataset) -> dict[str, list[float]]:
    """Background rejection at evenly spaced signal efficiencies."""
    cuts, efficiency = _passing_share(*collect_scores(scored, Role.SIGNAL))
    wanted = np.linspace(0, 1, ROC_POINTS)
    threshold = np.interp(wanted, efficiency, cuts)
    at, passing = _passing_share(*collect_scores(scored, Role.BACKGROUND))
    rejection = 1 - np.interp(threshold, at[::-1], passing[::-1], left=1.0, right=0.0)
    return {"efficiency": wanted.tolist(), "rejection": rejection.tolist()}


def score_histogram(scored: Dataset, edges: Floats, c: float | None = None) -> dict[str, Any]:
    """Contents and variances of signal and background in bins of the score, or of tanh(c·score); overflow folded in."""
    content: dict[str, Any] = {"edges": edges.tolist()}
    for role in (Role.SIGNAL, Role.BACKGROUND):
        score, weight = collect_scores(scored, role)
        inside = np.clip(score if c is None else np.tanh(c * score), edges[0], edges[-1])
        content[f"{role}"] = np.histogram(inside, edges, weights=weight)[0].tolist()
        content[f"{role}_variance"] = np.histogram(inside, edges, weights=weight**2)[0].tolist()
    return content


def _passing_share(score: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Scores in falling order and the share of the yield at or above each."""
    order = np.argsort(-score, kind="stable")
    share = np.maximum.accumulate(np.cumsum(weight[order]))  # negative weights must not make it fall
    return score[order], share / share[-1]
