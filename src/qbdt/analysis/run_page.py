"""The report of a run, or of a fit by itself, from the content of its folder.

Variables, and scores of training against test events, need the events themselves: they are read again where the folder
of the data is given, or where the dataset comes with qbdt. Without them the report says what it leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.blinding import describe_blinding
from qbdt.analysis.diagnosis import diagnosis_blocks
from qbdt.analysis.region_variables import draw_region_variables
from qbdt.analysis.run_folder import RunFolder, read_run
from qbdt.analysis.run_histograms import fill_unit_area
from qbdt.analysis.run_scores import draw_scores
from qbdt.analysis.schema import Analysis
from qbdt.data import Dataset, Role
from qbdt.files import choose_words
from qbdt.inference import FitSummary
from qbdt.inference.templates import TemplateSet
from qbdt.progress import Progress, silent
from qbdt.report import Block, Code, Document, Figure, Headline, Labels, Section, Text, provenance_tables
from qbdt.report.figures import (
    correlation,
    draw_tree,
    envelope,
    likelihood_scan,
    limit_curve,
    pulls,
    ranking,
    stacked,
    strength_contours,
    tree_weights,
    variable,
)
from qbdt.statistics import Expectation
from qbdt.training import CrossTrainedModel


def run_document(
    folder: Path, data: Path | None = None, progress: Progress = silent, analysis: Analysis | None = None
) -> Document:
    """Make the report of a run.

    Parameters
    ----------
    folder
        Folder of a run, or that a fit was written to.
    data
        Folder that the paths of the analysis start from, to draw its variables.
    progress
        Told how far reading has come.
    analysis
        The analysis whose labels figures have, for the folder of a fit by itself.
    """
    run = read_run(folder, data, progress)
    run = run if analysis is None else replace(run, analysis=analysis)
    sections = [
        Section("Result", (*_result(run),)),
        Section("Training", (*_training(run),)),
        Section("Inputs", (*_inputs(run),)),
        Section("Regions", (*draw_region_variables(run),)),
        Section("Variables", (*_variables(run),)),
        Section("Scores", (*draw_scores(run, _labels(run)),)),
        Section("Sources", (*_sources(run),)),
        Section("Diagnosis", (*diagnosis_blocks(run.diagnosis),)),
        Section("Settings", (*_settings(run),)),
    ]
    blinding = describe_blinding(run.shown is not None, run.with_data)
    subtitle = f"{blinding} Results, training and inputs of one analysis; qbdt {run.version}."
    return Document(run.name, subtitle, _headlines(run), tuple(s for s in sections if s.blocks))


def _headlines(run: RunFolder) -> tuple[Headline, ...]:
    best = run.summary
    if len(best.strengths) > 1 or not best.strengths[0].is_strength:
        return tuple(_headline(replace(best, strengths=(one,))) for one in best.strengths)
    return (
        Headline("significance Z", f"{best.z:.2f}", f"{best.data} data, all uncertainties"),
        Headline("without systematics", f"{best.z_stat:.2f}", "with MC statistics"),
        Headline("signal strength μ", f"{best.mu:.2f} ± {best.sigma_mu:.2f}"),
        Headline("Δμ from the sources", f"{best.delta_mu:.2f}", f"{len(best.sources)} sources"),
    )


def _headline(one: FitSummary) -> Headline:
    """One of several strengths, or a parameter that has no significance."""
    first, data = one.strengths[0], f"{one.data} data"
    text = f"Z = {one.z:.2f}, {data}" if first.is_strength else data
    return Headline(first.name, f"{one.mu:z.2f} ± {one.sigma_mu:.2f}", text)


def _labels(run: RunFolder) -> Labels:
    return Labels() if run.analysis is None else run.analysis.figure_labels()


def _result(run: RunFolder) -> list[Block]:
    best = run.summary
    blocks: list[Block] = [*(run.tables[:2] or best.tables()[:2])]
    for name in run.measurement.regions:
        blocks += [_templates_figure(run, name, postfit) for postfit in (False, True)]
    if run.scan is not None:
        columns = {name: getattr(run.scan, name).tolist() for name in ("mu", "full", "stat")}
        first = best.strengths[0]
        what = f"the signal strength{_name_of(run, first.name)}" if first.is_strength else first.name
        caption = f"Profile likelihood of {what}."
        blocks.append(Figure("scan", likelihood_scan(run.scan, best, _labels(run)), caption, columns))
    return [*blocks, *_answers(run), *(run.tables[2:] or best.tables()[2:])]


def _name_of(run: RunFolder, strength: str) -> str:
    return f" {strength}" if len(run.summary.strengths) > 1 else ""


def _answers(run: RunFolder) -> list[Block]:
    """Limits and contours, where they were asked for."""
    blocks: list[Block] = []
    for limit in run.answers.limits if run.answers else ():
        names = ("low_2", "low_1", "expected", "high_1", "high_2")
        bands = dict(zip(names, limit.expected_cls.T.tolist(), strict=True))
        observed = {} if limit.observed is None else {"observed": limit.observed_cls.tolist()}
        caption = f"CLs of {limit.strength}, {limit.method}; the line is at {1 - limit.level:.2f}."
        columns = {"mu": limit.mu.tolist(), **bands, **observed}
        blocks.append(Figure(f"limit-{limit.strength}", limit_curve(limit, _labels(run)), caption, columns))
    for scan in run.answers.contours if run.answers else ():
        x, y = np.meshgrid(scan.x, scan.y)
        first, second = scan.parameters
        columns = {first: x.ravel().tolist(), second: y.ravel().tolist(), "rise": scan.rise.ravel().tolist()}
        caption = f"Contours of {first} and {second}, all other parameters profiled."
        drawn = strength_contours(scan, _labels(run))
        blocks.append(Figure(f"contour-{first}-{second}", drawn, caption, columns))
    return blocks


def _templates_figure(run: RunFolder, region: str, postfit: bool) -> Figure:
    templates, several = run.measurement.regions[region], len(run.measurement.regions) > 1
    summary = run.summary.region(region) if several else run.summary
    shown = None if run.shown is None else run.shown[region]
    nominal = {p.name: p.nominal for p in templates.processes}
    yields = {name: summary.postfit[name] for name in nominal} if postfit else nominal
    columns: dict[str, Sequence[Any]] = _bins(templates)
    columns |= {name: np.asarray(values).tolist() for name, values in yields.items()}
    columns |= {"fitted data": summary.counts.tolist()}
    columns |= {} if shown is None else {"recorded data": ["" if np.isnan(n) else n for n in shown.tolist()]}
    name, when = ("postfit", "after") if postfit else ("prefit", "before")
    labels = _labels(run)
    drawn = stacked(templates, summary, postfit, labels, region=region if several else None, shown=shown)
    where = f"Region {region}: templates" if several else "Templates"
    caption = f"{where} {when} the fit, {summary.data} data."
    return Figure(f"{name}-{region}" if several else name, drawn, caption, columns)


def _bins(templates: TemplateSet) -> dict[str, Sequence[Any]]:
    return {"low": templates.edges[:-1].tolist(), "high": templates.edges[1:].tolist()}


EXPECTED = (
    "The mean over the models. Each was trained on a part of the events, and expects a fit of these alone: σ_μ is "
    "larger than that of the fit of all. c says how much of a source's shift the score subtracts."
)


def _training(run: RunFolder) -> list[Block]:
    return [block for name, model in run.models.items() for block in _describe_model(run, name, model)]


def _describe_model(run: RunFolder, name: str, model: CrossTrainedModel) -> list[Block]:
    trainings, first = model.trainings, model.trainings[0].ensemble
    ending, whose = (f"-{name}", f" of model {name}") if name else ("", "")
    blocks: list[Block] = [replace(table, title=f"{table.title}{whose}") for table in model.tables()[:1]]
    profiled = trainings[0].settings.method == "profile"
    if profiled:
        expected = [training.expectations for training in trainings if training.expectations]
        tables = [table for same in zip(*expected, strict=True) for table in Expectation.mean(same).tables()]
        blocks[:0] = [*tables, Text(EXPECTED)] if tables else []
    else:
        weights = {f"fold {i}": training.ensemble.weights.tolist() for i, training in enumerate(trainings)}
        caption = f"Weight W = ΣQ of each tree{whose}: what is left to learn."
        blocks.append(Figure(f"tree-weights{ending}", tree_weights(weights), caption, weights))
    if first.trees:
        nodes = first.trees[0].rows(first.features, 0)
        columns = {name: [node[name] for node in nodes] for name in nodes[0]}
        drawn = draw_tree(first.trees[0], first.features, profiled=profiled, labels=_labels(run))
        blocks.append(Figure(f"first-tree{ending}", drawn, f"First tree of fold 0{whose}.", columns, True))
    return blocks


def _inputs(run: RunFolder) -> list[Block]:
    if run.events is None or run.analysis is None:
        return []
    summary = (run.events.simulated() if run.analysis.fit.blind else run.events.every_event()).summary()
    blocks: list[Block] = [*summary.tables()]
    return blocks if summary.findings else [*blocks, Text("No fault of the inputs was found.")]


def _variables(run: RunFolder) -> list[Block]:
    if run.data is None:
        return [Text("The events were not read again; give the folder of the data to see the variables here.")]
    labels = _labels(run)
    words = choose_words(run.data.features)
    return [_variable(run.data, name, word, labels) for name, word in zip(run.data.features, words, strict=True)]


def _variable(data: Dataset, name: str, word: str, labels: Labels) -> Figure:
    edges, shapes = fill_unit_area(data, name)
    columns: dict[str, Any] = {"low": edges[:-1].tolist(), "high": edges[1:].tolist()}
    columns |= {str(role): shape[0].tolist() for role, shape in shapes.items()}
    drawn = variable(labels.variable(name), edges, shapes[Role.SIGNAL], shapes[Role.BACKGROUND], labels)
    return Figure(f"variable-{word}", drawn, f"{name}, unit area; under- and overflow in the outer bins.", columns)


def _sources(run: RunFolder) -> list[Block]:
    best, labels = run.summary, _labels(run)
    if not best.sources:
        return []
    values: dict[str, list[Any]] = {"source": [p.name for p in best.sources], "pull": [p.value for p in best.sources]}
    values |= {"error": [p.error for p in best.sources]}
    names = [p.name for p in best.parameters]
    matrix: dict[str, list[Any]] = {"parameter": names}
    matrix |= {name: best.correlation[:, i].tolist() for i, name in enumerate(names)}
    blocks: list[Block] = [
        *(_ranking(run, replace(best, strengths=(strength,))) for strength in best.strengths),
        Figure("pulls", pulls(best, labels), "Post-fit values and uncertainties of the sources.", values),
        Figure("correlation", correlation(best, labels), "Correlations after the fit.", matrix),
    ]
    for name in run.measurement.regions:
        blocks += _envelopes(run, name)
    return blocks


def _ranking(run: RunFolder, summary: FitSummary) -> Figure:
    """Impacts of the sources on the one strength of a summary."""
    several, name = len(run.summary.strengths) > 1, summary.strengths[0].name
    columns: dict[str, list[Any]] = {"source": [i.source for i in summary.impacts]}
    for side in ("up", "down", "prefit_up", "prefit_down"):
        columns[side] = [getattr(i, side) for i in summary.impacts]
    named = several or not summary.strengths[0].is_strength
    caption = f"Impact of the sources on {name if named else 'μ'}, largest first."
    drawn = ranking(summary, labels=_labels(run))
    return Figure(f"ranking-{name}" if several else "ranking", drawn, caption, columns)


def _envelopes(run: RunFolder, region: str) -> list[Block]:
    """Background of one region with each source moved; the signal, where a source moves nothing else."""
    templates, several = run.measurement.regions[region], len(run.measurement.regions) > 1
    ending, where = (f"-{region}", f" in region {region}") if several else ("", "")
    blocks: list[Block] = []
    shown = [name for name in templates.sources if not several or templates.changes_shape(name)]
    for source, word in zip(shown, choose_words(shown), strict=True):
        role = templates.moved_role(source)
        sides = {side: templates.total(role, source, side).tolist() for side in ("up", "down")}
        columns = {"low": templates.edges[:-1].tolist(), str(role): templates.total(role).tolist(), **sides}
        size = "unit" if source in run.measurement.of_interest else "standard deviation"
        caption = f"{source}: {role}{where} moved up and down by one {size}, with MC uncertainties."
        drawn = envelope(templates, source, _labels(run))
        blocks.append(Figure(f"envelope-{word}{ending}", drawn, caption, columns))
    return blocks


def _settings(run: RunFolder) -> list[Block]:
    """Show the analysis as it was written, and what a fit by itself or the training chose."""
    if not run.text:
        return list(provenance_tables(run.settings, run.files, {}))
    chosen = {name: value for name, value in run.settings.items() if name.startswith("chosen_")}
    return [Code("Analysis file", run.text), *provenance_tables(chosen, run.files, {})]
