"""Random halves and their swaps: every method is trained and tested on the same ones, so differences are paired."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qbdt.data import Dataset, HashFolds
from qbdt.files import StepFolder
from qbdt.inference.templates import area_under_roc
from qbdt.progress import Progress
from qbdt.studies.paper.measurement import make_templates, measure_in_optimised_bins, measure_templates, score_dataset
from qbdt.studies.paper.paper_methods import get_method
from qbdt.studies.worker_pool import run_tasks


@dataclass(frozen=True)
class HalfTask:
    """One method on one half: `number` of the division, and which side is trained on."""

    method: str
    number: int
    swapped: bool
    n_trees: int
    seed: int

    @property
    def name(self) -> str:
        """Name of the step."""
        return f"half-{self.number:02d}-{'b' if self.swapped else 'a'}-{get_method(self.method).key}"


@dataclass(frozen=True)
class Difference:
    """Difference of two methods on the same halves."""

    # mean, error: of the difference over halves; the error counts a half and its swap as one measurement, since they
    # share events
    mean: float
    error: float
    # mean / error as the number of Gaussian standard deviations with the same p-value in Student's t distribution
    significance: float
    n: int  # Number of divisions


def evaluate_half(task: HalfTask, data: Dataset) -> dict[str, Any]:
    """Train and test one method on one half: seven sources, c scanned for, or the method's own bins."""
    method = get_method(task.method)
    split = data.with_folds(HashFolds(2, ("event_number",), salt=1000 * task.seed + task.number))
    train_fold, test_fold = (0, 1) if task.swapped else (1, 0)
    trained = method.train(split.fold(train_fold), task.n_trees, task.seed)
    scored = score_dataset(trained.score, split.fold(test_fold))
    templates, c = make_templates(scored, None if method.c is None else "scan")
    return {**measure_templates(templates), **measure_in_optimised_bins(scored), "c": c, "auc": area_under_roc(scored)}


def run_halves(
    tasks: Sequence[HalfTask], steps: StepFolder, load: Callable[[], Dataset], n_jobs: int, progress: Progress
) -> dict[HalfTask, dict[str, Any]]:
    """Do all tasks that are not done, on `n_jobs` processes that call `load` once each, and return all results."""
    missing = [task for task in tasks if not steps.has(task.name)]
    with progress("random halves", len(tasks)) as advance:
        advance(len(tasks) - len(missing))
        for task, result in run_tasks(evaluate_half, missing, load, n_jobs):
            steps.put(task.name, result)
            advance(1)
    return {task: steps.get(task.name, dict) for task in tasks}


def compare_pairs(first: Mapping[int, Sequence[float]], second: Mapping[int, Sequence[float]]) -> Difference:
    """Mean of first − second over divisions, with its error; both give for each division the values of its sides.

    Examples
    --------
    >>> compare_pairs({0: [1.0, 1.2], 1: [1.1, 1.3]}, {0: [0.9, 1.1], 1: [1.1, 1.1]}).mean
    0.1
    """
    common = sorted(set(first) & set(second))
    values = np.array([np.mean(first[i]) - np.mean(second[i]) for i in common])
    mean = round(float(values.mean()), 12) if len(values) else math.nan
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else math.nan
    return Difference(mean, error, standard_deviations(mean, error, len(values)), len(values))


def standard_deviations(mean: float, error: float, n: int) -> float:
    """Gaussian standard deviations of a mean of n values with an error taken from their own spread.

    Examples
    --------
    >>> round(standard_deviations(3.0, 1.0, 10), 2), round(standard_deviations(3.0, 1.0, 1000), 2)
    (2.43, 2.99)
    """
    from scipy.stats import norm, t

    if n < 2 or not error > 0:
        return math.nan
    return math.copysign(float(norm.isf(t.sf(abs(mean) / error, n - 1))), mean)
