"""Scores of events by sums of trees on a device: the same numbers as on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import MISSING, Floats
from qbdt.data import Events
from qbdt.trees.binning import Binning
from qbdt.trees.device.device import Device, DeviceArray
from qbdt.trees.device.encoding import CHUNK, SOURCE, DeviceEncoder
from qbdt.trees.device.memory import DeviceMemory
from qbdt.trees.device.rows import FeatureGroups
from qbdt.trees.ensemble import Ensemble

TREE_NODE = np.dtype([("feature", "i2"), ("cut", "u1"), ("last", "u1"), ("left", "i2"), ("right", "i2")])
"""`TreeNode` in values.cu."""

THREADS = 128
"""Rows that a block scores at a time: the codes of as many fit its shared memory."""

WIDE = 1024
"""Codes of a row above which a block scores fewer rows."""


@dataclass(frozen=True, eq=False)
class DeviceEnsemble(Ensemble):
    """Trees whose cuts are edges of a binning, for events of tables whose codes are on a device.

    It serves a training, which scores its own events: only which rows they are goes to the device.
    """

    memory: DeviceMemory
    codes: Binning

    def score(self, events: Events, n_threads: int | None = None) -> Floats:
        """Score of every event."""
        if not self.trees or any(tree.is_set.any() for tree in self.trees):
            return super().score(events, n_threads)  # by the CPU where categories divide
        device, stride = self.memory.device, FeatureGroups(len(self.codes.features)).stride
        scores = np.zeros(events.n_rows)
        for begin in range(0, events.n_rows, CHUNK):
            chunk = events[begin : begin + CHUNK]
            codes = device.zeros(chunk.n_rows * stride, np.uint8)
            self.memory.write_codes(chunk, self.codes, stride, codes)
            scores[begin : begin + CHUNK] = _score(device, self._on_device, codes, chunk.n_rows, stride)
        return scores

    @cached_property
    def _on_device(self) -> tuple[Any, ...]:
        """Arguments of `score_rows` that describe the trees."""
        nodes = np.concatenate([tree.nodes for tree in self.trees])
        packed = np.zeros(len(nodes), dtype=TREE_NODE)
        packed["feature"], packed["left"], packed["right"] = (nodes[name] for name in ("feature", "left", "right"))
        packed["last"] = np.where(nodes["missing_left"], MISSING - 1, MISSING)
        for feature, edges in enumerate(self.codes.edges):
            own = nodes["feature"] == feature
            packed["cut"][own] = np.searchsorted(edges, nodes["threshold"][own]) + 1
        roots = np.cumsum([0, *(len(tree.nodes) for tree in self.trees[:-1])])
        outputs = np.concatenate([tree.outputs for tree in self.trees])
        return _upload(self.memory.device, roots, packed, outputs)


def _upload(device: Device, roots: NDArray[Any], nodes: NDArray[Any], outputs: Floats) -> tuple[Any, ...]:
    trees = (np.int32(len(roots)), device.upload(roots.astype(np.int32)))
    return (*trees, device.upload(nodes.view(np.uint8)), device.upload(outputs))


def _score(device: Device, trees: tuple[Any, ...], codes: DeviceArray, n: int, stride: int) -> Floats:
    """Score of n rows by their codes."""
    out = device.zeros(n, np.float64)
    threads = THREADS if stride <= WIDE else 32
    arguments = (codes, np.int64(n), np.int32(stride), *trees, out)
    blocks = (16 * device.n_units, 1, 1)
    device.compile(SOURCE).launch("score_rows", blocks, arguments, threads * stride, threads)
    return device.download(out)


def score_on_device(ensemble: Ensemble, events: Events, device: Device) -> Floats:
    """Score of every event.

    Trees are added in the same order as on the CPU, so the sums have the same bits.
    """
    scores = np.zeros(events.n_rows)
    if not ensemble.trees:
        return scores
    packed = ensemble.packed
    stride = max(8, -(-(packed.n_columns + len(packed.sets)) // 8) * 8)
    encoder = DeviceEncoder(device, packed.binning, stride)
    kernels = device.compile(SOURCE)
    nodes = np.empty(len(packed.features), dtype=TREE_NODE)
    nodes["feature"], nodes["cut"], nodes["last"] = packed.features, packed.cuts, packed.lasts
    nodes["left"], nodes["right"] = packed.lefts, packed.rights
    trees = _upload(device, packed.roots, nodes, packed.outputs)
    # Columns: features, padded to whole words, then sets of categories.
    for begin, n, codes in encoder.encode_rows(events):
        for column, (feature, table) in enumerate(packed.sets, packed.n_columns):
            goes_right = device.upload(np.frombuffer(table, dtype=np.uint8))
            marked = (goes_right, np.int32(feature), np.int32(column), np.int64(n), np.int64(stride), codes)
            kernels.launch("mark_set", (4 * device.n_units, 1, 1), marked)
        scores[begin : begin + n] = _score(device, trees, codes, n, stride)
    return scores
