"""The report of a reproduction: result first, then what holds, the tables, the figures, settings and provenance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from qbdt.progress import Progress, silent
from qbdt.report import Block, Document, Fold, Headline, Section, Text, provenance_tables
from qbdt.studies.paper import figures
from qbdt.studies.paper import paper_tables as tables
from qbdt.studies.paper.numbers import CASES, SIGNIFICANCE, SOURCES
from qbdt.studies.paper.paper_methods import PROFILED
from qbdt.studies.paper.statements import make_statements
from qbdt.studies.paper.study import Study

ABOUT_HALVES = (
    "The paper has one split of a small sample. Here the events are divided at random, every method is trained on one "
    "side and tested on the other, and then the other way round, so that differences between methods are taken on the "
    "same events. The error of a mean counts a division and its swap once, since they share their events. "
    "Where a floor is named, bins are joined until each has ten effective simulated background events; the paper asks "
    "for one in the last bin. Optimised bins are those of the profiled method, for all methods: edges that keep the "
    "most information after profiling, for each fifth of the test events chosen on the other four."
)

ABOUT_FITS = (
    "Published split: trained on odd, tested on even event numbers, yields of the test half doubled; tanh(c·y) in 20 "
    "bins on (−1, 1), MC statistics in every bin. For the published growth rule c is the paper's 0.25, for all others "
    "it is scanned as the paper says; the profiled method, whose scores lie in (−1, 1), has optimised bins of the "
    "score itself. Fits by pyhf for the paper's methods; by the Newton solver, which agrees with pyhf to 1e-3, for the "
    "others, with smoothed shifts, and over random halves. Smoothing averages the ratio of varied to nominal events "
    "until it has at most one extremum and every group of bins is known to 5 %."
)


def make_document(study: Study, progress: Progress = silent) -> Document:
    """Make the report."""
    sections: list[tuple[str, Callable[[Study], list[Block]]]] = [
        ("Result", _result),
        ("What holds", lambda s: [*make_statements(s)]),
        ("Random halves", _halves),
        ("Cases I to III", _cases),
        ("Appendix", _appendix),
        ("Variables", lambda s: [*figures.draw_variables(s.data)]),
        ("Training", _training),
        ("Envelopes", _envelopes),
        ("Correlations", lambda s: [one for case in CASES for one in figures.draw_correlations(s, case)]),
        ("Formula", lambda s: [figures.draw_formula()]),
        ("Settings", _settings),
    ]
    drawn = []
    with progress("drawing", len(sections)) as advance:
        for title, make in sections:
            blocks = make(study)
            if blocks:
                drawn.append(Section(title, tuple(blocks)))
            advance(1)
    events = "the paper's own events" if study.options.data is not None else "the bundled sample"
    subtitle = (
        f"h → γττ with {events}: every table and figure of the QBDT paper next to the paper's numbers, and the "
        "question it could not ask: what of it survives on other random halves?"
    )
    return Document("The QBDT paper, reproduced", subtitle, _headlines(study), tuple(drawn))


def _headlines(study: Study) -> tuple[Headline, ...]:
    found = []
    for name in ("GradBDT", "QBDT0", "QBDT7"):
        if name in study.published:
            ours, paper = study.published[name]["cases"]["III"]["z_full"], SIGNIFICANCE["III", name][1]
            found.append(Headline(f"Z, {name}, published split", f"{ours:.2f}", f"paper {paper:.2f}"))
    for first, second in (("QBDT7", "QBDT0"), ("QBDT7", "GradBDT"), (PROFILED, "LightGBM")):
        if study.options.halves > 1 and {first, second} <= set(study.halves):
            quantity = "z_full_optimised" if first == PROFILED else "z_full"
            d = study.difference(first, second, quantity)
            value = f"{d.mean:+z.3f} ± {d.error:.3f}".replace("-", "−")
            found.append(Headline(f"{first} − {second}", value, f"Z over {d.n} random divisions"))
    return tuple(found)


def _result(study: Study) -> list[Block]:
    blocks: list[Block] = [tables.make_main_table(study)]
    if study.skipped:
        blocks.append(Text(f"Left out, because their package is not installed: {', '.join(study.skipped)}."))
    if study.options.data is None:
        blocks.append(
            Text(
                "These are the bundled sample's events, simulated anew, with more of them than the paper had: the "
                "paper's numbers stand beside ours for orientation, not as a target. With the paper's files: "
                "qbdt reproduce --data."
            )
        )
    if study.halves:
        blocks.append(next(iter(figures.draw_spreads(study))))
    return blocks


def _halves(study: Study) -> list[Block]:
    if not study.halves:
        return []
    blocks: list[Block] = [Text(ABOUT_HALVES), tables.make_halves_table(study)]
    if study.options.halves > 1:
        blocks += [tables.make_differences_table(study, name) for name in ("GradBDT", "QBDT0") if name in study.halves]
    return blocks + list(figures.draw_spreads(study))[1:]


def _cases(study: Study) -> list[Block]:
    blocks: list[Block] = [Text(ABOUT_FITS)]
    for case in CASES:
        blocks += [tables.make_case_table(study, case), tables.make_sigma_theta_table(study, case)]
    return [*blocks, tables.make_delta_mu_table(study)]


def _appendix(study: Study) -> list[Block]:
    plain, smooth = (tables.make_appendix_table(study, kind) for kind in ("plain", "smooth"))
    return [
        Text("Each source alone, without MC statistics: appendix A of the paper."),
        plain,
        Fold("The same with smoothed shifts", (smooth,)),
        Text("Uncertainty of the total background from the sources after the fit: appendix B."),
        tables.make_background_table(study),
    ]


def _training(study: Study) -> list[Block]:
    return [
        tables.make_methods_table(study),
        figures.draw_training_curves(study),
        figures.draw_roc_curves(study),
        *figures.draw_score_comparisons(study),
        Fold("First trees", tuple(figures.draw_trees(study))),
    ]


def _envelopes(study: Study) -> list[Block]:
    folds: list[Block] = []
    for source, label in SOURCES.items():
        drawn = tuple(figures.draw_envelopes(study, source))
        if drawn:
            folds.append(Fold(label, drawn))
    return folds


def _settings(study: Study) -> list[Block]:
    rows: dict[str, Any] = {
        "events": "the paper's files" if study.options.data is not None else "bundled sample",
        "trees of QBDT0": study.options.trees,
        "random divisions": study.options.halves,
        "seed": study.options.seed,
        "processes": study.options.jobs,
        "c on the published split": ", ".join(
            f"{n} {tables.format_constant(r['c'])}" for n, r in study.published.items()
        ),
        "c that a scan finds": ", ".join(
            f"{n} {r['scanned_c']:.2f}" for n, r in study.published.items() if r["scanned_c"] is not None
        ),
        "rows": ", ".join(f"{s.name} {s.events.n_rows}" for s in study.data.samples),
        "yields": ", ".join(f"{s.name} {s.events.total:.1f}" for s in study.data.samples),
    }
    seconds = {stage: float(np.round(value, 1)) for stage, value in study.seconds.items()}
    return list(provenance_tables(rows, study.settings["files"], seconds))
