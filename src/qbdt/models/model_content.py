"""A training, and several by folds, as plain data and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from qbdt.arrays import MISSING, Categories, Floats
from qbdt.data import FoldRule
from qbdt.errors import ModelFileError
from qbdt.models.file_text import get, names, number, numbers
from qbdt.models.tree_content import read_source_values, tree_from_dict, tree_to_dict
from qbdt.statistics import Expectation, SourceExpectation
from qbdt.training import STRENGTH, AnyTrainedModel, CrossTrainedModel, End, Settings, SingleModel, TrainedModel
from qbdt.training.profile import EfficientScores, ProfiledEnsemble
from qbdt.training.regression import Loss, RegressionExpectation, TrainedRegression
from qbdt.trees import Binning, Ensemble, Tree, category_edges

PAPER, PROFILED, EFFICIENT, CROSS_TRAINED = "paper", "profiled", "efficient", "cross-trained"
REGRESSION = "regression"
"""Values of the key `model`; files of version 1 do not have it and hold the paper's."""


def to_dict(training: AnyTrainedModel) -> dict[str, Any]:
    """Return a training as the plain values of a model file."""
    if training.folds is not None:
        trainings = [to_dict(one) for one in training.trainings]
        return {"model": CROSS_TRAINED, "folds": training.folds.to_dict(), "trainings": trainings}
    ensemble, binning = training.ensemble, training.binning
    categories = {name: values.astype(int).tolist() for name, values in binning.categories.items()}
    edges = dict(zip(binning.features, (edges.tolist() for edges in binning.edges), strict=True))
    further = [expectation.to_dict() for expectation in training.expectations[1:]]
    return {
        "features": list(ensemble.features),
        "settings": training.settings.to_dict(),
        "data": dict(training.data),
        "history": list(training.history),
        "stopped": training.stopped,
        "expectation": None if training.expectation is None else training.expectation.to_dict(),
        **({"further_expectations": further} if further else {}),
        "bins": {name: own for name, own in edges.items() if name not in categories},
        "categories": categories,
        **_ensemble_to_dict(ensemble),
        **(_regression_to_dict(training) if isinstance(training, TrainedRegression) else {}),
    }


def from_dict(content: Mapping[str, Any]) -> AnyTrainedModel:
    """Make a training from the plain values of a model file, all of them checked."""
    match content.get("model", PAPER):
        case "paper" | "profiled" | "efficient" | "regression":
            return _read_training(content)
        case "cross-trained":
            trainings = tuple(_read_fold(one, fold) for fold, one in enumerate(get(content, "trainings", list)))
            return CrossTrainedModel(trainings, _read_rule(get(content, "folds", dict)))
        case other:
            raise ModelFileError(f"model: {other!r} is no kind of model that is known here")


def _ensemble_to_dict(ensemble: SingleModel) -> dict[str, Any]:
    """Return the keys of each kind of model; this is the only place that needs to know them apart."""
    if isinstance(ensemble, EfficientScores):
        return {"model": EFFICIENT, **_efficient_to_dict(ensemble)}
    if not isinstance(ensemble, ProfiledEnsemble):
        return {"model": PAPER, "trees": [tree_to_dict(tree, ensemble.features) for tree in ensemble.trees]}
    return {
        "model": PROFILED,
        "log_odds": ensemble.log_odds,
        "sources": list(ensemble.sources),
        "coefficients": list(ensemble.coefficients),
        "trees": [tree_to_dict(tree, ensemble.features) for tree in ensemble.ratio.trees],
        "shift_trees": _shift_trees(ensemble),
    }


def _regression_to_dict(training: TrainedRegression) -> dict[str, Any]:
    prediction = None if training.prediction is None else training.prediction.to_dict()
    own = {"loss": training.loss.to_dict(), "n_events": training.n_events, "prediction": prediction}
    return {"model": REGRESSION, **own}


