"""A run in this process: events are read once and kept until they are scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from qbdt.analysis.analysis_file import read_analysis
from qbdt.analysis.inputs import require_drawable
from qbdt.analysis.loader import find_families, load_regions, require_folds, require_trainable
from qbdt.analysis.measured_scores import name_scores
from qbdt.analysis.region_events import RegionEvents, list_models, require_filled
from qbdt.analysis.region_fit import fit_regions, read_control_regions, require_parameters
from qbdt.analysis.schema import Analysis
from qbdt.analysis.scored_files import choose_score_name, write_scored
from qbdt.data import Dataset
from qbdt.data.checks import find_faults
from qbdt.inference import FitResult
from qbdt.progress import Progress
from qbdt.tables import Table
from qbdt.training import Model, Partner


class LocalRun:
    """The steps of a run that look at events, in this process; a `PartitionedRun` does the same elsewhere."""

    def __init__(self, n_threads: int | None, device: str | None) -> None:
        self._n_threads, self._device = n_threads, device
        self._events: RegionEvents | None = None
        self._scored: RegionEvents | None = None

    def read(
        self, analysis: Analysis, folder: Path, progress: Progress, note: Callable[[str], None]
    ) -> dict[str, Dataset]:
        """Read all events, refuse what cannot be trained or fitted, and return those of each model."""
        note("read")
        require_drawable(analysis, folder)
        self._events = load_regions(analysis, folder, progress)
        require_filled(self._events.count_backgrounds(), analysis.regions)
        require_folds(self._events.whole.folds)
        require_parameters(self._events.whole, analysis)
        models = list_models(analysis.regions)
        for model in models:
            require_trainable(self._events, analysis, model)
        for basis in find_families(analysis, folder).values():
            note(basis.describe())
        for finding in find_faults(self._events.simulated() if analysis.fit.blind else self._events.every_event()):
            note(f"to be checked: {finding}")
        return {model: self._events.training(model) for model in models}

    def find_partner(self, analysis: Analysis, note: Callable[[str], None]) -> Partner | None:
        """What control regions know of the sources, where the analysis trains beside them."""
        if not analysis.needs_control_regions:
            return None
        note("control regions")
        assert self._events is not None
        return read_control_regions(self._events, analysis)

    def score(self, models: Mapping[str, Model], target: Path, analysis: Analysis, note: Callable[[str], None]) -> None:
        """Score all events, and write them into a folder."""
        note("score")
        assert self._events is not None
        name = choose_score_name(self._events.whole.samples[0].events)
        where = (self._n_threads, self._device)
        self._scored = self._events.score(lambda model, each: name_scores(models[model], each, name, *where))
        self._events = None  # features are needed no more
        write_scored(self._scored, target, analysis)

    def run_fit(self, scored: Path, analysis: Analysis, progress: Progress) -> FitResult:
        """Fit the events that were scored, or those of a folder."""
        known = self._scored
        events = load_regions(read_analysis(scored), scored.parent, progress) if known is None else known
        return fit_regions(events, analysis, progress)

    def tables(self) -> tuple[Table, ...]:
        """Nothing to say of this place."""
        return ()

    def count(self) -> int:
        """Partitions."""
        return 1
