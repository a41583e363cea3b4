"""The paper's tables: in each cell our number, the paper's, and the difference."""

from __future__ import annotations

from typing import Any

import numpy as np

from qbdt.studies.paper.numbers import CASES, DELTA_MU, SIGMA_B, SIGMA_THETA, SIGNIFICANCE, SOURCE_SIGNIFICANCE, SOURCES
from qbdt.studies.paper.study import Study
from qbdt.tables import Table

NONE = "–"

QUANTITIES = {
    "z_stat": "Z stat-only",
    "z_full": "Z full",
    "z_full_smooth": "Z full, smoothed",
    "z_full_floor": "Z full, 10 events per bin",
    "delta_mu": "Δμ",
    "delta_mu_smooth": "Δμ, smoothed",
    "z_full_optimised": "Z full, optimised bins",
    "delta_mu_optimised": "Δμ, optimised bins",
    "auc": "AUC",
}
"""Quantities of the random halves, with their column titles."""

DIFFERENCES = {name: title for name, title in QUANTITIES.items() if name not in ("delta_mu_smooth", "auc")}
"""Quantities whose paired differences are shown."""


def format_cell(ours: float | None, paper: float | None = None, digits: int = 2) -> str:
    """Our number, the paper's and the difference; only ours where the paper has none."""
    if ours is None:
        return NONE if paper is None else f"{NONE} / {paper:.{digits}f}"
    if paper is None:
        return f"{ours:.{digits}f}"
    return f"{ours:.{digits}f} / {paper:.{digits}f} / {_format_signed(ours - paper, digits)}"


def format_constant(c: float | None) -> str:
    """Constant of tanh(c·y), or that the method has bins of its own."""
    return "own bins" if c is None else f"{c:.2f}"


def _format_signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text.replace("-", "+")


def make_main_table(study: Study) -> Table:
    """Case III in one table: the published split next to the paper, and the random halves."""
    rows = []
    for method in study.methods:
        case = study.published[method.name]["cases"]["III"]
        paper = SIGNIFICANCE.get(("III", method.stands_for or ""))
        stat, full = (NONE, NONE) if paper is None else (f"{paper[0]:.2f}", f"{paper[1]:.2f}")
        values = study.values(method.name, "z_full")
        halves = f"{np.mean(values):.3f} ± {_error(study, method.name, 'z_full'):.3f}" if values else NONE
        spread = f"{np.std(values, ddof=1):.3f}" if len(values) > 1 else NONE
        rows.append((method.name, f"{case['z_stat']:.2f}", stat, f"{case['z_full']:.2f}", full, halves, spread))
    header = ("method", "Z stat", "paper", "Z full", "paper", "random halves", "spread")
    return Table("Expected significance, seven sources", header, tuple(rows))


def _error(study: Study, method: str, quantity: str) -> float:
    """Error of the mean over halves, a half and its swap counted once."""
    means = [np.mean([side[quantity] for side in sides]) for sides in study.halves[method].values()]
    return float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")


def make_case_table(study: Study, case: str) -> Table:
    """Significances of one case for all methods."""
    rows = []
    for method in study.methods:
        result = study.published[method.name]
        numbers = result["cases"][case]
        stat, full = SIGNIFICANCE.get((case, method.stands_for or ""), (None, None))
        rows.append(
            (
                method.name,
                format_cell(numbers["z_stat"], stat),
                format_cell(numbers["z_full"], full),
                format_cell(numbers["z_full_smooth"], full),
                format_constant(result["c"]),
            )
        )
    n = CASES[case]
    title = f"Case {case}: {n} source{'s' * (n > 1)}; ours / paper / difference"
    return Table(title, ("method", "Z stat-only", "Z full", "Z full, smoothed shifts", "c"), tuple(rows))


def make_sigma_theta_table(study: Study, case: str) -> Table:
    """Post-fit uncertainties of the nuisance parameters for the methods of the paper's table."""
    columns = [m for m in study.methods if (case, m.stands_for) in SIGMA_THETA]
    rows = []
    for i, (source, label) in enumerate(list(SOURCES.items())[: CASES[case]]):
        for kind in ("as they are", "smoothed"):
            cells = []
            for method in columns:
                numbers = study.published[method.name]["cases"][case]
                plain = numbers["fit"]["parameters"].get(source, {}).get("error")
                ours = plain if kind == "as they are" else numbers["smooth"]["sigma_theta"].get(source)
                cells.append(format_cell(ours, SIGMA_THETA[case, str(method.stands_for)][i]))
            rows.append((f"σ_θ({label})", kind, *cells))
    title = f"Case {case}: post-fit uncertainties; ours / paper / difference"
    return Table(title, ("", "shifts", *(m.name for m in columns)), tuple(rows))


