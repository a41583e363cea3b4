"""Negative weights in training: smoothed (the default), raw, dropped, or without their sign. Study of docs/weights.md.

Signs are put into the bundled h → γττ sample so that no expectation changes: an event is negative with probability p
and all weights are divided by 1 − 2p, so the mean weight at every point stays what it was. Two cases: the same p for
all events, and p that rises with one feature, as at next-to-leading order, where negative weights crowd where
counter-terms are large. Models are trained by folds on these events and judged on the held-out events with their true
weights, so that only training differs. What to compare with: a sample of positive weights that is thinned to the same
effective number of events.

Run:  python -m validation.weights [--share S] [--seeds N] [--trees N] [--percent P …] [--json FILE]     (make weights)
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from qbdt.analysis.diagnosis.curves import thin_events
from qbdt.analysis.diagnosis.sensitivity import compute_sensitivity
from qbdt.arrays import Floats
from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.samples.bundled import tautaugamma
from qbdt.data.variations import Variation
from qbdt.inference.settings import FitSettings
from qbdt.statistics import Sensitivity
from qbdt.tables import Table
from qbdt.training.ensembles import FoldedEnsemble
from qbdt.training.methods import train
from qbdt.training.settings import Settings

Chance = Callable[[Events], Floats]
Change = Callable[[Events, Floats], Floats]
"""New weights of events from their old ones."""

Found = dict[str, dict[str, list[Sensitivity]]]
"""Results by case and treatment, one for each part of the sample and seed of the signs."""

PERCENT = (5, 10, 20, 30, 40)
"""Shares of negative weights."""

MOST = 0.45
"""Largest chance of a negative weight: at one half nothing is left of the yield."""

CROWDING = ("m_lephadpho", 45.0, 125.0)
"""Feature and range in which the chance of a negative weight rises from zero."""

TREATMENTS: dict[str, Change] = {
    "dropped": lambda _, weight: np.where(weight > 0, weight, 0.0),
    "absolute values": lambda _, weight: np.abs(weight),
}


def everywhere(share: float = 0.2) -> Chance:
    """The same chance for all events."""
    return lambda events: np.full(events.n_rows, share)


def crowded(dataset: Dataset, share: float, feature: str, low: float, high: float) -> Chance:
    """Chance that rises with a feature from 0 at one value on, `share` on average, up to `MOST` or to another value."""

    def place(events: Events) -> Floats:
        return np.clip((np.asarray(events.column(feature), dtype=float) - low) / (high - low), 0.0, 1.0)

    places = np.concatenate([place(sample.events) for sample in dataset.of_role(Role.BACKGROUND)])
    slopes = np.geomspace(0.01, 100.0, 2000)
    means = np.array([np.minimum(slope * places, MOST).mean() for slope in slopes])
    slope = slopes[np.argmin(np.abs(means - share))]
    return lambda events: np.minimum(slope * place(events), MOST)


def reweighted(dataset: Dataset, change: Change) -> Dataset:
    """Change the weights of all background events, nominal and varied, row by row."""

    def varied(process: str, variation: Variation) -> Variation:
        if dataset.sample(process).role is not Role.BACKGROUND:
            return variation
        events = dataset.sample(process).events if variation.replacement is None else variation.replacement
        return variation.map_weights(lambda weight: change(events, weight))

    samples = [
        Sample(s.name, s.role, s.events.with_weight(change(s.events, s.events.weight)))
        if s.role is Role.BACKGROUND
        else s
        for s in dataset.samples
    ]
    return Dataset(samples, [source.map(varied) for source in dataset.systematics], dataset.folds)


def signed(dataset: Dataset, chance: Chance, seed: int) -> Dataset:
    """Give background events signs by chance, the same to an event and its copies, and unchanged expectations."""

    def change(events: Events, weight: Floats) -> Floats:
        p = chance(events)
        drawn = events.hash_identifiers(0x516 + seed).astype(np.float64) / 2.0**64
        return np.where(drawn < p, -weight, weight) / (1.0 - 2.0 * p)

    return reweighted(dataset, change)


def thinned(dataset: Dataset, like: Dataset, seed: int) -> Dataset:
    """Keep so many background events, of larger weights, that they are as many effective ones as in another dataset."""
    kept, wanted = (
        sum(sample.events.effective_entries for sample in one.of_role(Role.BACKGROUND)) for one in (dataset, like)
    )
    share = min(wanted / kept, 1.0)

    def change(events: Events, weight: Floats) -> Floats:
        drawn = events.hash_identifiers(0x7A1 + seed).astype(np.float64) / 2.0**64
        return np.where(drawn < share, weight / share, 0.0)

    return reweighted(dataset, change)


def judge(trained_on: Dataset, judged_on: Dataset, settings: Settings, fit: FitSettings) -> Sensitivity:
    """σ_μ of held-out true events, scored by models trained on the others of another version of the sample."""
    assert judged_on.folds is not None
    ensembles = [train(trained_on.without_fold(i), settings, n_threads=1).ensemble for i in range(judged_on.folds.k)]
    models = FoldedEnsemble(tuple(ensembles), judged_on.folds)
    return compute_sensitivity(judged_on.transform(lambda events: {"score": models.score(events, 1)}), fit)


def judge_treatments(
    dataset: Dataset, chance: Chance, seed: int, settings: Settings, fit: FitSettings
) -> dict[str, Sensitivity]:
    """σ_μ for every treatment of the same signs, and of a sample of positive weights of the same effective size."""
    events = signed(dataset, chance, seed)
    trained_on = {
        "smooth": (events, settings),
        "raw": (events, replace(settings, negative_weights="raw")),
        **{name: (reweighted(events, treatment), settings) for name, treatment in TREATMENTS.items()},
        "as few positive": (thinned(dataset, events, seed), settings),
    }
    return {name: judge(one, dataset, own, fit) for name, (one, own) in trained_on.items()}


def study(datasets: Sequence[Dataset], cases: dict[str, Chance], settings: Settings, fit: FitSettings) -> Found:
    """σ_μ for every case and treatment, each dataset with other signs, and of training without any sign."""
    found: Found = {"none": {"–": [judge(dataset, dataset, settings, fit) for dataset in datasets]}}
    for case, chance in cases.items():
        each = [judge_treatments(dataset, chance, seed, settings, fit) for seed, dataset in enumerate(datasets)]
        found[case] = {name: [one[name] for one in each] for name in each[0]}
        told = [f"{name} {_with_spread([one.sigma_full for one in all_of])}" for name, all_of in found[case].items()]
        print(f"{case}: {', '.join(told)}", file=sys.stderr, flush=True)
    return found


def table(title: str, found: Found) -> Table:
    """Mean and spread over seeds of σ_μ with sources, one row for each case and one column for each treatment."""
    none = _with_spread([one.sigma_full for one in found["none"]["–"]])
    names = list(next(treatments for case, treatments in found.items() if case != "none"))
    rows = [
        (case, *(_with_spread([one.sigma_full for one in treatments[name]]) for name in names))
        for case, treatments in found.items()
        if case != "none"
    ]
    return Table(f"{title}; without signs {none}", ("negative weights", *names), tuple(rows))


def _with_spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else f"{values[0]:.3f}"


def ratios_table(title: str, found: Found) -> Table:
    """σ_μ of smoothed weights over that of every other treatment of the same signs: mean, and error of the mean."""
    rows = []
    for case, treatments in found.items():
        if case != "none":
            own = np.array([one.sigma_full for one in treatments["smooth"]])
            others = {name: own / [one.sigma_full for one in results] for name, results in treatments.items()}
            rows.append((case, *(_with_error(ratio) for name, ratio in others.items() if name != "smooth")))
            names = [name for name in treatments if name != "smooth"]
    return Table(f"{title}: smooth over others, paired", ("negative weights", *names), tuple(rows))


def _with_error(values: Floats) -> str:
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else 0.0
    return f"{values.mean():.3f} ± {error:.3f}"


def yields_table(dataset: Dataset, cases: dict[str, Chance]) -> Table:
    """What the treatments do to the background itself, if they were used in templates too."""
    rows = []
    for case, chance in cases.items():
        events = signed(dataset, chance, 0)
        weights = np.concatenate([s.events.weight for s in events.of_role(Role.BACKGROUND)])
        effective = weights.sum() ** 2 / np.square(weights).sum() / weights.size
        totals = [reweighted(events, change).total(Role.BACKGROUND) for change in TREATMENTS.values()]
        ratios = [f"{total / dataset.total(Role.BACKGROUND):.2f}" for total in totals]
        rows.append((case, f"{np.mean(weights < 0):.3f}", f"{effective:.3f}", *ratios))
    header = ("negative weights", "share", "effective/simulated", *TREATMENTS)
    return Table("Background: negative weights, effective events, yield against the true one", header, tuple(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.2, help="share of the bundled events to use")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trees", type=int, default=40)
    parser.add_argument("--percent", type=int, nargs="+", default=PERCENT, help="shares of negative weights")
    parser.add_argument("--methods", nargs="+", default=("paper", "mc_stat", "profile"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    dataset = tautaugamma(k=2)
    seeds = range(arguments.seeds)
    datasets = [thin_events(dataset, arguments.share, seed) if arguments.share < 1 else dataset for seed in seeds]
    cases = {}
    for percent in arguments.percent:
        cases[f"{percent} %, everywhere"] = everywhere(percent / 100)
        cases[f"{percent} %, at large m(lτγ)"] = crowded(dataset, percent / 100, *CROWDING)
    fit = FitSettings(binning="optimised", transform="none", bins=20)
    trainings = {
        "paper": Settings(method="paper", n_trees=arguments.trees),
        "mc_stat": Settings(method="paper", n_trees=arguments.trees, mc_stat=True),
        "profile": Settings(method="profile", n_trees=2 * arguments.trees),
    }
    print(yields_table(dataset, cases))
    plain = {}
    for name in arguments.methods:
        found = study(datasets, cases, trainings[name], fit)
        print(
            f"\n{table(f'Expected σ_μ of held-out true events: {name}', found)}\n\n{ratios_table(name, found)}",
            flush=True,
        )
        plain[name] = {c: {n: [vars(s) for s in r] for n, r in t.items()} for c, t in found.items()}
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
