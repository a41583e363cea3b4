"""Rows and scores on a GPU.

In come segments of events; out go their bin codes in the memory of a device (`DeviceRows`), the nodes that rows are in,
and histograms of these: the same integers as on the CPU; and scores of events (`score_on_device`). Kernels are in
`*.cu`.
"""

from qbdt.trees.device.device import Device, DeviceArray, Kernels, kernel_source, open_device
from qbdt.trees.device.memory import DeviceMemory
from qbdt.trees.device.rows import QUAD, THREADS, DeviceRows, row_bytes
from qbdt.trees.device.scoring import DeviceEnsemble, score_on_device
from qbdt.trees.device.streaming import Slot, Turn

__all__ = [
    "QUAD",
    "THREADS",
    "Device",
    "DeviceArray",
    "DeviceEnsemble",
    "DeviceMemory",
    "DeviceRows",
    "Kernels",
    "Slot",
    "Turn",
    "kernel_source",
    "open_device",
    "row_bytes",
    "score_on_device",
]