def _efficient_to_dict(ensemble: EfficientScores) -> dict[str, Any]:
    return {
        "log_odds": list(ensemble.log_odds),
        "strengths": list(ensemble.strengths),
        "sources": list(ensemble.sources),
        "parameters": list(ensemble.parameters),
        "ratio_coefficients": ensemble.ratio_coefficients.tolist(),
        "coefficients": ensemble.coefficients.tolist(),
        "widths": ensemble.widths.tolist(),
        "ratio_trees": [len(one.trees) for one in ensemble.ratios],
        "trees": [tree_to_dict(tree, ensemble.features) for one in ensemble.ratios for tree in one.trees],
        "shift_trees": _shift_trees(ensemble),
    }


def _shift_trees(ensemble: ProfiledEnsemble | EfficientScores) -> list[dict[str, Any]]:
    trees = ensemble.shift.trees
    values = ensemble.source_values or (None,) * len(trees)
    return [tree_to_dict(tree, ensemble.features, own) for tree, own in zip(trees, values, strict=True)]


def _read_fold(content: Any, fold: int) -> TrainedModel:
    if not isinstance(content, dict) or content.get("model") not in [*READERS]:  # a list: anything may stand there
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
    ensemble = READERS[content.get("model", PAPER)](content, *known)
    end = _read_end(content, max(len(content["trees"]), len(history)), settings)
    given = (ensemble, binning, settings, history, end, _read_data(get(content, "data", dict)))
    if content.get("model") == REGRESSION:
        n_events = None if content.get("n_events") is None else number(content["n_events"], "n_events")
        prediction = _read_prediction(content)
        return TrainedRegression(*given, loss=_read_loss(content), prediction=prediction, n_events=n_events)
    return TrainedModel(*given, _read_expectations(content))


def _read_loss(content: Mapping[str, Any]) -> Loss:
    plain = get(content, "loss", dict)
    delta = None if plain.get("delta") is None else number(plain["delta"], "loss, delta")
    return Loss(get(plain, "name", str), delta, number(plain.get("quantile"), "loss, quantile"))


def _read_prediction(content: Mapping[str, Any]) -> RegressionExpectation | None:
    if content.get("prediction") is None:
        return None
    plain = get(content, "prediction", dict)
    own = {key: number(plain.get(key), f"prediction, {key}") for key in ("unprofiled", "profiled", "n_effective")}
    if own["n_effective"] <= 0:
        raise ModelFileError("prediction, n_effective: a positive number is needed")
    sources = []
    for source in get(plain, "sources", list):
        if not isinstance(source, dict):
            raise ModelFileError("prediction: a source is not a record")
        shifts = {key: number(source.get(key), f"prediction, {key}") for key in ("unprofiled", "profiled")}
        sources.append({"name": get(source, "name", str), **shifts})
    return RegressionExpectation.from_dict({**own, "sources": sources})


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
    if content.get("stopped") is None and content.get("model", PAPER) == PAPER and n_trees < settings.n_trees:
        return End.interrupted(f"{n_trees} trees")
    return End.from_message(None if content.get("stopped") is None else get(content, "stopped", str))


def _read_paper(content: Mapping[str, Any], features: tuple[str, ...], categories: Categories) -> Ensemble:
    trees = _read_trees(content, "trees", features, categories)
    for i, tree in enumerate(trees):
        if np.any(tree.nodes["b"] <= 0) or np.any(tree.nodes["sigma2"] < 0):
            raise ModelFileError(f"tree {i}: a node without positive background")
    return Ensemble(features, trees)


def _read_regression(content: Mapping[str, Any], features: tuple[str, ...], categories: Categories) -> Ensemble:
    return Ensemble(features, _read_trees(content, "trees", features, categories))


def _read_profiled(content: Mapping[str, Any], features: tuple[str, ...], categories: Categories) -> ProfiledEnsemble:
    sources, coefficients = names(content, "sources"), numbers(content, "coefficients")
    if len(coefficients) != len(sources):
        raise ModelFileError(f"{len(coefficients)} coefficients for {len(sources)} sources")
    shift, values = _read_shifts(content, features, categories, len(sources))
    ratio = Ensemble(features, _read_trees(content, "trees", features, categories))
    return ProfiledEnsemble(ratio, shift, number(content.get("log_odds"), "log_odds"), sources, coefficients, values)


