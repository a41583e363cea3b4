"""A training, and several by folds, as plain data and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from qbdt.arrays import MISSING, Categories
from qbdt.data import FoldRule
from qbdt.errors import ModelFileError
from qbdt.models.file_text import get, names, number, numbers
from qbdt.models.tree_content import read_source_values, tree_from_dict, tree_to_dict
from qbdt.statistics import Expectation, SourceExpectation
from qbdt.training import AnyTrainedModel, CrossTrainedModel, End, Ending, Settings, SingleModel, TrainedModel
from qbdt.training.profile import ProfiledEnsemble
from qbdt.trees import Binning, Ensemble, Tree, category_edges

__all__ = ["from_dict", "to_dict"]

PAPER, PROFILED, CROSS_TRAINED = "paper", "profiled", "cross-trained"
"""Values of the key `model`; files of version 1 do not have it and hold the paper's."""


def to_dict(training: AnyTrainedModel) -> dict[str, Any]:
    """Return a training as the plain values of a model file."""
    if training.folds is not None:
        trainings = [to_dict(one) for one in training.trainings]
        return {"model": CROSS_TRAINED, "folds": training.folds.to_dict(), "trainings": trainings}
    ensemble, binning = training.ensemble, training.binning
    categories = {name: values.astype(int).tolist() for name, values in binning.categories.items()}
    edges = dict(zip(binning.features, (edges.tolist() for edges in binning.edges), strict=True))
    return {
        "model": PROFILED if ensemble.constants else PAPER,
        "features": list(ensemble.features),
        "settings": training.settings.to_dict(),
        "data": dict(training.data),
        "history": list(training.history),
        "stopped": training.stopped,
        "expectation": None if training.expectation is None else training.expectation.to_dict(),
        "bins": {name: own for name, own in edges.items() if name not in categories},
        "categories": categories,
        **_ensemble_to_dict(ensemble),
    }


def from_dict(content: Mapping[str, Any]) -> AnyTrainedModel:
    """Make a training from the plain values of a model file, all of them checked."""
    match content.get("model", PAPER):
        case "paper" | "profiled":
            return _read_training(content)
        case "cross-trained":
            trainings = tuple(_read_fold(one, fold) for fold, one in enumerate(get(content, "trainings", list)))
            return CrossTrainedModel(trainings, _read_rule(get(content, "folds", dict)))
        case other:
            raise ModelFileError(f"model: {other!r} is no kind of model that is known here")


def _ensemble_to_dict(ensemble: SingleModel) -> dict[str, Any]:
    if not isinstance(ensemble, ProfiledEnsemble):  # the only place that needs to know: each kind has its own keys
        return {"trees": [tree_to_dict(tree, ensemble.features) for tree in ensemble.trees]}
    shift = ensemble.shift.trees
    values = ensemble.source_values or (None,) * len(shift)
    return {
        "log_odds": ensemble.log_odds,
        "sources": list(ensemble.sources),
        "coefficients": list(ensemble.coefficients),
        "trees": [tree_to_dict(tree, ensemble.features) for tree in ensemble.ratio.trees],
        "shift_trees": [tree_to_dict(tree, ensemble.features, v) for tree, v in zip(shift, values, strict=True)],
    }


def _read_fold(content: Any, fold: int) -> TrainedModel:
    if not isinstance(content, dict) or content.get("model") not in (PAPER, PROFILED):
        raise ModelFileError(f"fold {fold} is not a training")
    try:
        return _read_training(content)
    except ModelFileError as error:
        raise ModelFileError(f"fold {fold}: {error}") from None


def _read_training(content: Mapping[str, Any]) -> TrainedModel:
    features = names(content, "features")
    if not features:
        raise ModelFileError("features: at least one is needed")
    binning = _read_binning(content, features)
    settings = Settings.from_dict(get(content, "settings", dict))
    settings.require_features(features)
    if set(settings.categorical_features) != set(binning.categories):
        raise ModelFileError("categories and settings name different categorical features")
    known = (features, binning.categories)
    history = numbers(content, "history")
    ensemble = _read_profiled(content, *known) if content.get("model") == PROFILED else _read_paper(content, *known)
    return TrainedModel(
        ensemble,
        binning,
        settings,
        history,
        _read_end(content, max(len(content["trees"]), len(history)), settings),
        _read_data(get(content, "data", dict)),
        None if content.get("expectation") is None else _read_expectation(get(content, "expectation", dict)),
    )


def _read_data(content: dict[str, Any]) -> dict[str, Any]:
    """Record of the events that it was trained on; refused where it could not be shown."""
    for sample in get(content, "samples", list) if "samples" in content else ():
        if not isinstance(sample, dict):
            raise ModelFileError("data: a sample is not a record")
        get(sample, "name", str)
        get(sample, "role", str)
        number(get(sample, "rows", int), "data, rows")
        number(sample.get("yield"), "data, yield")
    if "systematics" in content:
        names(content, "systematics")
    return content


