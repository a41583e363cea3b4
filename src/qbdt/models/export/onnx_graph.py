"""ONNX: the whole model as one graph in double precision, with the fold rule inside.

Trees are `TreeEnsemble` nodes of ai.onnx.ml 5, whose cuts, leaves and sums are doubles; `x < c` is BRANCH_LT, a set of
categories BRANCH_MEMBER. Inputs are `features` (row, feature) as doubles and, for a cross-trained model, each column of
the fold rule as 64-bit integers. Outputs are `score` and, cross-trained, `average`, with a column for each parameter of
interest.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import FoldRule, HashFolds, SplitFolds
from qbdt.errors import DataError, require
from qbdt.training import Model, SingleModel
from qbdt.trees import Ensemble, Tree

OPSET, ML_OPSET, IR_VERSION = 18, 5, 9
"""The oldest that have double-precision trees and bitwise operations: more runtimes read older ones."""

BRANCH_LT, BRANCH_MEMBER = 1, 6
SUM = 1


def write_onnx(model: Model, path: Path) -> list[Path]:
    """Write a model; returns the files."""
    graph = _Graph()
    scores = [graph.score(member) for member in model.members]
    inputs = [graph.tensor_info("features", "DOUBLE", ["rows", len(model.features)])]
    n_scores = max(len(model.parameters), 1)
    outputs = [graph.tensor_info("score", "DOUBLE", ["rows", n_scores])]
    if model.folds is not None:
        clash = {"features", "score", "average"} & set(model.folds.columns)
        if clash:
            raise DataError(f"the fold rule reads a column named {clash.pop()}, which ONNX inputs and outputs need")
        odd = [name for name in model.folds.columns if not name.strip() or not name.isprintable()]
        if odd:
            raise DataError(f"the fold rule reads a column named {odd[0]!a}, which no ONNX input can be called")
        inputs += [graph.tensor_info(name, "INT64", ["rows"]) for name in model.folds.columns]
        outputs.append(graph.tensor_info("average", "DOUBLE", ["rows", n_scores]))
        graph.by_fold(scores, graph.fold(model.folds), n_scores)
    else:
        graph.node("Identity", scores, output="score")
    path.write_bytes(graph.model(inputs, outputs, _facts(model)).SerializeToString())
    return [path]


def read_onnx(path: Path, n_threads: int = 1) -> Callable[[Floats, dict[str, NDArray[np.int64]]], dict[str, Floats]]:
    """Return a function from features and identifiers to the outputs by name, computed by onnxruntime."""
    runtime = require("onnxruntime", "checking an ONNX file")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = n_threads
    session = runtime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def outputs(values: Floats, identifiers: dict[str, NDArray[np.int64]]) -> dict[str, Floats]:
        found = session.run(names, {"features": np.ascontiguousarray(values, dtype=np.float64), **identifiers})
        return {name: one if one.shape[1] > 1 else one[:, 0] for name, one in zip(names, found, strict=True)}

    return outputs


def _facts(model: Model) -> dict[str, str]:
    facts = {"qbdt": version("qbdt"), "features": json.dumps(model.features)}
    if model.parameters:
        facts["scores"] = json.dumps(model.parameters)
    if model.folds is not None:
        facts["folds"] = json.dumps(model.folds.to_dict())
    return facts


class _Graph:
    """Nodes and constants of a graph under construction."""

    def __init__(self) -> None:
        self._onnx = require("onnx", "exporting to ONNX")
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def tensor_info(self, name: str, kind: str, shape: list[Any]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, getattr(self._onnx.TensorProto, kind), shape)

    def model(self, inputs: list[Any], outputs: list[Any], facts: dict[str, str]) -> Any:
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "qbdt", inputs, outputs, list(self._constants.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="qbdt", ir_version=IR_VERSION)
        helper.set_model_props(model, facts)
        self._onnx.checker.check_model(model)
        return model

    def node(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        """Add a node; returns the name of its output."""
        name = output or f"{kind}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Name of a constant of shape (1,)."""
        array = np.array([value], dtype=dtype)
        name = f"constant_{array.dtype}_{array.tobytes().hex()}"
        self._constants[name] = self._onnx.numpy_helper.from_array(array, name)
        return name

    def array(self, values: NDArray[Any]) -> str:
        """Name of a constant array."""
        name = f"array_{values.dtype}_{'x'.join(map(str, values.shape))}_{values.tobytes().hex()}"
        self._constants[name] = self._onnx.numpy_helper.from_array(values, name)
        return name

    def score(self, member: SingleModel) -> str:
        """Score of a single model, as (row, 1), or with a column for each parameter of interest."""
        sums = {name: self._trees(component) for name, component in member.components.items()}
        if member.parameters:
            return self._combine_efficient(member.constants, list(sums.values()))
        return self._combine_profiled(member.constants, **sums) if member.constants else sums["score"]

    def by_fold(self, scores: list[str], fold: str, n_scores: int) -> None:
        """Outputs `score`, of the fold's model, and `average`."""
        middle = self.constant(1, np.int64)
        place = self.node("Unsqueeze", [fold, middle])
        if n_scores == 1:
            self.node("GatherElements", [self.node("Concat", scores, axis=1), place], output="score", axis=1)
        else:  # as (row, fold, score), of which the place is the same for all scores
            table = self.node("Concat", [self.node("Unsqueeze", [one, middle]) for one in scores], axis=1)
            places = self.node("Unsqueeze", [place, self.constant(2, np.int64)])
            places = self.node("Tile", [places, self.array(np.array([1, 1, n_scores]))])
            chosen = self.node("GatherElements", [table, places], axis=1)
            self.node("Squeeze", [chosen, middle], output="score")
        total = scores[0]
        for other in scores[1:]:
            total = self.node("Add", [total, other])
        self.node("Div", [total, self.constant(len(scores))], output="average")

    def fold(self, rule: FoldRule) -> str:
        """Fold of each row, from its identifiers."""
        if isinstance(rule, HashFolds):
            return self._hash_identifiers(rule)
        (column,) = rule.columns
        if isinstance(rule, SplitFolds):  # a negative place would count from the end; k is refused by the runtime
            low = self.node("Less", [column, self.constant(0, np.int64)])
            return self.node("Where", [low, self.constant(rule.k, np.int64), column])
        return self.node("Mod", [column, self.constant(rule.k, np.int64)])

    def _combine_profiled(self, constants: Mapping[str, float], ratio: str, shift: str) -> str:
        one = self.constant(1.0)
        exponent = self.node("Neg", [self.node("Add", [ratio, self.constant(constants["log_odds"])])])
        probability = self.node("Div", [one, self.node("Add", [one, self.node("Exp", [exponent])])])
        relative = self.node("Div", [self.node("Sub", [probability, shift]), self.constant(constants["share"])])
        above = self.node("Sub", [relative, one])
        return self.node("Div", [above, self.node("Add", [one, self.node("Abs", [above])])])

    def _combine_efficient(self, constants: Mapping[str, Floats], sums: list[str]) -> str:
        """Scores (Σ_i a_ji r_0i − Σ_k c_jk f_k − m_j)/w_j with r_0i = exp(y_i)/(1 + Σ_j exp(y_j)); `find_shares`."""
        n_ratios = len(constants["log_odds"])
        log_ratios, shifts = (self.node("Concat", own, axis=1) for own in (sums[:n_ratios], sums[n_ratios:]))
        y = self.node("Add", [log_ratios, self.array(constants["log_odds"][None])])
        axis = self.constant(1, np.int64)
        most = self.node("Max", [self.node("ReduceMax", [y, axis], keepdims=1), self.constant(0.0)])
        powers = self.node("Exp", [self.node("Sub", [y, most])])
        sum_of_powers = self.node("MatMul", [powers, self.array(np.ones((n_ratios, 1)))])
        total = self.node("Add", [self.node("Exp", [self.node("Neg", [most])]), sum_of_powers])
        shares = self.node("Div", [powers, total])
        ratios = self.node("MatMul", [shares, self.array(np.ascontiguousarray(constants["ratio_coefficients"].T))])
        t = self.node("Sub", [self.node("Sub", [ratios, shifts]), self.array(constants["centres"][None])])
        return self.node("Div", [t, self.array(constants["widths"][None])])

    def _hash_identifiers(self, rule: HashFolds) -> str:
        """Splitmix64 in operations that runtimes have: sums and products of signed words, shifts of unsigned ones.

        Both wrap around at 64 bits, and casts between them keep the bits.
        """
        state = self.constant(rule.salt % 2**64, np.uint64)
        for column in rule.columns:
            word = self.node("BitwiseXor", [state, self._unsigned(column)])
            word = self._unsigned(self.node("Add", [self._signed(word), self._word(0x9E3779B97F4A7C15)]))
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                mixed = self._signed(self._xor_shift(word, shift))
                word = self._unsigned(self.node("Mul", [mixed, self._word(factor)]))
            state = self._xor_shift(word, 31)
        return self._signed(self.node("Mod", [state, self.constant(rule.k, np.uint64)]))

    def _xor_shift(self, word: str, by: int) -> str:
        moved = self.node("BitShift", [word, self.constant(by, np.uint64)], direction="RIGHT")
        return self.node("BitwiseXor", [word, moved])

    def _word(self, bits: int) -> str:
        return self.constant(int(np.array(bits, dtype=np.uint64).view(np.int64)), np.int64)

    def _signed(self, name: str) -> str:
        return self.node("Cast", [name], to=self._onnx.TensorProto.INT64)

    def _unsigned(self, name: str) -> str:
        return self.node("Cast", [name], to=self._onnx.TensorProto.UINT64)

    def _trees(self, ensemble: Ensemble) -> str:
        """Sum of trees, as (row, 1)."""
        table = _TreeTable()
        for tree in ensemble.trees:
            table.add(tree)
        if not ensemble.trees:
            table.add_leaf(0.0)
        tensor = self._onnx.numpy_helper.from_array
        return self.node(
            "TreeEnsemble",
            [self._whole_categories(ensemble)],
            domain="ai.onnx.ml",
            aggregate_function=SUM,
            post_transform=0,
            n_targets=1,
            tree_roots=table.roots,
            nodes_featureids=table.features,
            nodes_modes=tensor(np.array(table.modes, dtype=np.uint8)),
            nodes_splits=tensor(np.array(table.splits)),
            nodes_truenodeids=table.true_ids,
            nodes_trueleafs=table.true_leaves,
            nodes_falsenodeids=table.false_ids,
            nodes_falseleafs=table.false_leaves,
            nodes_missing_value_tracks_true=table.missing_true,
            leaf_targetids=[0] * len(table.weights),
            leaf_weights=tensor(np.array(table.weights)),
            **({"membership_values": tensor(np.array(table.members))} if table.members else {}),
        )

    def _whole_categories(self, ensemble: Ensemble) -> str:
        """Features, with NaN for values of categorical ones that are no whole numbers.

        Such a value is no category and goes where missing values go; runtimes that look sets up by bits cut off its
        fraction and take it for one.
        """
        categorical = sorted({feature for tree in ensemble.trees for feature in tree.categories})
        if not categorical:
            return "features"
        chosen = np.isin(np.arange(len(ensemble.features)), categorical)[None, :]
        self._constants["categorical"] = self._onnx.numpy_helper.from_array(chosen, "categorical")
        whole = self.node("Equal", ["features", self.node("Floor", ["features"])])
        broken = self.node("And", [self.node("Not", [whole]), "categorical"])
        return self.node("Where", [broken, self.constant(math.nan), "features"])


