"""What limits the profiled score:  python -m validation.profiling [--share N] [--seeds N] [--sample FOLDER].

Trains on one share of the bundled sample, or of one of `qbdt generate tautaugamma`, and fits all other events, so that
the numbers have little noise of their own. First, F alone and the score t* in several numbers of bins, of equal signal
and optimised: fine bins let a fit of F measure the sources by itself, and so leave less for t* to win. Then t* with
other trees of the shifts, with multiples of its coefficients, and with shifts learnt on more events: where nothing
changes, the shifts are known well enough. Not a test: a division takes some minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from qbdt.data import Dataset, Events, HashFolds
from qbdt.data.samples import tautaugamma
from qbdt.statistics import Sensitivity
from qbdt.studies.comparison.score_sensitivity import measure_scores
from qbdt.tables import Table, show
from qbdt.training import Settings, TrainedModel, train
from qbdt.training.profile import method, shifts
from qbdt.training.profile.score import ProfiledEnsemble

BINS = (10, 20, 40, 80)
COMPARED = 20
"""Bins in which variants of t* are compared."""
BINNINGS = ("equal_signal", "optimised")
SETTINGS = Settings(method="profile")
TREES: Mapping[str, Mapping[str, Any]] = {
    "at least 50 events in a leaf": {"ENTRIES": 50.0},
    "at least 800 events in a leaf": {"ENTRIES": 800.0},
    "a quarter of the step, patience 100": {"STEP": 0.05, "PATIENCE": 100},
}
MULTIPLES = (0.5, 1.25, 1.5, 2.0)
COLUMNS = ("", "binning", "bins", "σ_μ stat", "σ_μ full", "Δμ_sys")


class Division:
    """Events to train on, as many again and more to learn shifts from, and events to fit."""

    def __init__(self, share: int, seed: int, folder: Path | None) -> None:
        data = tautaugamma(folder, k=2)
        rule = HashFolds(share, ("event_number",), 1000 + seed)
        half = HashFolds(2, ("event_number",), 2000 + seed)
        self.trained = data.select(lambda e: rule.assign(e) == 0).scaled(share)
        rest = data.select(lambda e: rule.assign(e) != 0)
        self._scale = 2 * share / (share - 1)
        self.more = rest.select(lambda e: half.assign(e) == 1).scaled(self._scale)
        self._fitted = rest.select(lambda e: half.assign(e) == 0).with_folds(HashFolds(5, ("event_number",), 5))

    def score(self, function: Callable[[Events], Any]) -> Dataset:
        """Score the events that are fitted."""
        return self._fitted.transform(lambda events: {"score": function(events)})

    def measure(self, scored: Dataset, binning: str, bins: int) -> Sensitivity:
        """Fit a histogram of scores."""
        return measure_scores(scored, binning, bins, self._scale)


def scores(division: Division) -> Iterator[tuple[str, tuple[int, ...], Callable[[Events], Any]]]:
    """Name, numbers of bins, and score of everything that is compared."""
    model = train(division.trained, SETTINGS)
    ensemble = model.ensemble
    assert isinstance(ensemble, ProfiledEnsemble)
    yield "F alone", BINS, ensemble.ratio.score
    yield "t*", BINS, ensemble.score
    without = _drop_shifts(model)
    for name, constants in TREES.items():
        with patch.multiple(shifts, **constants):
            yield f"t*, {name}", (COMPARED,), train(division.trained, SETTINGS, resume=without).ensemble.score
    for multiple in MULTIPLES:
        yield f"t*, coefficients × {multiple:g}", (COMPARED,), _multiply(ensemble, multiple).score
    with patch.object(method, "require_resumable"):  # F stays, the shifts are those of other events
        found = train(division.more, SETTINGS, resume=without)
    ratio = division.more.sample("background").events.n_rows / division.trained.sample("background").events.n_rows
    yield f"t*, shifts learnt on {ratio:.2g} × the events", (COMPARED,), found.ensemble.score


def _drop_shifts(model: TrainedModel) -> TrainedModel:
    """Return a training that ends after F."""
    parts = [{name: part[name] for name in ("ratio", "looks")} for part in model.data["parts"]]
    return replace(model, data={**model.data, "parts": parts})


def _multiply(ensemble: ProfiledEnsemble, factor: float) -> ProfiledEnsemble:
    trees = tuple(replace(tree, weight=factor * tree.weight) for tree in ensemble.shift.trees)
    return replace(ensemble, shift=replace(ensemble.shift, trees=trees))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=int, default=5, help="one of so many parts is trained on")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sample", type=Path, help="folder that qbdt generate tautaugamma wrote")
    given = parser.parse_args()
    found: dict[tuple[str, str, int], list[Sensitivity]] = {}
    for seed in range(1, given.seeds + 1):
        division = Division(given.share, seed, given.sample)
        for name, numbers, function in scores(division):
            scored = division.score(function)
            for binning in BINNINGS:
                for bins in numbers:
                    found.setdefault((name, binning, bins), []).append(division.measure(scored, binning, bins))
    rows = [(name, binning, str(bins), *_describe(one)) for (name, binning, bins), one in found.items()]
    show([Table(f"1/{given.share} of the sample trained on, {given.seeds} divisions", COLUMNS, tuple(rows))])


def _describe(found: list[Sensitivity]) -> list[str]:
    each = np.array([[one.sigma_stat, one.sigma_full, one.delta_mu] for one in found])
    spread = each.std(axis=0, ddof=1) if len(each) > 1 else np.zeros(3)
    return [f"{mean:.4f} ± {error:.4f}" for mean, error in zip(each.mean(axis=0), spread, strict=True)]


if __name__ == "__main__":
    main()
