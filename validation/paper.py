"""The paper's fits on its own events: Z, σ_μ, Δμ and σ_b of QBDT0, 1, 3 and 7 beside the published numbers.

Published split and settings: trained on odd, fitted on even events scaled by 2, 20 bins of tanh(c·y), MC statistics on.
ROOT's default constraint for MC statistics is Poisson, pyhf's is Gaussian, which gives a slightly larger Z.

Run:  python -m validation.paper [--data DIR] [--c C …] [--json FILE]     (make paper)
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.examples import example_text
from qbdt.analysis.loader import load, training_settings
from qbdt.analysis.schema import Analysis
from qbdt.data import Dataset
from qbdt.inference.construction import build_templates
from qbdt.inference.fit import fit_templates
from qbdt.inference.fit_summary import FitSummary
from qbdt.inference.settings import FitSettings
from qbdt.inference.source_significance import background_uncertainty
from qbdt.inference.templates.scores import scan_transform
from qbdt.tables import Table
from qbdt.training.methods import train

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "tautaugamma"
CASES: dict[int, list[str]] = {
    1: ["tes"],
    3: ["tes", "tauid", "met"],
    7: ["tes", "tauid", "met", "leppt", "lepid", "phopt", "phoid"],
}
PUBLISHED: dict[tuple[str, int], tuple[float, float, float | None]] = {
    ("QBDT0", 1): (0.90, 0.71, 231.20),
    ("QBDT1", 1): (0.87, 0.78, 218.77),
    ("QBDT0", 3): (0.90, 0.69, 258.94),
    ("QBDT3", 3): (0.89, 0.75, 254.70),
    ("QBDT0", 7): (0.90, 0.68, 260.22),
    ("QBDT7", 7): (0.91, 0.83, 247.85),
}
"""Training and number of sources in the fit: Z stat-only, Z full, σ_b (tables of sections 4 and appendix B)."""
DELTA_MU = {("QBDT1", 1): 0.56, ("QBDT3", 3): 0.71, ("QBDT7", 7): 0.49}


def scored(analysis: Analysis, events: Dataset, sources: list[str]) -> Dataset:
    """Even events with the score of a model trained on the odd ones."""
    n_trees = 200 if len(sources) == 7 else 100
    training = analysis.training.model_copy(update={"n_trees": n_trees})
    settings = training_settings(analysis.model_copy(update={"training": training}))
    model = train(events.fold(1).with_systematics(sources), settings).ensemble
    return events.fold(0).transform(lambda part: {"score": model.score(part)})


def fitted(events: Dataset, sources: list[str], c: float) -> tuple[FitSummary, float]:
    settings = FitSettings(c=c, min_entries=0, scale=2, systematics=sources, scan=False)
    templates = build_templates(events, settings).templates
    summary = fit_templates(templates, settings).expected
    return summary, background_uncertainty(templates, summary).correlated


def compare(analysis: Analysis, events: Dataset, constants: list[float]) -> tuple[list[tuple[str, ...]], list[Any]]:
    models = {"QBDT0": scored(analysis, events, [])}
    models |= {f"QBDT{n}": scored(analysis, events, sources) for n, sources in CASES.items()}
    rows: list[tuple[str, ...]] = []
    plain: list[Any] = []
    for (name, n), (z_stat, z_full, sigma_b) in PUBLISHED.items():
        scan = scan_transform(models[name]).best
        for c in constants:
            summary, total = fitted(models[name], CASES[n], c)
            delta = DELTA_MU.get((name, n))
            cells = (
                f"{summary.z_stat:.2f} ({z_stat:.2f})",
                f"{summary.z:.2f} ({z_full:.2f})",
                f"{summary.without_mc_stat.z_stat:.2f}",
                f"{summary.sigma_mu:.2f}",
                f"{summary.delta_mu:.2f}" + ("" if delta is None else f" ({delta:.2f})"),
                f"{total:.0f} ({sigma_b:.0f})",
            )
            rows.append((name, str(n), f"{c:.2f}", f"{scan:.2f}", *cells))
            plain.append(
                {"model": name, "sources": n, "c": c, "scanned_c": scan, "sigma_b": total, **summary.to_dict()}
            )
    return rows, plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--c", type=float, nargs="+", default=[0.25, 0.30])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    analysis = parse_analysis(example_text("tautaugamma"), "tautaugamma.yaml")
    rows, plain = compare(analysis, load(analysis, options.data), options.c)
    header = ("training", "sources", "c", "scan", "Z stat", "Z full", "Z no MC", "σ_μ", "Δμ", "σ_b")
    print(Table("Fits of the paper's events, published numbers in brackets", header, tuple(rows)))
    if options.json:
        options.json.write_text(json.dumps(plain, indent=2))


if __name__ == "__main__":
    main()