def _read_efficient(content: Mapping[str, Any], features: tuple[str, ...], categories: Categories) -> EfficientScores:
    strengths, sources, parameters = (names(content, key) for key in ("strengths", "sources", "parameters"))
    log_odds, widths = numbers(content, "log_odds"), numbers(content, "widths")
    counts = [number(count, "ratio_trees") for count in get(content, "ratio_trees", list)]
    trees = _read_trees(content, "trees", features, categories)
    whole = all(count == int(count) and count >= 0 for count in counts)
    if not (whole and len(log_odds) == len(counts) == len(strengths) > 0 and sum(counts) == len(trees)):
        raise ModelFileError(f"{len(log_odds)} log_odds and {len(counts)} ratios for {len(strengths)} strengths")
    if len(widths) != len(parameters) or not parameters or min(widths) <= 0:
        raise ModelFileError(f"{len(widths)} positive widths for {len(parameters)} parameters are needed")
    ends = np.cumsum([0, *counts]).astype(int)
    shift, values = _read_shifts(content, features, categories, len(sources))
    if shift.trees and not values:
        raise ModelFileError("shift trees have no source_values")
    return EfficientScores(
        tuple(Ensemble(features, trees[low:high]) for low, high in pairwise(ends)),
        shift,
        log_odds,
        strengths,
        sources,
        parameters,
        _read_matrix(content, "ratio_coefficients", len(parameters), len(strengths)),
        _read_matrix(content, "coefficients", len(parameters), len(sources)),
        np.array(widths),
        values,
    )


def _read_matrix(content: Mapping[str, Any], key: str, rows: int, columns: int) -> Floats:
    found = [numbers({key: row}, key) for row in get(content, key, list)]
    if [len(row) for row in found] != [columns] * rows:
        raise ModelFileError(f"{key}: {rows} rows of {columns} numbers are needed")
    return np.array(found, dtype=np.float64).reshape(rows, columns)


def _read_shifts(
    content: Mapping[str, Any], features: tuple[str, ...], categories: Categories, n_sources: int
) -> tuple[Ensemble, tuple[Floats, ...]]:
    """Trees of the shifts, and what their nodes add to each source."""
    shift = _read_trees(content, "shift_trees", features, categories)
    entries = content["shift_trees"]
    values = [read_source_values(entry, n_sources, f"shift tree {i}") for i, entry in enumerate(entries)]
    present = [value for value in values if value is not None]
    if present and len(present) < len(values):
        raise ModelFileError("shift trees: some have source_values, others have none")
    return Ensemble(features, shift), tuple(present)


READERS: dict[str, Callable[..., SingleModel]] = {
    PAPER: _read_paper,
    PROFILED: _read_profiled,
    EFFICIENT: _read_efficient,
    REGRESSION: _read_regression,
}
"""Reader of each kind of training."""


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


def _read_expectations(content: Mapping[str, Any]) -> tuple[Expectation, ...]:
    if content.get("expectation") is None:
        return ()
    further = get(content, "further_expectations", list) if "further_expectations" in content else []
    if not all(isinstance(one, dict) for one in further):
        raise ModelFileError("further_expectations: one is not a record")
    return tuple(_read_expectation(one) for one in (get(content, "expectation", dict), *further))


def _read_expectation(content: Mapping[str, Any]) -> Expectation:
    parameter = get(content, "parameter", str) if "parameter" in content else STRENGTH
    sources = []
    for source in get(content, "sources", list):
        if not isinstance(source, dict):
            raise ModelFileError("expectation: a source is not a record")
        values = [number(source.get(key), f"expectation, {key}") for key in ("coefficient", "cost", "profiled_cost")]
        sources.append(SourceExpectation(get(source, "name", str), *values))
    stat, full, unprofiled = (number(content.get(key), f"expectation, {key}") for key in ("stat", "full", "unprofiled"))
    return Expectation(stat, full, unprofiled=unprofiled, sources=tuple(sources), parameter=parameter)


def _read_rule(content: Mapping[str, Any]) -> FoldRule:
    columns = names(content, "columns")
    if not columns or content.get("by") not in ("modulo", "hash", "split"):
        raise ModelFileError("folds: no rule that is known here")
    salt = get(content, "salt", int) if "salt" in content else 0
    rule = {"by": content["by"], "columns": columns, "k": get(content, "k", int), "salt": salt}
    return FoldRule.from_dict(rule)
