"""Predictions of what more simulated events give, beside what came out:  python -m validation.more_events.

A learning curve on a quarter of the bundled sample predicts σ_μ of a training on all of it; one on 5 000 events of each
side of the INFERNO problem predicts that of 50 000. Then one sample alone has a quarter of its events, and what all of
them give is predicted. Scores are evaluated on the same other events, so that only training differs. Takes ten minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from qbdt.analysis.diagnosis.curves import LearningCurve, thin_events
from qbdt.analysis.diagnosis.sample_gains import SHARE, measure_rise, predict_change, thin_process, thin_source
from qbdt.analysis.diagnosis.simulation import extrapolate, pool_spreads, weigh_exponents
from qbdt.data import Dataset, Events, HashFolds
from qbdt.data.samples import inferno, tautaugamma
from qbdt.statistics import Sensitivity
from qbdt.studies.comparison.score_sensitivity import measure_scores
from qbdt.tables import Table, show
from qbdt.training import Settings, train

SHARES = (0.125, 0.25, 0.5)
REPEATS = 3
SEED = 100
"""Of the quarter of one sample; those of the repeats are others, so that shares of it are drawn anew."""


def bundled(share: int) -> tuple[Dataset, Dataset, Dataset]:
    """Part of the first half of the bundled sample, all of it, and the other half to evaluate on."""
    data = tautaugamma(k=2)
    rule = HashFolds(2, ("event_number",), 7)
    whole, rest = data.select(lambda e: rule.assign(e) == 0), data.select(lambda e: rule.assign(e) == 1)
    return thin_events(whole, 1 / share, 11), whole, rest


def synthetic(n: int, more: int) -> tuple[Dataset, Dataset, Dataset]:
    """Few events, more of them, and others to evaluate on."""

    def numbered(data: Dataset) -> Dataset:
        def identify(events: Events) -> Events:
            columns = {name: events.column(name) for name in events.features}
            return Events(columns, events.weight, {"event": np.arange(events.n_rows)})

        samples = [type(s)(s.name, s.role, identify(s.events)) for s in data.samples]
        return Dataset(samples)

    few, many, other = (inferno(k, seed).with_systematics([]) for k, seed in ((n, 1), (more, 2), (100_000, 3)))
    return numbered(few), numbered(many), numbered(other)


PROBLEMS: dict[str, tuple[Callable[[], tuple[Dataset, Dataset, Dataset]], float, float]] = {
    "bundled sample, from a quarter to a half of all": (lambda: bundled(4), 4.0, 2.0),
    "INFERNO without sources, from 5 000 to 50 000": (lambda: synthetic(5_000, 50_000), 10.0, 1.0),
}


def judge(data: Dataset, other: Dataset, scale: float) -> Sensitivity:
    """σ_μ of other events with the score of a training."""
    model = train(data, Settings()).ensemble
    scored = other.with_folds(None).transform(lambda events: {"score": model.score(events)})
    return measure_scores(scored, "equal_signal", 20, scale)


def learn(few: Dataset, evaluate: Callable[[Dataset], Sensitivity]) -> LearningCurve:
    """Learning curve of a sample."""
    points = [(x, [evaluate(thin_events(few, x, seed)) for seed in range(REPEATS)]) for x in SHARES]
    return LearningCurve.of("share of the training events", [*points, (1.0, [evaluate(few)])])


def predict_all() -> Table:
    """More of everything."""
    rows = []
    for name, (make, factor, scale) in PROBLEMS.items():
        few, many, other = make()
        evaluate = partial(judge, other=other, scale=scale)
        curve = learn(few, evaluate)
        now = curve.full[-1]
        ratio, error = extrapolate(curve, REPEATS, factor)
        limit, limit_error = extrapolate(curve, REPEATS, None)
        measured = ", ".join(f"{value:.3f}" for value in curve.full)
        cells = (f"{now * ratio:.3f} ± {now * error:.3f}", f"{evaluate(many).sigma_full:.3f}")
        rows.append((name, measured, f"{factor:g} ×", *cells, f"{limit:.3f} ± {limit_error:.3f}"))
    header = ("problem", "σ_μ with 1/8, 1/4, 1/2, all", "then", "predicted", "came out", "limit/now")
    return Table("More simulated events: predictions", header, tuple(rows))


def predict_one() -> Table:
    """Four times the events of one sample, where all others stay: half of the bundled sample."""
    _, many, other = bundled(1)
    evaluate, rows = partial(judge, other=other, scale=2.0), []
    samples = [partial(thin_process, process=s.name) for s in many.samples] + [partial(thin_source, source="tes")]
    there = evaluate(many).sigma_full
    for thin in samples:
        name = str(next(iter(thin.keywords.values())))
        few = thin(many, share=0.25, seed=SEED)
        curve = learn(few, evaluate)
        found = [evaluate(thin(few, share=SHARE, seed=seed)).sigma_full for seed in range(REPEATS)]
        base = extrapolate(curve, REPEATS, 1.0)[0] * curve.full[-1]
        rise, error = measure_rise(found, curve)
        change, change_error = predict_change(rise, error, weigh_exponents(curve, REPEATS), 4.0)
        cells = (f"{base:.3f}", f"{base * (1 + rise):.3f}", f"{base * (1 + change):.3f} ± {base * change_error:.3f}")
        rows.append((name, *cells, f"{there:.3f} ± {pool_spreads(curve)[-1]:.3f}"))  # one training has its luck, too
    header = ("sample", "σ_μ with a quarter of its events", "with a sixteenth", "predicted with all", "came out")
    return Table("More events of one sample: predictions", header, tuple(rows))


def main() -> None:
    show([predict_all(), predict_one()])


if __name__ == "__main__":
    main()
