"""The model file: one self-describing JSON text with features, bins, settings, trees and what it was trained on.

Nothing in it is ever executed. Numbers are written with as many digits as give back the same bits. A file is written
whole or not at all, and on reading everything is checked: format, version, checksum, types, and that trees are trees.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from qbdt.binning import Binning
from qbdt.boosting import Settings, Training
from qbdt.dtypes import MISSING, NODE, Nodes
from qbdt.ensemble import Ensemble
from qbdt.errors import ModelFileError, QBDTError
from qbdt.tree import Tree
from qbdt.writing import write_text

__all__ = ["FORMAT_VERSION", "read_model", "write_model"]

FORMAT = "qbdt model"
FORMAT_VERSION = 1
YIELDS = ("s", "b", "sigma2", "q", "gain", "value")


def write_model(path: str | Path, training: Training, extra: Mapping[str, Any] | None = None) -> None:
    """Write a model file.

    Parameters
    ----------
    path
        Where to; an existing file is replaced, at once and as a whole.
    training
        What to write.
    extra
        Further plain values to keep with the model.
    """
    content = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "qbdt": version("qbdt"),
        "features": list(training.ensemble.features),
        "settings": training.settings.to_dict(),
        "data": dict(training.data),
        "extra": dict(extra or {}),
        "history": list(training.history),
        "stopped": training.stopped,
        "bins": {
            name: edges.tolist() for name, edges in zip(training.binning.features, training.binning.edges, strict=True)
        },
        "trees": [_tree_to_dict(tree, training.ensemble.features) for tree in training.ensemble.trees],
    }
    write_text(Path(path), _formatted({**content, "checksum": _checksum(content)}))


def read_model(path: str | Path) -> tuple[Training, dict[str, Any]]:
    """Read a model file; returns the training and the extra values that were kept with it."""
    source = Path(path)
    content = _parsed(source)
    try:
        return _training(content), _get(content, "extra", dict)
    except ModelFileError as error:
        raise ModelFileError(f"{source}: {error}") from None
    except QBDTError as error:
        raise ModelFileError(f"{source}: {error}") from error


def _parsed(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{path}: not a model file: it is not text") from error
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        kind = "a damaged or truncated model file" if FORMAT in text[:200] else "not a model file"
        raise ModelFileError(f"{path}: {kind}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelFileError(f"{path}: not a model file: it does not say format: {FORMAT!r}")
    found = content.get("version")
    if not isinstance(found, int) or found < 1:
        raise ModelFileError(f"{path}: version {found!r} is not a version of the model file")
    if found > FORMAT_VERSION:
        raise ModelFileError(
            f"{path}: written in version {found} of the format by qbdt {content.get('qbdt')}; "
            f"this qbdt {version('qbdt')} reads up to version {FORMAT_VERSION}: update qbdt"
        )
    if content.pop("checksum", None) != _checksum(content):
        raise ModelFileError(f"{path}: damaged or edited: its checksum does not match")
    return content


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of a model file")


def _checksum(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _formatted(content: Mapping[str, Any]) -> str:
    """JSON with one line per node, list of edges and setting, which a person can read and diff."""
    lines = []
    for key, value in content.items():
        if key == "trees":
            body = ",\n".join(_formatted_tree(tree) for tree in value)
            lines.append(f'"trees": [\n{body}\n]')
        elif isinstance(value, dict) and value:
            inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in value.items())
            lines.append(f"{json.dumps(key)}: {{\n{inner}\n}}")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _formatted_tree(tree: Mapping[str, Any]) -> str:
    nodes = ",\n".join(f"    {json.dumps(node, allow_nan=False)}" for node in tree["nodes"])
    return f'  {{"weight": {json.dumps(tree["weight"], allow_nan=False)}, "nodes": [\n{nodes}\n  ]}}'


def _tree_to_dict(tree: Tree, features: Sequence[str]) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    for node in tree.nodes:
        yields = {name: float(node[name]) for name in YIELDS}
        if node["feature"] < 0:
            nodes.append({"depth": int(node["depth"]), **yields})
            continue
        nodes.append(
            {
                "feature": features[node["feature"]],
                "threshold": float(node["threshold"]),
                "missing": "left" if node["missing_left"] else "right",
                "left": int(node["left"]),
                "right": int(node["right"]),
                "depth": int(node["depth"]),
                **yields,
            }
        )
    return {"weight": tree.weight, "nodes": nodes}


def _training(content: Mapping[str, Any]) -> Training:
    features = tuple(_get(content, "features", list))
    if not features or not all(isinstance(name, str) for name in features) or len(set(features)) < len(features):
        raise ModelFileError("features: different names are needed")
    bins = _get(content, "bins", dict)
    if tuple(bins) != features:
        raise ModelFileError("bins and features have different names")
    edges = tuple(np.array([_number(x, f"bins of {name}") for x in values]) for name, values in bins.items())
    for name, values in zip(features, edges, strict=True):
        if values.size >= MISSING or np.any(np.diff(values) <= 0):
            raise ModelFileError(f"bins of {name}: at most {MISSING - 1} increasing edges are needed")
    trees = tuple(_tree(tree, features, f"tree {i}") for i, tree in enumerate(_get(content, "trees", list)))
    return Training(
        Ensemble(features, trees),
        Binning(features, edges),
        Settings.from_dict(_get(content, "settings", dict)),
        tuple(_number(value, "history") for value in _get(content, "history", list)),
        None if content.get("stopped") is None else _get(content, "stopped", str),
        _get(content, "data", dict),
    )


def _tree(content: Any, features: tuple[str, ...], what: str) -> Tree:
    if not isinstance(content, dict):
        raise ModelFileError(f"{what} is not a tree")
    entries = _get(content, "nodes", list)
    nodes: Nodes = np.zeros(len(entries), dtype=NODE)
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise ModelFileError(f"{what}, node {i} is not a node")
        nodes[i] = _node(entry, features, f"{what}, node {i}")
    _require_tree(nodes, what)
    return Tree(nodes, _number(content.get("weight"), f"{what}, weight"))


def _node(entry: Mapping[str, Any], features: tuple[str, ...], what: str) -> tuple[Any, ...]:
    depth = _get(entry, "depth", int)
    yields = [_number(entry.get(name), f"{what}, {name}") for name in YIELDS]
    if "feature" not in entry:
        return (-1, 0.0, False, -1, -1, depth, *yields)
    if entry["feature"] not in features:
        raise ModelFileError(f"{what}: unknown feature {entry['feature']!r}")
    if entry.get("missing") not in ("left", "right"):
        raise ModelFileError(f"{what}: missing must be left or right")
    children = (_get(entry, "left", int), _get(entry, "right", int))
    threshold = _number(entry.get("threshold"), f"{what}, threshold")
    feature = features.index(entry["feature"])
    return (feature, threshold, entry["missing"] == "left", *children, depth, *yields)


def _require_tree(nodes: Nodes, what: str) -> None:
    """Refuse anything in which a walk from the root could leave the array, loop, or miss a node."""
    inner = np.flatnonzero(nodes["feature"] >= 0)
    children = np.concatenate([nodes["left"][inner], nodes["right"][inner]])
    after = np.all(nodes["left"][inner] > inner) and np.all(nodes["right"][inner] > inner)
    if not len(nodes) or not after or not np.array_equal(np.sort(children), np.arange(1, len(nodes))):
        raise ModelFileError(f"{what}: its nodes do not form a tree")
    if np.any(nodes["b"] <= 0) or np.any(nodes["sigma2"] < 0):
        raise ModelFileError(f"{what}: a node without positive background")


def _get(content: Mapping[str, Any], key: str, kind: type) -> Any:
    value = content.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ModelFileError(f"{key}: {'missing' if key not in content else 'wrong type'}")
    return value


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ModelFileError(f"{what}: {value!r} is not a finite number")
    return float(value)
