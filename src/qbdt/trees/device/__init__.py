"""Rows and scores on a GPU.

In come segments of events; out go their bin codes in the memory of a device (`DeviceRows`), the nodes that rows are in,
and histograms of these: the same integers as on the CPU. Kernels are in `*.cu`.
"""

from qbdt.trees.device.device import Device, DeviceArray, DeviceMemory, Kernels, kernel_source, open_device
from qbdt.trees.device.rows import QUAD, THREADS, DeviceRows

__all__ = [
    "QUAD",
    "THREADS",
    "Device",
    "DeviceArray",
    "DeviceMemory",
    "DeviceRows",
    "Kernels",
    "kernel_source",
    "open_device",
]
