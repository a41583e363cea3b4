"""The profiled training: both sums of trees on each part of the events, then the best combination of all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from qbdt.binning import Binning
from qbdt.boosting import Monitor, Settings, Training, TreeReport
from qbdt.boosting.rows import binning_of, described
from qbdt.boosting.training import require_resumable
from qbdt.dataset import Dataset, Events, Role
from qbdt.dtypes import Nodes, Yields
from qbdt.ensemble import Ensemble, ProfiledEnsemble
from qbdt.errors import ConfigError, DataError
from qbdt.profile.combining import Combination, Part, combined
from qbdt.profile.expecting import Scored, chosen_share, scored
from qbdt.profile.integrals import Integrals
from qbdt.profile.parts import N_PARTS, divided
from qbdt.profile.ratio import fit_ratio
from qbdt.profile.shifts import fit_shifts
from qbdt.progress import Progress, silent
from qbdt.tree import Tree
from qbdt.workers import Workers

__all__ = ["train_profiled"]


def train_profiled(
    dataset: Dataset,
    settings: Settings,
    *,
    n_threads: int | None = None,
    monitor: Monitor | None = None,
    progress: Progress = silent,
    resume: Training | None = None,
    checkpoint: Callable[[Training], None] | None = None,
) -> Training:
    """Train the profiled method.

    The events are divided into three parts. For each, F and the shifts are fitted on the other two, and the shifts stop
    growing where the held-out part says so; the sums of the three are averaged, and combined to the score that is best
    for all held-out events together.

    Parameters
    ----------
    dataset
        Signal, background and sources, with true yields as weights.
    settings
        How to train. `n_trees` is what each sum of each part gets, or less.
    n_threads
        Threads; None for all cores. Results do not depend on it.
    monitor
        Callbacks; the profiled method judges itself, so it takes no validation sample.
    progress
        Shows how far it is.
    resume
        An interrupted training on the same events with the same settings: finished parts are taken from it.
    checkpoint
        Called with what is there after every finished part.

    Returns
    -------
    Training
        Interrupting with Ctrl-C returns what the finished parts give, or F so far where there is none.
    """
    dataset.require_usable()
    monitor = monitor or Monitor()
    if monitor.validation is not None:
        raise ConfigError(
            "method='profile' holds out events itself and stops where these say so: give no validation sample"
        )
    with Workers(n_threads) as workers:
        profiling = _Profiling(dataset, settings, workers, monitor, resume)
        return profiling.run(progress, checkpoint)


class _StoppedByCallback(Exception):
    """A callback asked for the end."""


class _Profiling:
    """State of one training."""

    def __init__(
        self, dataset: Dataset, settings: Settings, workers: Workers, monitor: Monitor, resume: Training | None
    ) -> None:
        self.dataset = dataset
        self.settings = settings
        self.workers = workers
        self.monitor = monitor
        self.sources = tuple(source.name for source in dataset.systematics)
        self.log_odds = math.log(dataset.total(Role.SIGNAL) / dataset.total(Role.BACKGROUND))
        self.binning = binning_of(dataset, settings, workers)
        self.data = described(dataset)
        self.parts = _resumed(resume, self.binning, settings, self.data, len(self.sources))
        self.unfinished: list[Nodes] = []
        self.n_trees = 0
        monitor.start(dataset.features)

    def run(self, progress: Progress, checkpoint: Callable[[Training], None] | None) -> Training:
        per_part = self._most_trees // N_PARTS
        stopped = None
        with progress("training", self._most_trees) as advance:
            advance(len(self.parts) * per_part)
            try:
                while len(self.parts) < N_PARTS:
                    before = self.n_trees
                    self.parts.append(self._part(len(self.parts), advance))
                    advance(per_part - (self.n_trees - before))
                    if checkpoint is not None and len(self.parts) < N_PARTS:
                        checkpoint(self._result(f"interrupted after {len(self.parts)} of {N_PARTS} parts"))
            except KeyboardInterrupt:
                stopped = f"interrupted after {len(self.parts)} of {N_PARTS} parts"
            except _StoppedByCallback:
                stopped = f"stopped early after {len(self.parts)} of {N_PARTS} parts"
        return self._result(stopped)

    def _part(self, number: int, advance: Callable[[int], None]) -> Part:
        """Fit both sums of trees without one part of the events."""
        trained, held = divided(self.dataset, number)
        self.unfinished = []

        def after_tree(nodes: Nodes) -> None:
            advance(1)
            report = TreeReport(self.n_trees, self._most_trees, Tree(nodes, 1.0))
            self.n_trees += 1
            if self.monitor.judge(report, self.dataset.features, self.workers.n_threads):
                raise _StoppedByCallback

        def after_ratio_tree(nodes: Nodes) -> None:
            self.unfinished.append(nodes)
            after_tree(nodes)

        common = (self.binning, self.settings, self.workers)
        own = fit_ratio(trained, held, *common, after_ratio_tree)
        shifts = fit_shifts(trained, held, self._ratio(own), *common, after_tree)
        best = shifts.best()
        return Part(own, shifts.trees[:best], shifts.values[:best], shifts.integrals[best])

    @property
    def _most_trees(self) -> int:
        return N_PARTS * self.settings.n_trees * (1 + bool(self.sources))

    def _ratio(self, trees: tuple[Nodes, ...]) -> Callable[[Events], Yields]:
        """Return the function r₀ = s/(s + b) of events."""
        ensemble = Ensemble(self.dataset.features, tuple(Tree(nodes, 1.0) for nodes in trees))
        empty = Ensemble(self.dataset.features, ())
        model = ProfiledEnsemble(ensemble, empty, self.log_odds)
        return lambda events: model.probability(ensemble.score(events, self.workers.n_threads))

    def _result(self, stopped: str | None) -> Training:
        features = self.dataset.features
        if not self.parts:
            ratio = Ensemble(features, tuple(Tree(nodes, 1.0) for nodes in self.unfinished))
            model = ProfiledEnsemble(ratio, Ensemble(features, ()), self.log_odds)
            return Training(model, self.binning, self.settings, (), stopped, self.data)
        combination = Combination.of(self.parts)
        names = (features, self.sources, self.log_odds)
        expected = None
        if len(self.parts) == N_PARTS:
            share, expected = chosen_share(self._scored(combination), self.sources, combination.pulls)
            won = expected.full**-2 - expected.unprofiled**-2
            model = combined(self.parts, combination.times(share), *names, (expected.stat**-2, won))
        else:
            model = combined(self.parts, combination, *names)
        parts = [
            {"ratio": len(part.ratio), "shift": len(part.shift), "integrals": part.integrals.to_dict()}
            for part in self.parts
        ]
        return Training(model, self.binning, self.settings, (), stopped, {**self.data, "parts": parts}, expected)

    def _scored(self, combination: Combination) -> list[Scored]:
        """Score the held-out events of every part with its own trees."""
        n_threads = self.workers.n_threads
        found = []
        for number, part in enumerate(self.parts):
            model = combined([part], combination, self.dataset.features, self.sources, self.log_odds)

            def values(events: Events, model: ProfiledEnsemble = model) -> tuple[Yields, Yields]:
                ratio = model.probability(model.ratio.score(events, n_threads))
                return ratio, model.shift.score(events, n_threads)

            found.append(scored(divided(self.dataset, number)[1], values))
        return found


def _resumed(
    resume: Training | None, binning: Binning, settings: Settings, data: Mapping[str, Any], n_sources: int
) -> list[Part]:
    """Return the finished parts of an earlier training."""
    if resume is None:
        return []
    require_resumable(resume, binning, settings, data)
    assert isinstance(resume.ensemble, ProfiledEnsemble)
    if resume.settings.n_trees != settings.n_trees:
        raise DataError("cannot resume: the parts of a profiled training stop by themselves; n_trees must be the same")
    model, parts = resume.ensemble, []
    ratio, shift = iter(model.ratio.trees), iter(zip(model.shift.trees, model.source_values, strict=True))
    for part in resume.data.get("parts", []):
        own = tuple(tree.nodes for tree in islice(ratio, part["ratio"]))
        pairs = list(islice(shift, part["shift"]))
        integrals = Integrals.from_dict(part["integrals"], n_sources)
        parts.append(Part(own, tuple(tree.nodes for tree, _ in pairs), tuple(array for _, array in pairs), integrals))
    return parts
