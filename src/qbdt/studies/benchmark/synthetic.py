"""P1, the synthetic problem of INFERNO: σ(s) in its five benchmarks B0 … B4, which leave nothing to a fit's details.

B0 has no nuisance parameter; B1 has the position r of the background, B2 r and its rate λ, all free; B3 has priors
r ~ N(0, 0.4) and λ ~ N(3, 1); B4 adds the background yield, b ~ N(1000, 100).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role
from qbdt.data.samples import BACKGROUND_YIELD, NOMINAL_RATE, SIGNAL_YIELD, inferno
from qbdt.inference.templates import ScoreBins, TemplateSet, equal_yield_edges, fill, optimise_edges
from qbdt.studies.comparison.contestants import Contestant
from qbdt.studies.comparison.nested_training import Cache, Division, choose_settings, collect_all_scores
from qbdt.studies.trainers import Parameters, Scorer

COLUMNS = ("B0", "B1", "B2", "B3", "B4")
PUBLISHED = {
    "cross-entropy network (published)": (14.99, 18.94, 23.94, 21.54, 26.71),
    "INFERNO, best of five (published)": (15.51, 16.79, 16.95, 16.88, 18.67),
}
"""Ten bins; P. de Castro and T. Dorigo, INFERNO: Inference-Aware Neural Optimisation."""
LIMIT = (14.71, 15.52, 15.65, 15.62, 16.89)
"""Unbinned analytic likelihood (published)."""

R_SIZE, RATE_SIZE, NORM_SIZE = 0.4, 1.0, 0.1
R_STEP, RATE_STEP = 0.2, 0.5
"""Steps of the derivatives."""

INNER_FOLDS = 2
"""Folds of the training events on which settings are chosen."""
CHOOSE_SEED, TEST_SEED = 1_000_000, 2_000_000
"""Added to the seed for the events that edges are chosen on and for those that are fitted."""


def measure_synthetic(
    contestant: Contestant, seed: int, n: int, budget: int, cache: Cache, sources: bool = True
) -> tuple[dict[tuple[str, int], Floats], Parameters]:
    """Train on `n` signal and `n` background events, choose edges on 2 n others and measure on 3 n others.

    `budget` settings are tried on halves of the training events; with `sources`, training is told of r, λ and b. It
    returns σ(s) in the benchmarks B0 … B4 for each (binning, bins), and the chosen settings.
    """
    events = inferno(n, seed, r_size=R_SIZE, rate_size=RATE_SIZE, norm_size=NORM_SIZE)
    division = Division(events if sources else events.with_systematics([]), ("event_number",), INNER_FOLDS, 1, seed)
    key = division.make_key()
    (settings,) = choose_settings(contestant, division, key, budget, cache)
    choose, test = _other_events(seed, n)
    full_key = {**key, "release": contestant.release, "settings": settings, "events fitted": [2 * n, 3 * n]}
    arrays = cache.get_arrays(
        f"synthetic {contestant.name}", full_key, partial(_scores, contestant, division, settings, choose, test)
    )
    stored = iter(arrays)
    scored = [events.transform(lambda _: {"score": next(stored)}) for events in (choose, test)]
    return _measure(*scored), settings


def measure_exact(seed: int, n: int) -> dict[tuple[str, int], Floats]:
    """Return the same for t* computed from the true densities."""
    choose, test = _other_events(seed, n)
    score = make_exact_scorer()
    return _measure(*(events.transform(lambda each: {"score": score(each)}) for events in (choose, test)))


def make_exact_scorer() -> Scorer:
    """Return t* = [s − Σ c_k Δ_k]/n of B4 from the true densities, as a function of events."""
    sizes = np.array([R_SIZE, RATE_SIZE, NORM_SIZE])

    def ratios(events: Events) -> tuple[Floats, Floats]:
        """s/n and Δ_k/n."""
        x0, x1, x2 = (np.asarray(events.column(name), dtype=np.float64) for name in ("x0", "x1", "x2"))
        signal = SIGNAL_YIELD * np.exp(-(x0**2 + x1**2) / 2 - 2 * x2) / (2 * np.pi) * 2
        shape = np.exp(-((x0 - 2) ** 2) / 10 - x1**2 / 18 - NOMINAL_RATE * x2) / (2 * np.pi * np.sqrt(45))
        background = BACKGROUND_YIELD * NOMINAL_RATE * shape
        slopes = np.stack([(x0 - 2) / 5, 1 / NOMINAL_RATE - x2, np.ones_like(x0)])
        total = signal + background
        return signal / total, sizes[:, None] * slopes * background / total

    sample = inferno(200_000, CHOOSE_SEED - 1)
    events = [each.events for each in sample.samples]
    weight = np.concatenate([e.weight for e in events])
    signal, shifts = (np.concatenate(values, axis=-1) for values in zip(*map(ratios, events), strict=True))
    nuisance = (shifts * weight) @ shifts.T + np.eye(len(sizes))
    c = np.linalg.solve(nuisance, (shifts * weight) @ signal)

    def score(events: Events) -> Floats:
        ratio, shift = ratios(events)
        return np.asarray(ratio - c @ shift)

    return score


def measure_sigma_of_signal(templates: TemplateSet) -> Floats:
    """σ(s) in B0 … B4 from templates whose sources r and rate are moved by `R_STEP` and `RATE_STEP`."""
    process = templates.process("background")
    slopes = [process.linear_shift("r") / R_STEP, process.linear_shift("rate") / RATE_STEP]
    rows = np.stack([templates.signal / SIGNAL_YIELD, *slopes, templates.background / BACKGROUND_YIELD])
    information = (rows / templates.asimov) @ rows.T
    information += np.diag(np.where(np.diag(information) > 0, 0.0, 1.0))  # what moves no bin is not to be found out
    priors = np.diag([0.0, 1 / R_SIZE**2, 1 / RATE_SIZE**2, 1 / (NORM_SIZE * BACKGROUND_YIELD) ** 2])
    free, constrained = information, information + priors
    matrices = (free[:1, :1], free[:2, :2], free[:3, :3], constrained[:3, :3], constrained)
    return np.array([np.sqrt(np.linalg.inv(matrix)[0, 0]) for matrix in matrices])


def _other_events(seed: int, n: int) -> tuple[Dataset, Dataset]:
    """Events to choose edges on, and events to fit."""
    choose = inferno(2 * n, seed + CHOOSE_SEED, r_size=R_SIZE, rate_size=RATE_SIZE, norm_size=NORM_SIZE)
    test = inferno(3 * n, seed + TEST_SEED, r_size=R_STEP, rate_size=RATE_STEP, norm_size=None)
    return choose, test


def _scores(
    contestant: Contestant, division: Division, settings: Parameters, choose: Dataset, test: Dataset
) -> list[Floats]:
    trained = contestant.fit(division.data.with_folds(None), settings, division.seed)
    return [scores for events in (choose, test) for scores in collect_all_scores(trained, events)]


def _measure(choose: Dataset, test: Dataset) -> dict[tuple[str, int], Floats]:
    found = {}
    for bins in (10, 20):
        for binning in ("equal_signal", "optimised"):
            if binning == "optimised":
                edges = optimise_edges(choose, bins)
            else:
                edges = equal_yield_edges(choose, bins, Role.SIGNAL)
            found[binning, bins] = measure_sigma_of_signal(fill(test, ScoreBins.of(edges)))
    return found