def make_delta_mu_table(study: Study) -> Table:
    """Δμ from the sources, of GradBDT and of QBDTX, and their ratio."""
    rows = []
    for case, n in CASES.items():
        for kind, key in (("as they are", "delta_mu"), ("smoothed", "delta_mu_smooth")):
            names = ("GradBDT", f"QBDT{n}")
            if not all(name in study.published for name in names):
                continue
            grad, qbdt = (study.published[name]["cases"][case][key] for name in names)
            paper = DELTA_MU[case]
            ratio = format_cell(qbdt / grad if grad > 0 else None, paper[2])
            rows.append((case, str(n), kind, format_cell(grad, paper[0]), format_cell(qbdt, paper[1]), ratio))
    header = ("case", "sources", "shifts", "Δμ GradBDT", "Δμ QBDTX", "ratio")
    return Table("Part of σ_μ from the sources, Δμ; ours / paper / difference", header, tuple(rows))


def make_appendix_table(study: Study, kind: str) -> Table:
    """Z_χ², Z_0, Z_Q(1) and Z_Q(∞) of every source and method; `kind` is "plain" or "smooth"."""
    rows = []
    for source, label in SOURCES.items():
        for method in study.methods:
            ours = study.published[method.name]["appendix"][kind].get(source)
            if ours is None:
                continue
            paper = SOURCE_SIGNIFICANCE.get((source, method.stands_for or ""), (None,) * 4)
            rows.append((label, method.name, *(format_cell(a, b) for a, b in zip(ours, paper, strict=True))))
    shifts = "shifts as they are" if kind == "plain" else "smoothed shifts"
    title = f"Significance with one source, {shifts}; ours / paper / difference"
    return Table(title, ("source", "method", "Z_χ²", "Z_0", "Z_Q(1)", "Z_Q(∞)"), tuple(rows))


def make_background_table(study: Study) -> Table:
    """Uncertainty of the total background after the fit, with and without correlations."""
    rows = []
    for case in CASES:
        for method in study.methods:
            paper = SIGMA_B.get((case, method.stands_for or ""), (None, None))
            numbers = study.published[method.name]["cases"][case]
            pairs: list[tuple[float | None, float | None]] = []
            for ours in (numbers["sigma_b"], numbers["smooth"]["sigma_b"]):
                pairs += [(ours[0], paper[0]), (ours[1], paper[1] if paper[1] is not None else paper[0])]
            rows.append((case, method.name, *(format_cell(a, b, 0) for a, b in pairs)))
    header = ("case", "method", "σ_b", "without correlations", "σ_b, smoothed", "without correlations, smoothed")
    return Table("Uncertainty of the total background (events); ours / paper / difference", header, tuple(rows))


def make_halves_table(study: Study) -> Table:
    """Mean, its error and spread of every figure over the random halves."""
    rows = []
    for method in study.halves:
        cells = []
        for quantity in QUANTITIES:
            values = study.values(method, quantity)
            spread = np.std(values, ddof=1) if len(values) > 1 else float("nan")
            cells.append(f"{np.mean(values):.3f} ± {_error(study, method, quantity):.3f} ({spread:.3f})")
        rows.append((method, *cells))
    n = study.options.halves
    title = f"{n} random divisions, both sides: mean ± error (spread); seven sources"
    return Table(title, ("method", *QUANTITIES.values()), tuple(rows))


def make_differences_table(study: Study, reference: str) -> Table:
    """Paired differences of every method to one of them."""
    rows = []
    for method in study.halves:
        if method == reference:
            continue
        cells = []
        for quantity in DIFFERENCES:
            d = study.difference(method, reference, quantity)
            cells.append(f"{_format_signed(d.mean, 3)} ± {d.error:.3f} ({_format_signed(d.significance, 1)}σ)")
        rows.append((method, *cells))
    title = f"Paired differences to {reference} on the same halves"
    return Table(title, ("method", *DIFFERENCES.values()), tuple(rows))


def make_methods_table(study: Study) -> Table:
    """Methods, libraries and settings."""
    rows: list[tuple[Any, ...]] = [
        (m.name, m.about, str(m.trees * study.options.trees), f"{study.published[m.name]['auc']:.4f}")
        for m in study.methods
    ]
    return Table("Methods", ("method", "what it is", "trees, at most", "AUC, published split"), tuple(rows))
