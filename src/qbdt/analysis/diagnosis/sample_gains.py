"""Gain in training from more events of one sample: of a process, or of the events that a source brings.

One sample j at a time is thinned to a share x of its events, and models are trained anew. By σ_μ = c + Σ_j d_j x_j^−γ
it then rises by d_j (x^−γ − 1), and F times the events of this sample change it by −d_j (1 − F^−γ). The exponents count
by their likelihood in the learning curve, for which all samples are thinned together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from qbdt.analysis.diagnosis.curves import Draws, LearningCurve, thin_events
from qbdt.analysis.diagnosis.simulation import (
    EXPONENTS,
    ProcessStatistics,
    extrapolate,
    pool_spreads,
    weigh_exponents,
)
from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role, Systematic
from qbdt.errors import DataError
from qbdt.tables import Table

SHARE = 0.25
"""Share of its events that a sample keeps: σ_μ rises as much as it falls with four to sixteen times the events."""

LEAST_EVENTS = 200
"""Events of a sample below which a quarter of them says nothing."""

FACTORS = (2.0, 10.0)


@dataclass(frozen=True)
class SampleGain:
    """Relative change of σ_μ with 2 and 10 times the events of one sample, in training, and errors."""

    sample: str  # Name of a process, or of a source
    of_source: bool  # Whether it is what a source brings
    # doubled, tenfold, doubled_error, tenfold_error: by training on more events
    doubled: float
    doubled_error: float
    tenfold: float
    tenfold_error: float
    # in_templates: by the same in the templates of the fit, where they are of a background: 2 and 10 times
    in_templates: tuple[float, float] = (0.0, 0.0)


def measure_gains(
    draws: Draws, curve: LearningCurve, statistics: Sequence[ProcessStatistics] = ()
) -> tuple[SampleGain, ...]:
    """Thin one sample after the other; the most worthwhile first.

    `curve` is the learning curve for which all samples were thinned, `statistics` what their templates cost. Samples
    of which a quarter is not enough to train on are left out.
    """
    thins = {sample: _name_thinning(draws.dataset, *sample) for sample in list_samples(draws.dataset)}
    seeds = range(draws.seed, draws.seed + draws.repeats)
    thins = {sample: thin for sample, thin in thins.items() if all(_is_trainable(thin(seed)) for seed in seeds)}
    found = draws.evaluate("thinned samples", [*thins.values()])
    gains = []
    for (name, of_source), judged in zip(thins, found, strict=True):
        own = None if of_source else next((one for one in statistics if one.process == name), None)
        gains.append(predict_gain(name, of_source, [one.sigma_full for one in judged], curve, own))
    return tuple(sorted(gains, key=lambda one: one.tenfold + one.in_templates[1]))


def _name_thinning(dataset: Dataset, name: str, of_source: bool) -> Callable[[int], Dataset]:
    return partial(thin_source if of_source else thin_process, dataset, name, SHARE)


def _is_trainable(dataset: Dataset) -> bool:
    try:
        dataset.require_trainable_folds()
    except DataError:
        return False
    return True


def predict_gain(
    name: str, of_source: bool, sigma: Sequence[float], curve: LearningCurve, statistics: ProcessStatistics | None
) -> SampleGain:
    """Gain from more events of a sample, with σ_μ of some trainings on a share of them."""
    rise, error = measure_rise(sigma, curve)
    likelihood, now = weigh_exponents(curve, len(sigma)), curve.full[-1]
    doubled, tenfold = (predict_change(rise, error, likelihood, factor) for factor in FACTORS)
    in_templates = (0.0, 0.0) if statistics is None else (statistics.doubled / now - 1, statistics.tenfold / now - 1)
    return SampleGain(name, of_source, *doubled, *tenfold, in_templates)


def measure_rise(sigma: Sequence[float], curve: LearningCurve) -> tuple[float, float]:
    """Relative rise of σ_μ where a sample was thinned, and its error."""
    repeats = len(sigma)
    base, base_error = extrapolate(curve, repeats, 1.0)  # where σ_μ with all events is expected: it was seen once
    rises = np.array(sigma) / (base * curve.full[-1]) - 1
    luck = float(pool_spreads(curve)[-1]) / curve.full[-1]  # the spread of few repeats may be small by chance
    spread = max(float(rises.std(ddof=1)), luck) if repeats > 1 else luck
    return float(rises.mean()), math.hypot(spread / math.sqrt(repeats), base_error / base)


def list_samples(dataset: Dataset) -> list[tuple[str, bool]]:
    """Name the samples that more events may be generated of, and whether they are what a source brings.

    Copies of nominal events, shifted to one side only, are generated together with these: no sample of their own.
    """
    processes = [(s.name, False) for s in dataset.samples if s.role is not Role.DATA and _is_large(s.events)]
    return processes + [(s.name, True) for s in dataset.systematics if _is_sample(dataset, s)]


def _is_sample(dataset: Dataset, source: Systematic) -> bool:
    brought = [p for p in source.processes if source.replaces_events(p)]
    sides = [(dataset.sample(p).events, source.up[p].apply(dataset.sample(p).events)) for p in brought]
    if not any(_is_large(varied) for _, varied in sides):
        return False
    copies = sum(varied.count_common(nominal) for nominal, varied in sides)
    return source.two_sided or copies < 0.5 * sum(varied.n_rows for _, varied in sides)


def _is_large(events: Events) -> bool:
    return events.n_rows >= LEAST_EVENTS


def thin_process(dataset: Dataset, process: str, share: float, seed: int = 0) -> Dataset:
    """Keep a share of the events of one process, with all their shifted copies, and all of the others.

    Examples
    --------
    >>> from qbdt.data import Sample
    >>> def events(n): return Events({"x": np.arange(n)}, np.ones(n), {"event": np.arange(n)})
    >>> both = Dataset([Sample("h", Role.SIGNAL, events(100)), Sample("b", Role.BACKGROUND, events(1000))])
    >>> thinned = thin_process(both, "b", 0.5)
    >>> thinned.sample("h").events.n_rows, 450 < thinned.sample("b").events.n_rows < 550
    (100, True)
    """
    drawn = thin_events(dataset, share, seed)
    samples = [drawn.sample(s.name) if s.name == process else s for s in dataset.samples]
    sources = [_exchange(s, drawn.systematic(s.name), lambda name: name == process) for s in dataset.systematics]
    return Dataset(samples, sources, dataset.folds)


def thin_source(dataset: Dataset, source: str, share: float, seed: int = 0) -> Dataset:
    """Keep a share of the events that one source brings, up and down the same, and all nominal ones."""
    drawn = thin_events(dataset, share, seed).systematic(source)
    sources = [_exchange(s, drawn, s.replaces_events) if s.name == source else s for s in dataset.systematics]
    return Dataset(dataset.samples, sources, dataset.folds)


def _exchange(source: Systematic, drawn: Systematic, choose: Callable[[str], bool]) -> Systematic:
    """Take the variations of some processes from another set of events."""
    other = dict(drawn.directions)
    sides = {d: {p: other[d][p] if choose(p) else v for p, v in effect.items()} for d, effect in source.directions}
    return Systematic(source.name, source.kind, sides["up"], sides.get("down"))


def predict_change(rise: float, error: float, likelihood: Floats, factor: float) -> tuple[float, float]:
    """Relative change of σ_μ with `factor` times the events of a sample, from its rise with a share of them; and error.

    Examples
    --------
    >>> only_one = (EXPONENTS.round(1) == 1.0) / 1.0        # σ_μ = 1 + d / x: a rise by 3 d, then a fall by d / 2
    >>> change, error = predict_change(0.3, 0.03, only_one, 2.0)
    >>> round(change, 6), round(error, 6)
    (-0.05, 0.005)
    """
    ratios = (1 - factor**-EXPONENTS) / (SHARE**-EXPONENTS - 1)
    mean = float(np.average(ratios, weights=likelihood))
    spread = float(np.average((ratios - mean) ** 2, weights=likelihood)) ** 0.5
    rise = max(rise, 0.0)  # fewer events do not make it better: what looks like it is noise
    return -mean * rise, float(np.hypot(mean * error, spread * rise))


def gain_table(gains: Sequence[SampleGain]) -> Table:
    """Change of σ_μ with more events of each sample: in training and in the templates together, and in these alone."""

    def cells(change: float, error: float, drawn: float) -> str:
        return f"{100 * ((1 + change) * (1 + drawn) - 1):+z.1f} ± {100 * error:.1f}"

    rows = tuple(
        (
            f"{one.sample} (its varied events)" if one.of_source else one.sample,
            cells(one.doubled, one.doubled_error, one.in_templates[0]),
            cells(one.tenfold, one.tenfold_error, one.in_templates[1]),
            f"{100 * one.in_templates[1]:+z.1f}",
        )
        for one in gains
    )
    header = ("sample", "2 × its events (%)", "10 × (%)", "10 × in templates alone (%)")
    return Table("More events of one sample: σ_μ would change by", header, rows)