class _TreeTable:
    """Columns of a `TreeEnsemble`: inner nodes and leaves of all trees, each numbered through."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.features: list[int] = []
        self.modes: list[int] = []
        self.splits: list[float] = []
        self.members: list[float] = []
        self.missing_true: list[int] = []
        self.true_ids: list[int] = []
        self.true_leaves: list[int] = []
        self.false_ids: list[int] = []
        self.false_leaves: list[int] = []
        self.weights: list[float] = []

    def add(self, tree: Tree) -> None:
        """Add a tree."""
        nodes, outputs = tree.nodes, tree.outputs
        inner = nodes["feature"] >= 0
        if not inner[0]:
            self.add_leaf(float(outputs[0]))
            return
        first_node, first_leaf = len(self.features), len(self.weights)
        number = np.where(inner, first_node + np.cumsum(inner) - 1, first_leaf + np.cumsum(~inner) - 1)
        self.roots.append(first_node)
        for i in np.flatnonzero(inner):
            node, true_left = nodes[i], True
            self.features.append(int(node["feature"]))
            self.splits.append(float(node["threshold"]))
            if tree.is_set[i]:
                members, true_left = tree.members(int(i))
                self.members += [*members.tolist(), math.nan]
            self.modes.append(BRANCH_MEMBER if tree.is_set[i] else BRANCH_LT)
            self.missing_true.append(int(node["missing_left"] and not tree.is_set[i]))
            yes, no = (node["left"], node["right"]) if true_left else (node["right"], node["left"])
            self.true_ids.append(int(number[yes]))
            self.true_leaves.append(int(not inner[yes]))
            self.false_ids.append(int(number[no]))
            self.false_leaves.append(int(not inner[no]))
        self.weights += outputs[~inner].tolist()

    def add_leaf(self, output: float) -> None:
        """Add a tree without a cut: the format needs one, so both sides of it end in the same leaf."""
        self.roots.append(len(self.features))
        leaf = len(self.weights)
        for column, value in (
            (self.features, 0),
            (self.modes, BRANCH_LT),
            (self.missing_true, 1),
            (self.true_ids, leaf),
            (self.true_leaves, 1),
            (self.false_ids, leaf),
            (self.false_leaves, 1),
        ):
            column.append(value)
        self.splits.append(0.0)
        self.weights.append(output)
