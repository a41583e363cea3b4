"""Scores of events by sums of trees on a device: the same numbers as on the CPU."""

from __future__ import annotations

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.trees.device.device import Device
from qbdt.trees.device.encoding import SOURCE, DeviceEncoder
from qbdt.trees.ensemble import Ensemble

__all__ = ["score_on_device"]

TREE_NODE = np.dtype([("feature", "i2"), ("cut", "u1"), ("last", "u1"), ("left", "i2"), ("right", "i2")])
"""`TreeNode` in values.cu."""

THREADS = 128
"""Rows that a block scores at a time: the codes of as many fit its shared memory."""

WIDE = 1024
"""Codes of a row above which a block scores fewer rows."""


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
    trees = (np.int32(len(packed.roots)), device.upload(packed.roots.astype(np.int32)))
    given = (*trees, device.upload(nodes.view(np.uint8)), device.upload(packed.outputs))
    # Columns: features, padded to whole words, then sets of categories.
    for begin, n, codes in encoder.encode_rows(events):
        for column, (feature, table) in enumerate(packed.sets, packed.n_columns):
            goes_right = device.upload(np.frombuffer(table, dtype=np.uint8))
            marked = (goes_right, np.int32(feature), np.int32(column), np.int64(n), np.int64(stride), codes)
            kernels.launch("mark_set", (4 * device.n_units, 1, 1), marked)
        out = device.zeros(n, np.float64)
        arguments = (codes, np.int64(n), np.int32(stride), *given, out)
        threads = THREADS if stride <= WIDE else 32
        kernels.launch("score_rows", (16 * device.n_units, 1, 1), arguments, threads * stride, threads)
        scores[begin : begin + n] = device.download(out)
    return scores
