"""A device in ordinary memory: the kernels' source compiled for the CPU, one thread per block, block after block."""

import ctypes
import hashlib
import subprocess
import tempfile
import threading
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from qbdt.trees.device import kernel_source

ONE_AT_A_TIME = threading.Lock()
"""Threads launch kernels at the same time; those of the CPU have one place and one shared memory."""

OPTIONS = ["-O1", "-ffp-contract=off", "-std=c++17", "-shared", "-fPIC", "-w"]


class HostArray(np.ndarray):
    """An array that is on the device; ordinary ones are not."""


class HostDevice:
    """What `CudaDevice` is, without a GPU."""

    n_units = 3
    n_free = 1 << 40

    def owns(self, value):
        return isinstance(value, HostArray)

    def wait(self):
        pass

    def zeros(self, size, dtype):
        return np.zeros(size, dtype=dtype).view(HostArray)

    def upload(self, array):
        return np.array(array, order="C").view(HostArray)

    def download(self, array):
        assert self.owns(array)
        return np.array(array)

    def pin(self, array):
        return self.download(array)

    def copy_out(self, array, out):
        out[...] = self.download(array)

    def copy_in(self, pinned, out):
        assert self.owns(out)
        out[...] = pinned

    def compile(self, source):
        return HostKernels(source)

    def join(self, launch):
        return launch


class HostKernels:
    def __init__(self, source):
        self._library = compile_for_host(source)

    def launch(self, name, blocks, arguments, shared=0, threads=0):
        assert shared <= 227 * 1024
        assert 0 <= threads <= 1024
        assert threads & (threads - 1) == 0
        converted = [as_argument(one) for one in arguments]
        kernel = getattr(self._library, name)
        kernel.restype = None
        with ONE_AT_A_TIME:
            for place in product(*(range(n) for n in blocks)):
                self._library.place_block(*place, *blocks)
                kernel(*converted)


def as_argument(value):
    if isinstance(value, np.ndarray):
        assert isinstance(value, HostArray)
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    kinds = {np.int32: ctypes.c_int, np.int64: ctypes.c_longlong, np.float64: ctypes.c_double}
    return kinds[type(value)](value.item())


@cache
def compile_for_host(source: Path):
    text = "#define QBDT_ON_HOST\n" + kernel_source(source)
    folder = Path(tempfile.gettempdir()) / f"qbdt-host-kernels-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    library = folder / f"{source.stem}.so"
    if not library.exists():
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            code, built = Path(place) / "kernels.cpp", Path(place) / "kernels.so"
            code.write_text(text)
            subprocess.run(["g++", *OPTIONS, "-o", built, code], check=True)
            built.replace(library)
    return ctypes.CDLL(str(library))
