"""`diagnose`: all tests of a training in one call, and the result, `Diagnosis`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from qbdt.analysis.diagnosis.curves import Draws, LearningCurve, Trainer, compute_size_curve, compute_tree_curve
from qbdt.analysis.diagnosis.features import FeatureRank, rank_features
from qbdt.analysis.diagnosis.overtraining import OverTraining, check_over_training
from qbdt.analysis.diagnosis.sample_gains import SampleGain, gain_table, measure_gains
from qbdt.analysis.diagnosis.sensitivity import compute_template_sensitivity
from qbdt.analysis.diagnosis.simulation import (
    MoreEvents,
    ProcessStatistics,
    describe_statistics,
    expect_more,
    simulation_tables,
)
from qbdt.analysis.diagnosis.sources import SourceEffect, describe_sources
from qbdt.data import Dataset
from qbdt.errors import MALFORMED, ConfigError, DataError
from qbdt.files.records import read_record
from qbdt.inference import FitSettings, build_templates
from qbdt.progress import Progress, silent
from qbdt.statistics import Sensitivity
from qbdt.tables import Table
from qbdt.training import FoldedEnsemble

DIAGNOSIS_FILE = "diagnosis/diagnosis.json"
"""Where a diagnosis lies in the folder of its run."""

SHOWN = 3
"""Features of a source in the table; `to_dict` has all."""

CERTAIN = 10
"""Standard deviations beyond which a number says nothing more."""


@dataclass(frozen=True)
class Diagnosis:
    """Sensitivity of a training, and its causes: over-training, features, sources, number of events."""

    strength: Sensitivity  # σ_μ of the out-of-fold scores
    over_training: tuple[OverTraining, ...]  # Test of signal and of background
    features: tuple[FeatureRank, ...]  # All features, the most important for the full σ_μ first
    sources: tuple[SourceEffect, ...]  # All sources, the most costly first
    edges: tuple[float, ...]  # Bin edges of the fit, for `SourceEffect.bins`
    # trees, sizes: learning curves. `trees` is None for the profiled method, whose first trees by themselves are no
    # smaller model of the kind: its two sums are of trees that grow together. `sizes` is None where it was not asked
    # for.
    trees: LearningCurve | None = None
    sizes: LearningCurve | None = None
    more: tuple[MoreEvents, ...] = ()  # What more simulated events would give; nothing without `sizes`
    # What the MC statistics of each process's templates cost; nothing where the fit leaves them out
    statistics: tuple[ProcessStatistics, ...] = ()
    gains: tuple[SampleGain, ...] = ()  # What more events of one sample would give; nothing where it was not asked for
    left_out: str = ""  # What these fits leave out of the measurement, for readers

    @property
    def curves(self) -> list[LearningCurve]:
        """The learning curves that there are."""
        return [curve for curve in (self.trees, self.sizes) if curve is not None]

    def tables(self) -> tuple[Table, ...]:
        """Over-training, features, sources, what moves with each source, learning curves, more simulation."""
        curves = map(_curve_table, self.curves)
        simulation = simulation_tables(self.strength.sigma_full, self.more, self.statistics)
        tables = (
            self._over_training(),
            self._features(),
            self._sources(),
            self._shifts(),
            *curves,
            *simulation,
            gain_table(self.gains),
        )
        return tuple(table for table in tables if table.rows)

    def __str__(self) -> str:
        return "\n\n".join(str(table) for table in self.tables())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Diagnosis:
        """Inverse of `to_dict`."""
        return TypeAdapter(cls).validate_python(plain)

    def _over_training(self) -> Table:
        rows = tuple((t.role, f"{t.distance:.4f}", f"{t.expected:.4f}", f"{t.p:.3f}") for t in self.over_training)
        header = ("events", "distance", "by chance", "p")
        return Table("Scores of trained-on against unseen events (weighted KS distance, permutations)", header, rows)

    def _features(self) -> Table:
        def rise(value: float, spread: float) -> str:
            return f"{value:+z.3f} ± {spread:.3f}"

        rows = tuple(
            (r.feature, f"{100 * r.gain:.1f}", rise(r.full, r.full_spread), rise(r.stat, r.stat_spread))
            for r in self.features
        )
        found = self.strength
        title = f"Features: σ_μ = {found.sigma_full:.3f} (stat {found.sigma_stat:.3f}) rises by … when scrambled"
        return Table(title, ("feature", "gain (%)", "full", "stat"), rows)

    def _sources(self) -> Table:
        rows = []
        for s in self.sources:
            largest = max(range(len(s.bins)), key=lambda i: abs(s.bins[i] - s.total))
            cells = (f"{s.cost:.3f}", f"{s.without:.3f}", f"{100 * s.total:+z.2f}", f"{100 * s.bins[largest]:+z.2f}")
            rows.append((s.source, *cells, f"{largest + 1} of {len(s.bins)}"))
        header = ("source", "cost in σ_μ", "σ_μ without", "Δ/b (%)", "… at most (%)", "in bin")
        return Table("Sources: what each costs and which bin of the score it moves most", header, tuple(rows))

    def _shifts(self) -> Table:
        rows = []
        for s in self.sources:
            for f in [f for f in s.features if f.significance > 2][:SHOWN]:
                i = f.strongest
                shift = f"{100 * f.shift[i]:+z.2f} ± {100 * f.error[i]:.2f}"
                known = f"{f.significance:.1f}" if f.significance < CERTAIN else f"> {CERTAIN}"
                rows.append((s.source, f.feature, f"{100 * f.shape:.2f}", known, f.region, shift))
        header = ("source", "feature", "spread of Δ/b (%)", "significance", "strongest where", "Δ/b there (%)")
        return Table("Features and regions that drive each source", header, tuple(rows))


def diagnose(
    dataset: Dataset,
    models: FoldedEnsemble,
    settings: FitSettings,
    *,
    trainer: Trainer | None = None,
    each_sample: bool = False,
    repeats: int = 3,
    seed: int = 0,
    n_threads: int | None = None,
    progress: Progress = silent,
) -> Diagnosis:
    """Diagnose trained models: one per fold of the dataset, each trained without it.

    `trainer` trains on given events, for the curve against their number; without it that curve is left out. With
    `each_sample` one sample at a time is thinned as well, to say which is worth generating next. Features are
    scrambled, and shares of the events drawn, `repeats` times.
    """
    if dataset.folds != models.folds:
        raise DataError(f"the events are divided by {dataset.folds}, the models by {models.folds}")
    scored = dataset.transform(lambda events: {"score": models.score(events, n_threads)})
    templates = build_templates(scored, settings).templates
    strength = compute_template_sensitivity(templates, settings.mc_stat)
    tests = check_over_training(dataset, models, seed=seed, n_threads=n_threads)
    ranks = rank_features(dataset, models, settings, repeats=repeats, seed=seed, n_threads=n_threads, progress=progress)
    trees, sizes = None, None
    if all(len(model.components) == 1 for model in models.members):
        trees = compute_tree_curve(dataset, models, settings, n_threads=n_threads, progress=progress)
    statistics = describe_statistics(templates) if settings.mc_stat else ()
    gains: tuple[SampleGain, ...] = ()
    if trainer is not None:
        draws = Draws(dataset, trainer, settings, repeats, seed, n_threads, progress)
        sizes = compute_size_curve(draws, whole=strength)
        gains = measure_gains(draws, sizes, statistics) if each_sample else ()
    effects = describe_sources(dataset, templates, settings)
    more = () if sizes is None else expect_more(sizes, templates, repeats, settings.mc_stat)
    edges = tuple(templates.edges.tolist())
    return Diagnosis(strength, tests, ranks, effects, edges, trees, sizes, more, statistics, gains)


def read_diagnosis(folder: Path) -> Diagnosis | None:
    """Read the diagnosis in the folder of a run, if there is one."""
    path = folder / DIAGNOSIS_FILE
    if not path.exists():
        return None
    try:
        return Diagnosis.from_dict(read_record(path)["diagnosis"])
    except MALFORMED as error:
        raise ConfigError(f"{path}: damaged, or not a diagnosis of this version; run qbdt diagnose again") from error


def _curve_table(curve: LearningCurve) -> Table:
    columns = zip(curve.at, curve.full, curve.full_spread, curve.stat, curve.stat_spread, strict=True)
    several = any(curve.full_spread)

    def cell(value: float, spread: float) -> str:
        return f"{value:.3f} ± {spread:.3f}" if several and spread else f"{value:.3f}"

    rows = tuple((f"{at:g}", cell(full, df), cell(stat, ds)) for at, full, df, stat, ds in columns)
    return Table(f"σ_μ against {curve.against}", (curve.against, "full", "stat"), rows)