def _read_end(content: Mapping[str, Any], n_trees: int, settings: Settings) -> End:
    """How the training ended; checkpoints of earlier versions do not say that they are unfinished."""
    if content.get("stopped") is None and content.get("model") != PROFILED and n_trees < settings.n_trees:
        return End(Ending.INTERRUPTED, f"{n_trees} trees")
    return End.from_message(None if content.get("stopped") is None else get(content, "stopped", str))


def _read_paper(content: Mapping[str, Any], features: tuple[str, ...], categories: Categories) -> Ensemble:
    trees = _read_trees(content, "trees", features, categories)
    for i, tree in enumerate(trees):
        if np.any(tree.nodes["b"] <= 0) or np.any(tree.nodes["sigma2"] < 0):
            raise ModelFileError(f"tree {i}: a node without positive background")
    return Ensemble(features, trees)


def _read_profiled(content: Mapping[str, Any], features: tuple[str, ...], categories: Categories) -> ProfiledEnsemble:
    sources, coefficients = names(content, "sources"), numbers(content, "coefficients")
    if len(coefficients) != len(sources):
        raise ModelFileError(f"{len(coefficients)} coefficients for {len(sources)} sources")
    shift = _read_trees(content, "shift_trees", features, categories)
    entries = content["shift_trees"]
    values = [read_source_values(entry, len(sources), f"shift tree {i}") for i, entry in enumerate(entries)]
    present = [value for value in values if value is not None]
    if present and len(present) < len(values):
        raise ModelFileError("shift trees: some have source_values, others have none")
    return ProfiledEnsemble(
        Ensemble(features, _read_trees(content, "trees", features, categories)),
        Ensemble(features, shift),
        number(content.get("log_odds"), "log_odds"),
        sources,
        coefficients,
        tuple(present),
    )


def _read_trees(
    content: Mapping[str, Any], key: str, features: tuple[str, ...], categories: Categories
) -> tuple[Tree, ...]:
    what, entries = key.removesuffix("s").replace("_", " "), get(content, key, list)
    return tuple(tree_from_dict(tree, features, categories, f"{what} {i}") for i, tree in enumerate(entries))


def _read_binning(content: Mapping[str, Any], features: tuple[str, ...]) -> Binning:
    bins, categories = get(content, "bins", dict), _read_categories(content, features)
    if tuple(bins) != tuple(name for name in features if name not in categories):
        raise ModelFileError("bins and features have different names")
    edges = {name: np.array(numbers(bins, name), dtype=np.float64) for name in bins}
    for name, values in edges.items():
        if values.size >= MISSING or np.any(np.diff(values) <= 0):
            raise ModelFileError(f"bins of {name}: at most {MISSING - 1} increasing edges are needed")
    edges |= {name: category_edges(values) for name, values in categories.items()}
    return Binning(features, tuple(edges[name] for name in features), categories)


def _read_categories(content: Mapping[str, Any], features: tuple[str, ...]) -> Categories:
    """Categories of categorical features; files before version 3 have none."""
    found = get(content, "categories", dict) if "categories" in content else {}
    categories = {name: np.array(numbers(found, name), dtype=np.float64) for name in found}
    for name, values in categories.items():
        if name not in features:
            raise ModelFileError(f"categories: unknown feature {name!r}")
        whole = np.all(values == np.floor(values)) and np.all(values >= 0)
        if values.size > MISSING or not whole or np.any(np.diff(values) <= 0):
            raise ModelFileError(f"categories of {name}: at most {MISSING} increasing whole numbers are needed")
    return categories


def _read_expectation(content: Mapping[str, Any]) -> Expectation:
    sources = []
    for source in get(content, "sources", list):
        if not isinstance(source, dict):
            raise ModelFileError("expectation: a source is not a record")
        values = [number(source.get(key), f"expectation, {key}") for key in ("coefficient", "cost", "profiled_cost")]
        sources.append(SourceExpectation(get(source, "name", str), *values))
    stat, full, unprofiled = (number(content.get(key), f"expectation, {key}") for key in ("stat", "full", "unprofiled"))
    return Expectation(stat, full, unprofiled=unprofiled, sources=tuple(sources))


def _read_rule(content: Mapping[str, Any]) -> FoldRule:
    columns = names(content, "columns")
    if not columns or content.get("by") not in ("modulo", "hash", "split"):
        raise ModelFileError("folds: no rule that is known here")
    salt = get(content, "salt", int) if "salt" in content else 0
    rule = {"by": content["by"], "columns": columns, "k": get(content, "k", int), "salt": salt}
    return FoldRule.from_dict(rule)
