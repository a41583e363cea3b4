"""Negative weights in training: used as they are, dropped, or taken without their sign. The study of docs/weights.md.

Signs are put into the bundled h → γττ sample so that no expectation changes: an event is negative with probability p
and all weights are divided by 1 − 2p, so the mean weight at every point stays what it was. Two cases: p = 0.2 for all
events, and p rising from 0 to 0.4 with one feature, 0.2 on average, as at next-to-leading order, where negative
weights crowd where counter-terms are large. Models are trained by folds on these events and judged on the held-out
events with their true weights, so that only training differs.

Run:  python -m validation.weights [--share S] [--seeds N] [--trees N] [--json FILE]     (make weights)
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from qbdt.analysis.diagnosis.curves import thin_events
from qbdt.analysis.diagnosis.sensitivity import compute_sensitivity
from qbdt.arrays import Floats
from qbdt.data.dataset import Dataset, Role, Sample
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

MEAN = 0.2
"""Share of negative weights."""

TREATMENTS: dict[str, Change] = {
    "as they are": lambda _, weight: weight,
    "dropped": lambda _, weight: np.where(weight > 0, weight, 0.0),
    "absolute values": lambda _, weight: np.abs(weight),
}


def everywhere(events: Events) -> Floats:
    """The same chance for all events."""
    return np.full(events.n_rows, MEAN)


def crowded(feature: str, low: float, high: float) -> Chance:
    """Chance that rises from 0 to 0.4 between two values of a feature."""

    def chance(events: Events) -> Floats:
        place = np.clip((np.asarray(events.column(feature), dtype=float) - low) / (high - low), 0.0, 1.0)
        return 0.4 * place

    return chance


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


def judge(trained_on: Dataset, judged_on: Dataset, settings: Settings, fit: FitSettings) -> Sensitivity:
    """σ_μ of held-out true events, scored by models trained on the others of another version of the sample."""
    assert judged_on.folds is not None
    ensembles = [train(trained_on.without_fold(i), settings, n_threads=1).ensemble for i in range(judged_on.folds.k)]
    models = FoldedEnsemble(tuple(ensembles), judged_on.folds)
    return compute_sensitivity(judged_on.transform(lambda events: {"score": models.score(events, 1)}), fit)


def study(
    dataset: Dataset, cases: dict[str, Chance], seeds: int, settings: Settings, fit: FitSettings
) -> dict[str, dict[str, list[Sensitivity]]]:
    """σ_μ for every case and treatment over seeds of the signs, and of training without any sign."""
    found: dict[str, dict[str, list[Sensitivity]]] = {"none": {"–": [judge(dataset, dataset, settings, fit)]}}
    for case, chance in cases.items():
        found[case] = {name: [] for name in TREATMENTS}
        for seed in range(seeds):
            events = signed(dataset, chance, seed)
            for name, treatment in TREATMENTS.items():
                treated = reweighted(events, treatment)
                found[case][name].append(judge(treated, dataset, settings, fit))
    return found


def table(title: str, found: dict[str, dict[str, list[Sensitivity]]]) -> Table:
    """Mean, spread over seeds, and the paired difference to training with the weights as they are."""
    rows = []
    for case, treatments in found.items():
        native = np.array([s.sigma_full for s in next(iter(treatments.values()))])
        for name, results in treatments.items():
            full, stat = (np.array([getattr(s, kind) for s in results]) for kind in ("full", "stat"))
            several = full.size > 1
            difference = full - native
            error = difference.std(ddof=1) / np.sqrt(full.size) if several else 0.0
            paired = "–" if name in ("–", "as they are") else f"{difference.mean():+.3f} ± {error:.3f}"
            spread = f"{full.std(ddof=1):.3f}" if several else "–"
            rows.append((case, name, f"{full.mean():.3f}", spread, f"{stat.mean():.3f}", paired))
    header = ("negative weights", "in training", "σ_μ full", "spread", "σ_μ stat", "full, paired difference")
    return Table(title, header, tuple(rows))


def yields_table(dataset: Dataset, cases: dict[str, Chance]) -> Table:
    """What the treatments do to the background itself, if they were used in templates too."""
    rows = []
    for case, chance in cases.items():
        events = signed(dataset, chance, 0)
        negative = np.mean(np.concatenate([s.events.weight < 0 for s in events.of_role(Role.BACKGROUND)]))
        for name, treatment in TREATMENTS.items():
            treated = reweighted(events, treatment)
            ratio = treated.total(Role.BACKGROUND) / dataset.total(Role.BACKGROUND)
            rows.append((case, f"{negative:.3f}", name, f"{ratio:.3f}"))
    return Table(
        "Background yield against the true one", ("negative weights", "share", "treatment", "ratio"), tuple(rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.2, help="share of the bundled events to use")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trees", type=int, default=40)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    dataset = tautaugamma(k=2)
    if arguments.share < 1:
        dataset = thin_events(dataset, arguments.share)
    cases = {"20 %, everywhere": everywhere, "20 %, at large m(lτγ)": crowded("m_lephadpho", 45.0, 125.0)}
    fit = FitSettings(binning="optimised", transform="none", bins=20)
    trainings = {
        "paper, defaults": Settings(method="paper", n_trees=arguments.trees),
        "paper, mc_stat": Settings(method="paper", n_trees=arguments.trees, mc_stat=True),
        "profile": Settings(method="profile", n_trees=2 * arguments.trees),
    }
    print(yields_table(dataset, cases))
    plain = {}
    for name, settings in trainings.items():
        found = study(dataset, cases, arguments.seeds, settings, fit)
        print(f"\n{table(f'Expected σ_μ of held-out true events: {name}', found)}", flush=True)
        plain[name] = {c: {n: [vars(s) for s in r] for n, r in t.items()} for c, t in found.items()}
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
