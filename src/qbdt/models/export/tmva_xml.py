"""TMVA's XML weights: one BDT per sum of trees, in single precision.

TMVA's score of an "AdaBoost" forest is Σ wᵢ pᵢ / Σ wᵢ with the purity pᵢ of the leaf; with all weights 1 and n times
the output in place of the purity it is the sum of outputs. A node sends x ≥ cut right, and NaN left; but TMVA's Reader
asks no tree about an event with NaN, it returns −999. The lowest number in place of NaN goes the same way, left.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.errors import DataError
from qbdt.models.export.comparison import float32_at_least
from qbdt.trees import Ensemble, Tree

LARGEST = np.finfo(np.float32).max
INNER = "0"
"""`nType` of a node with a cut; a leaf has 1 or −1."""
CLASSIFICATION, REGRESSION = "0", "1"
"""What TMVA takes from a leaf: with 0 its purity, with 1, as in its own forests of "Grad", its response."""

DEEPEST = 500
"""Cuts above a leaf that are written: elements stand one within the other, and readers go down by recursion."""


def write_tmva(ensemble: Ensemble, path: Path) -> None:
    """Write one sum of trees as a weight file of TMVA's MethodBDT."""
    _require_cuts(ensemble)
    _require_shallow(ensemble)
    _require_single_cuts(ensemble)
    root = ET.Element("MethodSetup", Method="BDT::BDT")
    info = ET.SubElement(root, "GeneralInfo")
    facts = (("TMVA Release", "4.2.1 [262657]"), ("Creator", f"qbdt {version('qbdt')}"))
    for name, value in (*facts, ("AnalysisType", "Classification")):
        ET.SubElement(info, "Info", name=name, value=value)
    options = ET.SubElement(root, "Options")
    n_trees = len(ensemble.trees)
    for name, value in (("NTrees", str(n_trees)), ("BoostType", "AdaBoost"), ("UseYesNoLeaf", "False")):
        ET.SubElement(options, "Option", name=name, modified="Yes").text = value
    _add_variables(root, ensemble)
    ET.SubElement(root, "Transformations", NTransformations="0")
    ET.SubElement(root, "MVAPdfs")
    weights = ET.SubElement(root, "Weights", NTrees=str(n_trees), AnalysisType=CLASSIFICATION)
    for i, tree in enumerate(ensemble.trees):
        one = ET.SubElement(weights, "BinaryTree", type="DecisionTree", boostWeight="1.0", itree=str(i))
        _add_nodes(one, tree, float(n_trees))
    ET.indent(root)
    path.write_text('<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n", encoding="utf-8")


def read_tmva(path: Path, values: NDArray[np.float32]) -> Floats:
    """Sum of trees of each row, computed as TMVA's MethodBDT does."""
    weights = ET.parse(path).getroot().find("Weights")
    assert weights is not None
    what = "res" if weights.attrib["AnalysisType"] == REGRESSION else "purity"
    total, norm = np.zeros(len(values)), 0.0
    for tree in weights:
        weight = float(np.float32(tree.attrib["boostWeight"]))
        total += weight * _read_leaves(tree[0], values, what).astype(np.float64)
        norm += weight
    return total / norm if norm > np.finfo(np.float64).eps else np.zeros(len(values))


def _read_leaves(node: ET.Element, values: NDArray[np.float32], what: str) -> NDArray[np.float32]:
    """What the leaf of each row has as its purity, or as its response."""
    if node.attrib["nType"] != INNER:
        return np.full(len(values), np.float32(node.attrib[what]))
    right = values[:, int(node.attrib["IVar"])] >= np.float32(node.attrib["Cut"])
    if node.attrib["cType"] != "1":
        right = ~right
    sides = {child.attrib["pos"]: child for child in node}
    out = np.empty(len(values), dtype=np.float32)
    out[right] = _read_leaves(sides["r"], values[right], what)
    out[~right] = _read_leaves(sides["l"], values[~right], what)
    return out


def _require_cuts(ensemble: Ensemble) -> None:
    """Refuse categories: TMVA's nodes have nothing but a cut."""
    for tree in ensemble.trees:
        for i in np.flatnonzero(tree.is_set):
            name = ensemble.features[tree.nodes["feature"][i]]
            raise DataError(f"feature {name} is categorical: TMVA has cuts only; export to onnx, xgboost or cpp")


def _require_shallow(ensemble: Ensemble) -> None:
    for tree in ensemble.trees:
        if tree.depth > DEEPEST:
            raise DataError(f"a tree has {tree.depth} cuts above a leaf: TMVA's files hold up to {DEEPEST}")


def _require_single_cuts(ensemble: Ensemble) -> None:
    """Refuse cuts that only infinity could stand for in single precision, which TMVA's reader does not know."""
    for tree in ensemble.trees:
        for node in tree.nodes[np.abs(tree.nodes["threshold"]) > LARGEST]:
            name = ensemble.features[node["feature"]]
            raise DataError(f"feature {name} is cut at {node['threshold']:.3g}: numbers of TMVA end at {LARGEST:.3g}")


def _add_variables(root: ET.Element, ensemble: Ensemble) -> None:
    variables = ET.SubElement(root, "Variables", NVar=str(len(ensemble.features)))
    for i, name in enumerate(ensemble.features):
        if not name.isprintable():
            raise DataError(f"feature {name!r}: TMVA cannot read a name with control characters")
        used = [t.nodes["threshold"][t.nodes["feature"] == i] for t in ensemble.trees]
        cuts = np.concatenate([*used, np.zeros(0)])
        low, high = (cuts.min(), cuts.max()) if cuts.size else (0.0, 0.0)
        internal = re.sub(r"\W", "_", name, flags=re.ASCII)
        names = {"VarIndex": str(i), "Expression": name, "Label": name, "Title": name, "Unit": "", "Internal": internal}
        ET.SubElement(variables, "Variable", {**names, "Type": "F", "Min": _text(low), "Max": _text(high)})
    ET.SubElement(root, "Spectators", NSpec="0")
    classes = ET.SubElement(root, "Classes", NClass="2")
    for i, name in enumerate(("Signal", "Background")):
        ET.SubElement(classes, "Class", Name=name, Index=str(i))


def _add_nodes(parent: ET.Element, tree: Tree, scale: float) -> None:
    cuts = float32_at_least(tree.nodes["threshold"])
    outputs = (tree.outputs * scale).astype(np.float32)
    todo = [(0, parent, "s")]
    while todo:
        at, above, place = todo.pop()
        node = tree.nodes[at]
        inner = bool(node["feature"] >= 0)
        element = ET.SubElement(
            above,
            "Node",
            pos=place,
            depth=str(int(node["depth"])),
            NCoef="0",
            IVar=str(int(node["feature"])),
            Cut=_text(cuts[at]) if inner else "0.0",
            cType="1",
            res="0.0",
            rms="0.0",
            purity=_text(outputs[at]),
            nType=INNER if inner else ("1" if outputs[at] > 0 else "-1"),
        )
        if inner:
            todo += [(int(node["right"]), element, "r"), (int(node["left"]), element, "l")]


def _text(value: float) -> str:
    """Nine digits, which give back the same single-precision number."""
    return f"{float(value):.9g}"
