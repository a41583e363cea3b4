"""The result of a search: trials, the best settings, an estimate that no optimum went into, and its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from qbdt.analysis.schema import Analysis
from qbdt.analysis.tuning.figures import search_history
from qbdt.files import write_text
from qbdt.report.style import save
from qbdt.statistics import Sensitivity
from qbdt.tables import Table

SHOWN = 10
"""Trials in the table."""


@dataclass(frozen=True)
class TuningTrial:
    """One set of settings and its σ_μ."""

    number: int  # In the order of the search, from 0
    settings: Mapping[str, Any]  # The values that were searched
    # full, stat: σ_μ with and without systematics, judged without the events of each outer fold in turn; infinite where
    # training or fit failed
    full: tuple[float, ...]
    stat: tuple[float, ...]

    @property
    def value(self) -> float:
        """The figure that is minimised: the mean of `full`."""
        return float(np.mean(self.full))


@dataclass(frozen=True)
class Tuning:
    """Outcome of a search."""

    method: str  # Method of the training
    start: TuningTrial  # The settings of the analysis file, judged like a trial; its number is −1
    trials: tuple[TuningTrial, ...]  # All trials, in order
    # σ_μ of the whole analysis with the settings of the analysis file, every event scored by a model that did not see
    # it
    out_of_fold: Sensitivity
    # The same with, for each fold, the settings that were best without its events: an honest estimate of what the
    # search gains
    nested: Sensitivity

    @property
    def best(self) -> TuningTrial:
        """The best of all trials, or the start where none beats it."""
        return min((self.start, *self.trials), key=lambda trial: (trial.value, trial.number))

    def best_without(self, fold: int) -> TuningTrial:
        """Return the best trial by the events outside of one fold."""
        return min((self.start, *self.trials), key=lambda trial: (trial.full[fold], trial.number))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {**asdict(self), "best": asdict(self.best)}

    def tables(self) -> tuple[Table, ...]:
        """Return the estimate and the best trials."""
        return (self._estimate(), self._trials())

    def __str__(self) -> str:
        return "\n\n".join(str(table) for table in self.tables())

    def _estimate(self) -> Table:
        def cells(found: Sensitivity) -> tuple[str, str]:
            return f"{found.sigma_full:.4f}", f"{found.sigma_stat:.4f}"

        best = (f"{self.best.value:.4f}", f"{np.mean(self.best.stat):.4f}")
        start = (f"{self.start.value:.4f}", f"{np.mean(self.start.stat):.4f}")
        rows = (
            ("settings of the file, out of fold", *cells(self.out_of_fold)),
            ("tuned, nested: each fold by the settings chosen without it", *cells(self.nested)),
            ("settings of the file, as judged in the search", *start),
            ("best trial, as judged in the search: too good, it was chosen", *best),
        )
        return Table("Expected σ_μ", ("", "full", "stat"), rows)

    def _trials(self) -> Table:
        names = tuple(self.start.settings)
        order = sorted((self.start, *self.trials), key=lambda trial: (trial.value, trial.number))
        shown = order[:SHOWN] if self.start in order[:SHOWN] else [*order[: SHOWN - 1], self.start]
        rows = tuple(
            (
                "file" if trial.number < 0 else f"{trial.number}",
                f"{trial.value:.4f}",
                f"{np.std(trial.full):.4f}",
                f"{np.mean(trial.stat):.4f}",
                *(_cell(trial.settings[name]) for name in names),
            )
            for trial in shown
        )
        title = f"Best of {len(self.trials)} trials, and the settings of the file"
        return Table(title, ("trial", "σ_μ", "over folds", "stat", *names), rows)


def best_section(found: Tuning, analysis: Analysis) -> str:
    """Return the `training:` section with the best settings, and their expected σ_μ in a comment."""
    section: dict[str, Any] = analysis.training.model_dump(mode="json", exclude_defaults=True)
    section |= {"method": found.method, **found.best.settings}
    where = f"qbdt {version('qbdt')}"
    head = [
        f"# Best of {len(found.trials)} trials of qbdt tune ({where}). Expected σ_μ of this way to choose,",
        f"# on events that took no part in the choice: {found.nested.sigma_full:.4f}; "
        f"before: {found.out_of_fold.sigma_full:.4f}.",
    ]
    section_text = yaml.safe_dump({"training": section}, sort_keys=False, allow_unicode=True)
    return "\n".join([*head, section_text])


def write_tuning(found: Tuning, analysis: Analysis, folder: Path | str) -> list[Path]:
    """Write `tuning.json`, `tuning.png` and `best.yaml` beside the study."""
    root = Path(folder)
    paths = [root / name for name in ("tuning.json", "best.yaml", "tuning.png")]
    plain = {"qbdt": version("qbdt"), "analysis": analysis.model_dump(mode="json"), "tuning": found.to_dict()}
    write_text(paths[0], json.dumps(plain, indent=1) + "\n")
    write_text(paths[1], best_section(found, analysis))
    settings = {name: [trial.settings[name] for trial in found.trials] for name in found.start.settings}
    values = [trial.value for trial in found.trials]
    save(search_history(values, settings, found.start.value, dict(found.start.settings)), paths[2])
    return paths


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
