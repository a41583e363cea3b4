"""The fit of the paper's own events with and without smoothing of the shifts: σ_μ, Z, and what constrains each source.

Two folds, the profiled method with its defaults, 20 optimised or equal-signal bins. The seven sources are one-sided
shape sources. Where noise of a shift constrains its nuisance parameter, smoothing takes that constraint away.

Run:  python -m validation.smoothed_fits [--data DIR] [--trees N]     (make smoothed-fits)
"""

from __future__ import annotations

import argparse
from pathlib import Path

from qbdt.data import Dataset, HashFolds
from qbdt.data.samples import paper_tautaugamma
from qbdt.inference import FitResult, FitSettings, run_fit
from qbdt.tables import Table
from qbdt.training import Settings, train

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "tautaugamma"


def score(events: Dataset, settings: Settings) -> Dataset:
    """Score each half of the events with a model of the other."""
    halves = []
    for fold in (0, 1):
        model = train(events.without_fold(fold), settings, n_threads=1).ensemble
        halves.append(events.fold(fold).transform(lambda part, model=model: {"score": model.score(part)}))
    return Dataset.concatenate(halves)


def compare(scored: Dataset, binning: str) -> tuple[Table, Table]:
    """Fits with and without smoothing: results, and the constraints of the sources."""
    found: dict[str, FitResult] = {}
    for smooth in ("none", "auto"):
        plain = {"transform": "none", "binning": binning, "bins": 20, "smooth": smooth, "scan": False}
        found[smooth] = run_fit(scored, FitSettings.model_validate(plain))
    rows = tuple(
        (smooth, f"{fit.expected.sigma_mu:.3f}", f"{fit.expected.z:.3f}", f"{fit.expected.z_stat:.3f}")
        for smooth, fit in found.items()
    )
    noise = {one.source: f"{one.noise:.2f}" for one in found["none"].noise}
    sources = tuple(
        (p.name, f"{p.error:.3f}", f"{found['auto'].expected.parameter(p.name).error:.3f}", noise.get(p.name, "> 0.9"))
        for p in found["none"].expected.sources
    )
    header = ("source", "σ_θ without", "σ_θ with smoothing", "σ_θ of pure noise")
    return (
        Table(f"Fit of the paper's events, {binning} bins", ("smoothing", "σ_μ", "Z", "Z stat"), rows),
        Table(f"Constraints, {binning} bins", header, sources),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--trees", type=int, help="trees of each sum; the default of the method")
    options = parser.parse_args()
    events = paper_tautaugamma(options.data).with_folds(HashFolds(2, ("event_number",), 0))
    given = {} if options.trees is None else {"n_trees": options.trees}
    scored = score(events, Settings(method="profile", **given))
    for binning in ("optimised", "equal_signal"):
        for table in compare(scored, binning):
            print(f"\n{table}", flush=True)


if __name__ == "__main__":
    main()
