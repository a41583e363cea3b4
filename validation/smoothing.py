"""Smoothing of shifts against the field's 353QH-twice: distance to the truth from nine times the events.

Each fold of ten of the bundled h → γττ sample, or of the events of an analysis file, stands for a sample with a tenth
of the events; the truth is that of the other nine. For all features, processes and shape or weight sources the relative
shift (up − down)/2 of twenty bins with equal background is smoothed, and compared with the truth: mean of the squares
in units of the statistical error of the shift, and of its relative size.

Run:  python -m validation.smoothing [--folds N] [--bins N] [--analysis FILE --data FOLDER]     (make smoothing)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from qbdt.analysis import load, read_analysis
from qbdt.arrays import Floats
from qbdt.data import Dataset, Role
from qbdt.data.samples import tautaugamma
from qbdt.inference.templates import ScoreBins, TemplateSet, equal_yield_edges, fill
from qbdt.inference.templates.smoothing import smooth_values
from qbdt.tables import Table

TENTHS = 10
"""Folds, of which each stands for a small sample."""


def smooth_353qh_twice(values: Floats) -> Floats:
    """Running medians of 3, 5 and 3, quadratic interpolation of flat parts, Hanning; then the same for the residuals.

    The algorithm of J. Friedman (1974) as ROOT has it in `TH1::Smooth`, which TRExFitter applies to ratios.
    """
    first = _smooth_353qh(values)
    return first + _smooth_353qh(values - first)


def _smooth_353qh(values: Floats) -> Floats:
    smooth = values.copy()
    for width in (3, 5, 3):
        smooth = _run_median(smooth, width)
    smooth = _interpolate_flat(smooth)
    middle = 0.25 * smooth[:-2] + 0.5 * smooth[1:-1] + 0.25 * smooth[2:]
    return np.concatenate([smooth[:1], middle, smooth[-1:]])


def _run_median(values: Floats, width: int) -> Floats:
    found, half, n = values.copy(), width // 2, len(values)
    for i in range(1, n - 1):
        reach = min(half, i, n - 1 - i)
        found[i] = np.median(values[i - reach : i + reach + 1])
    if width == 3:  # Tukey's rule for the ends
        found[0] = np.median([values[0], found[1], 3 * found[1] - 2 * found[2]])
        found[-1] = np.median([values[-1], found[-2], 3 * found[-2] - 2 * found[-3]])
    return found


def _interpolate_flat(values: Floats) -> Floats:
    """Where three neighbours are the same and stand off from those beside them, put a parabola through the ends."""
    found = values.copy()
    for i in range(2, len(values) - 2):
        if not values[i - 1] == values[i] == values[i + 1]:
            continue
        left, right = values[i - 2] - values[i], values[i + 2] - values[i]
        if left * right <= 0:
            continue
        side = 1 if abs(right) > abs(left) else -1
        found[i] = -0.5 * values[i - 2 * side] + values[i] / 0.75 + values[i + 2 * side] / 6.0
        found[i + side] = 0.5 * (values[i + 2 * side] - values[i - 2 * side]) + values[i]
    return found


def read_events(path: Path, folder: Path) -> Dataset:
    """Events of an analysis file, in ten folds."""
    analysis = read_analysis(path)
    assert analysis.folds is not None, f"{path}: folds are needed"
    folds = analysis.folds.model_copy(update={"k": TENTHS})
    return load(analysis.model_copy(update={"folds": folds}), folder)


def compare(dataset: Dataset, n_folds: int, n_bins: int) -> dict[str, list[tuple[float, float]]]:
    """Squared distances, in units of the error and of the relative shift, by the name of the method."""
    found: dict[str, list[tuple[float, float]]] = {}
    for feature in dataset.features:
        known = dataset.select(lambda events, name=feature: np.isfinite(events.column(name)))  # type: ignore[misc]
        one = known.transform(lambda events, name=feature: {"score": events.column(name)})  # type: ignore[misc]
        edges = equal_yield_edges(one, n_bins, Role.BACKGROUND)
        if len(edges) <= n_bins / 2:
            continue  # a number of something
        bins = ScoreBins.of(edges)
        for fold in range(n_folds):
            small = fill(one.fold(fold), bins, errors=True).scaled(10.0)
            truth = fill(one.without_fold(fold), bins).scaled(10.0 / 9.0)
            for name, distances in _compare_templates(small, truth):
                found.setdefault(name, []).append(distances)
    return found


def _compare_templates(small: TemplateSet, truth: TemplateSet) -> list[tuple[str, tuple[float, float]]]:
    rows: list[tuple[str, tuple[float, float]]] = []
    for process in small.processes:
        exact = truth.process(process.name)
        for source, shift in process.shifts.items():
            if shift.variance is None:
                continue  # a normalisation
            usable = (process.nominal > 0) & (exact.nominal > 0) & (shift.variance > 1e-12 * process.nominal**2)
            if usable.sum() < len(usable) / 2:
                continue  # a source that does not act here, or scales all events alike
            n = process.nominal[usable]
            values, errors = process.linear_shift(source)[usable] / n, np.sqrt(shift.variance[usable]) / n
            wanted = exact.linear_shift(source)[usable] / exact.nominal[usable]
            methods: dict[str, Callable[[], Floats]] = {
                "none": lambda values=values: values,  # type: ignore[misc]
                "353QH twice": lambda values=values: smooth_353qh_twice(values),  # type: ignore[misc]
                "by the noise": lambda values=values, errors=errors: smooth_values(values, errors)[0],  # type: ignore[misc]
            }
            for name, method in methods.items():
                off = method() - wanted
                rows.append((name, (float(np.mean((off / errors) ** 2)), float(np.mean(off**2)))))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--bins", type=int, default=20)
    parser.add_argument("--analysis", type=Path, help="analysis file; the bundled sample if not given")
    parser.add_argument("--data", type=Path, default=Path(), help="folder of its files")
    options = parser.parse_args()
    dataset = tautaugamma(k=TENTHS) if options.analysis is None else read_events(options.analysis, options.data)
    found = compare(dataset, options.folds, options.bins)
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    raw, field = (np.array(found[name])[:, 0] for name in ("none", "353QH twice"))
    ours = np.array(found["by the noise"])[:, 0]
    rows = tuple((name, f"{mean[0]:.3f}", f"{np.sqrt(mean[1]):.5f}") for name, mean in means.items())
    title = f"{len(raw)} shifts of {options.bins} bins: distance to the truth from nine times the events"
    print(Table(title, ("smoothing", "mean square, in σ²", "RMS of the relative shift"), rows))
    print(f"\nnearer than 353QH twice in {np.mean(ours < field):.0%}, than no smoothing in {np.mean(ours < raw):.0%}")
    sys.exit(0 if np.all(means["by the noise"] < means["353QH twice"]) else 1)


if __name__ == "__main__":
    main()
