"""The report of a run of `qbdt run`, or of a fit of `qbdt fit`, from what lies in its folder.

Variables, and scores of training against test events, need the events themselves: they are read again where the folder
of the data is given, or where the dataset comes with qbdt. Without them the report says what it leaves out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.diagnosis.diagnose import Diagnosis
from qbdt.analysis.diagnosis.overtraining import over_training
from qbdt.analysis.diagnosis.page import diagnosis_blocks, read_diagnosis
from qbdt.analysis.loading import load
from qbdt.analysis.reading import read_analysis
from qbdt.analysis.schema import Analysis
from qbdt.data import Dataset, Role
from qbdt.errors import ConfigError
from qbdt.inference import (
    FitSummary,
    Scan,
    area_under_roc,
    roc_points,
    scan_from_dict,
    score_histogram,
    summary_from_dict,
)
from qbdt.inference.templates import TemplateSet
from qbdt.models import read_cross_trained
from qbdt.progress import Progress, silent
from qbdt.report import Block, Document, Figure, Headline, Section, Text, provenance_tables
from qbdt.report.figures import (
    correlation,
    envelope,
    likelihood_scan,
    pulls,
    ranking,
    roc_curves,
    stacked,
    train_and_test,
    tree_diagram,
    tree_weights,
    variable,
)
from qbdt.statistics import Expectation
from qbdt.tables import Table
from qbdt.training import FoldedEnsemble, TrainedModel
from qbdt.training.profile import ProfiledEnsemble

__all__ = ["RunFolder", "read_run", "run_document"]

PERMUTATIONS = 199
"""Of the test of over-training."""


@dataclass(frozen=True, eq=False)
class RunFolder:
    """What a folder holds: results, templates, and where they are there, models and events."""

    name: str
    analysis: Analysis | None
    summary: FitSummary
    scan: Scan | None
    templates: TemplateSet
    tables: tuple[Table, ...]
    settings: Mapping[str, Any]
    version: str
    trainings: tuple[TrainedModel, ...]
    scored: Dataset | None
    data: Dataset | None
    files: Mapping[str, str]
    diagnosis: Diagnosis | None


def run_document(folder: Path, data: Path | None = None, progress: Progress = silent) -> Document:
    """Make the report of a run.

    Parameters
    ----------
    folder
        Folder that `qbdt run` or `qbdt fit --out` wrote.
    data
        Folder that the paths of the analysis start from, to draw its variables.
    progress
        Told how far reading has come.
    """
    run = read_run(folder, data, progress)
    sections = [
        Section("Result", (*_result(run),)),
        Section("Training", (*_training(run),)),
        Section("Inputs", (*_inputs(run),)),
        Section("Variables", (*_variables(run),)),
        Section("Scores", (*_scores(run),)),
        Section("Sources", (*_sources(run),)),
        Section("Diagnosis", (*diagnosis_blocks(run.diagnosis),)),
        Section("Settings", (*_settings(run),)),
    ]
    best = run.summary
    headlines = (
        Headline("significance Z", f"{best.z:.2f}", f"{best.data} data, all uncertainties"),
        Headline("without systematics", f"{best.z_stat:.2f}", "with MC statistics"),
        Headline("signal strength μ", f"{best.mu:.2f} ± {best.sigma_mu:.2f}"),
        Headline("Δμ from the sources", f"{best.delta_mu:.2f}", f"{len(best.sources)} sources"),
    )
    subtitle = f"Expected and fitted results, training and inputs of one analysis; qbdt {run.version}."
    return Document(run.name, subtitle, headlines, tuple(s for s in sections if s.blocks))


def read_run(folder: Path, data: Path | None = None, progress: Progress = silent) -> RunFolder:
    """Read what a folder of `qbdt run` or `qbdt fit --out` holds; arguments as in `run_document`."""
    if (folder / "study.json").exists():
        raise ConfigError(f"{folder} was made by qbdt reproduce: run that again, it redoes nothing but the report")
    fits = folder / "fit" if (folder / "fit").is_dir() else folder
    plain = _json(fits / "fit.json", folder)
    result = _json(folder / "result.json", folder) if (folder / "result.json").exists() else {}
    analysis = _analysis(result.get("analysis"))
    scored = folder / "scored" / "scored.yaml"
    model = folder / "model.qbdt"
    models = [model] if model.exists() else []
    return RunFolder(
        str(result.get("name", folder.resolve().name)),
        analysis,
        summary_from_dict(plain["observed"] or plain["expected"]),
        scan_from_dict(plain["scan"]),
        TemplateSet.from_dict(_json(fits / "templates.json", folder)),
        tuple(Table(t["title"], tuple(t["header"]), tuple(map(tuple, t["rows"]))) for t in result.get("tables", ())),
        {**plain["settings"], **_flat(result.get("analysis", {}))},
        str(result.get("qbdt", "")),
        read_cross_trained(model)[0].trainings if models else (),
        load(read_analysis(scored), scored.parent) if scored.exists() else None,
        None if analysis is None else _events(analysis, data, progress),
        {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in (*models, fits / "fit.json")},
        read_diagnosis(folder),
    )


def _json(path: Path, folder: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{folder}: no {path.name}: not the folder of a finished qbdt run or qbdt fit") from None
    except (OSError, json.JSONDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _analysis(plain: Mapping[str, Any] | None) -> Analysis | None:
    """Return the analysis that was run; one on a bundled dataset has no samples of its own."""
    if plain is None:
        return None
    if plain.get("dataset") is not None:
        plain = {key: plain[key] for key in ("name", "dataset", "folds", "training", "fit")}
    return Analysis.model_validate({key: value for key, value in plain.items() if value is not None})


def _events(analysis: Analysis, data: Path | None, progress: Progress) -> Dataset | None:
    if data is None and analysis.dataset is None:
        return None
    return load(analysis, data or Path(), progress)


def _result(run: RunFolder) -> list[Block]:
    best = run.summary
    blocks: list[Block] = [*(run.tables[:2] or best.tables()[:2])]
    blocks += [_templates_figure(run, postfit) for postfit in (False, True)]
    if run.scan is not None:
        columns = {name: getattr(run.scan, name).tolist() for name in ("mu", "full", "stat")}
        caption = "Profile likelihood of the signal strength."
        blocks.append(Figure("scan", likelihood_scan(run.scan, best), caption, columns))
    return [*blocks, *(run.tables[2:] or best.tables()[2:])]


def _templates_figure(run: RunFolder, postfit: bool) -> Figure:
    yields = run.summary.postfit if postfit else {p.name: p.nominal for p in run.templates.processes}
    columns: dict[str, Sequence[Any]] = {
        "low": run.templates.edges[:-1].tolist(),
        "high": run.templates.edges[1:].tolist(),
    }
    columns |= {name: np.asarray(values).tolist() for name, values in yields.items()}
    columns |= {"fitted data": run.summary.counts.tolist()}
    name, when = ("postfit", "after") if postfit else ("prefit", "before")
    drawn = stacked(run.templates, run.summary, postfit=postfit)
    return Figure(name, drawn, f"Templates {when} the fit, {run.summary.data} data.", columns)


def _training(run: RunFolder) -> list[Block]:
    if not run.trainings:
        return []
    first = run.trainings[0].ensemble
    gains = np.array([t.ensemble.gains() for t in run.trainings])
    share = gains / np.maximum(gains.sum(axis=1, keepdims=True), 1e-300)
    order = np.argsort(-share.mean(axis=0))
    rows = tuple((first.features[i], *(f"{100 * fold[i]:.1f}" for fold in share)) for i in order)
    header = ("variable", *(f"fold {i}" for i in range(len(run.trainings))))
    rows_of_tree = first.trees[0].rows(first.features, 0) if first.trees else []
    blocks: list[Block] = [Table("Share of each variable in the gain of all splits (%)", header, rows)]
    profiled = isinstance(first, ProfiledEnsemble)
    if profiled:
        expected = [t.expectation for t in run.trainings if t.expectation is not None]
        blocks[:0] = [Expectation.mean(expected).to_table()] if expected else []
    else:
        weights = {f"fold {i}": t.ensemble.weights.tolist() for i, t in enumerate(run.trainings)}
        caption = "Weight W = ΣQ of each tree: what is left to learn."
        blocks.append(Figure("tree-weights", tree_weights(weights), caption, weights))
    if rows_of_tree:
        columns = {name: [row[name] for row in rows_of_tree] for name in rows_of_tree[0]}
        blocks.append(
            Figure(
                "first-tree",
                tree_diagram(first.trees[0], first.features, profiled=profiled),
                "First tree of fold 0.",
                columns,
                True,
            )
        )
    return blocks


def _inputs(run: RunFolder) -> list[Block]:
    if run.data is None:
        return []
    summary = run.data.summary()
    blocks: list[Block] = [*summary.tables()]
    return blocks if summary.findings else [*blocks, Text("No fault of the inputs was found.")]


def _variables(run: RunFolder) -> list[Block]:
    if run.data is None:
        return [Text("The events were not read again; give their folder with --data to see the variables here.")]
    return [_variable(run.data, name, number) for number, name in enumerate(run.data.features)]


def _variable(data: Dataset, name: str, number: int) -> Figure:
    parts = {role: _column(data, role, name) for role in (Role.SIGNAL, Role.BACKGROUND)}
    finite = np.concatenate([values[np.isfinite(values)] for values, _ in parts.values()])
    low, high = np.quantile(finite, [0.002, 0.995]) if finite.size else (0.0, 1.0)
    edges = np.linspace(low, high if high > low else low + 1.0, 41)
    shapes = {}
    for role, (values, weight) in parts.items():
        kept = np.isfinite(values)
        place = np.clip(values[kept], edges[0], edges[-1])
        content = np.histogram(place, edges, weights=weight[kept])[0]
        error = np.sqrt(np.histogram(place, edges, weights=weight[kept] ** 2)[0])
        shapes[role] = (content / weight.sum(), error / weight.sum())
    columns: dict[str, Any] = {"low": edges[:-1].tolist(), "high": edges[1:].tolist()}
    columns |= {str(role): shape[0].tolist() for role, shape in shapes.items()}
    drawn = variable(name, edges, shapes[Role.SIGNAL], shapes[Role.BACKGROUND])
    return Figure(f"variable-{number}", drawn, f"{name}, unit area; under- and overflow in the outer bins.", columns)


def _column(data: Dataset, role: Role, name: str) -> tuple[Any, Any]:
    events = [sample.events for sample in data.of_role(role)]
    values = np.concatenate([np.asarray(e.column(name), dtype=np.float64) for e in events])
    return values, np.concatenate([e.weight for e in events])


def _scores(run: RunFolder) -> list[Block]:
    blocks: list[Block] = []
    if run.scored is not None:
        points = roc_points(run.scored)
        drawn = roc_curves({"this run": (points["efficiency"], points["rejection"])}, "this run")
        caption = (
            f"ROC curve, every event scored by a model that did not see it; area {area_under_roc(run.scored):.4f}."
        )
        blocks.append(Figure("roc", drawn, caption, points))
    if run.data is not None and run.data.folds is not None and len(run.trainings) == run.data.folds.k:
        train, test = (_over_folds(run, seen=seen) for seen in (True, False))
        columns = {
            f"{half}_{name}": values
            for half, content in (("train", train), ("test", test))
            for name, values in content.items()
        }
        models = FoldedEnsemble(tuple(t.ensemble for t in run.trainings), run.data.folds)
        tests = {test.role: test.p for test in over_training(run.data, models, n_permutations=PERMUTATIONS)}
        caption = (
            "Scores of events that a model has seen and has not seen, all folds; p-values by permutation of folds."
        )
        blocks.append(Figure("train-and-test", train_and_test(run.name, train, test, tests), caption, columns))
    elif run.trainings:
        blocks.append(Text("Scores of training against test events need the events: give their folder with --data."))
    return blocks


def _over_folds(run: RunFolder, *, seen: bool) -> dict[str, Any]:
    """Histograms of tanh(c·y), summed over folds, of the events that each model was, or was not, trained on."""
    assert run.data is not None
    c = run.settings.get("chosen_c") or 0.25
    edges = np.linspace(-1, 1, 21)
    total: dict[str, Any] = {}
    nominal = run.data.with_systematics([])
    for number, training in enumerate(run.trainings):
        part = nominal.without_fold(number) if seen else nominal.fold(number)
        score = training.ensemble.score
        scored = part.transform(lambda events, score=score: {"score": score(events)})  # type: ignore[misc]
        for name, values in score_histogram(scored, edges, c).items():
            total[name] = np.asarray(values) + (total.get(name, 0.0) if name != "edges" else 0.0)
    return {name: values.tolist() for name, values in total.items()}


def _sources(run: RunFolder) -> list[Block]:
    best = run.summary
    if not best.sources:
        return []
    impacts: dict[str, list[Any]] = {"source": [i.source for i in best.impacts]}
    impacts |= {side: [getattr(i, side) for i in best.impacts] for side in ("up", "down", "prefit_up", "prefit_down")}
    values: dict[str, list[Any]] = {"source": [p.name for p in best.sources], "pull": [p.value for p in best.sources]}
    values |= {"error": [p.error for p in best.sources]}
    names = [p.name for p in best.parameters]
    matrix: dict[str, list[Any]] = {"parameter": names}
    matrix |= {name: best.correlation[:, i].tolist() for i, name in enumerate(names)}
    blocks: list[Block] = [
        Figure("ranking", ranking(best), "Impact of the sources on μ, largest first.", impacts),
        Figure("pulls", pulls(best), "Post-fit values and uncertainties of the sources.", values),
        Figure("correlation", correlation(best), "Correlations after the fit.", matrix),
    ]
    for number, source in enumerate(run.templates.sources):
        sides = {side: run.templates.total(Role.BACKGROUND, source, side).tolist() for side in ("up", "down")}
        columns = {"low": run.templates.edges[:-1].tolist(), "background": run.templates.background.tolist(), **sides}
        caption = f"{source}: background moved up and down by one standard deviation, with MC uncertainties."
        blocks.append(Figure(f"envelope-{number}", envelope(run.templates, source), caption, columns))
    return blocks


def _settings(run: RunFolder) -> list[Block]:
    return list(provenance_tables(run.settings, run.files, {}))


def _flat(plain: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted names; what is not set is left out."""
    found: dict[str, Any] = {}
    for key, value in plain.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}.")
        elif value not in (None, [], ""):
            found[f"{prefix}{key}"] = value
    return found
