"""A device with memory of its own: arrays there, and kernels that run on them.

Kernels are C++ that a GPU's compiler and, in tests, that of the CPU understand (`prelude.cuh`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from qbdt.errors import ConfigError, DeviceError, require

DeviceArray: TypeAlias = Any
"""An array in the memory of a device; slices of it are arrays too."""

HERE = Path(__file__).parent

THREADS = 512
"""Threads of a block, where a kernel does not ask for more."""

FREE_SHARED = 48 << 10
"""Bytes of shared memory that a block gets without asking."""

SMALL = 1 << 14
"""Bytes up to which arrays go out through memory that the device reads directly."""

STAGED = 1 << 20
"""Bytes up to which arrays come back through memory that the device writes to directly: half the time."""


class Kernels(Protocol):
    """Kernels of one source."""

    def launch(
        self, name: str, blocks: tuple[int, int, int], arguments: Sequence[Any], shared: int = 0, threads: int = THREADS
    ) -> None:
        """Run a kernel after all that were launched before; numbers among the arguments have numpy's types.

        `shared` are the bytes that threads of a block share, `threads` how many a block has: a power of two.
        """


class Device(Protocol):
    """Memory and kernels of a device."""

    n_units: int
    """Blocks that it runs at the same time."""

    @property
    def n_free(self) -> int:
        """Bytes of its memory that can be used now."""

    def owns(self, value: object) -> bool:
        """Whether something is an array in its memory."""

    def wait(self) -> None:
        """Wait for all that this thread has launched."""

    def zeros(self, size: int, dtype: DTypeLike) -> DeviceArray:
        """Return an array of zeros."""

    def upload(self, array: NDArray[Any]) -> DeviceArray:
        """Copy an array to the device."""

    def download(self, array: DeviceArray) -> NDArray[Any]:
        """Copy an array from the device, after all kernels that were launched."""

    def pin(self, array: DeviceArray) -> NDArray[Any]:
        """Copy an array to new ordinary memory that the device reads and writes directly."""

    def copy_out(self, array: DeviceArray, out: NDArray[Any]) -> None:
        """Copy an array to such memory, where it is after a `wait`."""

    def copy_in(self, pinned: NDArray[Any], out: DeviceArray) -> None:
        """Copy an array from such memory, which stays as it is until a `wait`."""

    def compile(self, source: Path) -> Kernels:
        """Kernels of a source file."""

    def join(self, launch: Callable[[], None]) -> Callable[[], None]:
        """Join the launches of a function, which has the same arguments each time, to one: a CUDA graph.

        It has been called before. Nothing is launched yet.
        """


def kernel_source(path: Path) -> str:
    """Return the text of a source file, with the definitions that all kernels share in front."""
    return "\n".join(one.read_text(encoding="utf-8") for one in (HERE / "prelude.cuh", path))


def open_device(name: str | None) -> Device | None:
    """Device of a name: "cuda", "cuda:1"; None, the CPU, for None.

    Raises
    ------
    ConfigError
        Where there is no such name.
    DeviceError
        Where there is no such device, or its driver is missing.
    """
    if name is None:
        return None
    kind, _, number = str(name).partition(":")
    if kind != "cuda" or not (number or "0").isdecimal():
        raise ConfigError(f"device={name!r}: must be None for the CPU, 'cuda', or 'cuda:1' for the second GPU")
    return _open_cuda(int(number or 0))


@cache
def _open_cuda(number: int) -> Device:
    cupy = require("cupy", "device='cuda'")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f"device='cuda': no GPU can be used here: {error}") from None
    if number >= count:
        raise DeviceError(f"device='cuda:{number}': there are {count} GPUs, counted from 0")
    return CudaDevice(cupy, number)


class _Lane(threading.local):
    """Resources of one thread: a stream, whose kernels run beside those of others, and pinned memory.

    The main thread has the device's own stream. No stream waits for another: see `Device.wait`.
    """

    def __init__(self, cupy: Any, device: Any) -> None:
        self.device = device
        self.next = 0
        with device:
            if threading.current_thread() is not threading.main_thread():
                self.stream = cupy.cuda.Stream(non_blocking=True)
                self.stream.use()
            self.staged, self.ring = (_pin(cupy, STAGED) for _ in "ab")


def _pin(cupy: Any, n_bytes: int) -> NDArray[np.uint8]:
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(n_bytes), np.uint8, n_bytes)


class CudaDevice:
    """A GPU, through CuPy."""

    def __init__(self, cupy: Any, number: int) -> None:
        self._cupy = cupy
        device = cupy.cuda.Device(number)
        self.n_units = int(device.attributes["MultiProcessorCount"])
        self._lane = _Lane(cupy, device)
        self._compiled: dict[Path, _CudaKernels] = {}

    @property
    def n_free(self) -> int:
        """Bytes that can be used: those of CuPy's pool, up to its limit (CUPY_GPU_MEMORY_LIMIT), and beside it."""
        device, pool = self._lane.device, self._cupy.get_default_memory_pool()
        with device:
            free = device.mem_info[0] + pool.free_bytes()
            return int(min(free, pool.get_limit() - pool.used_bytes()) if pool.get_limit() else free)

    def owns(self, value: object) -> bool:
        """Whether something is an array of CuPy."""
        return isinstance(value, self._cupy.ndarray)

    def wait(self) -> None:
        """Wait for the stream of this thread."""
        with self._lane.device:
            self._cupy.cuda.get_current_stream().synchronize()

    def zeros(self, size: int, dtype: DTypeLike) -> DeviceArray:
        """Return an array of zeros."""
        with self._lane.device:
            return self._cupy.zeros(size, dtype=dtype)

    def upload(self, array: NDArray[Any]) -> DeviceArray:
        """Copy an array to the device."""
        with self._lane.device:
            if array.nbytes > SMALL or array.nbytes == 0:
                return self._cupy.asarray(np.ascontiguousarray(array))
            return self._upload_small(np.ascontiguousarray(array))

    def _upload_small(self, array: NDArray[Any]) -> DeviceArray:
        """Copy a small array by way of memory that the device reads directly: a tenth of the time."""
        lane = self._lane
        if lane.next + SMALL > STAGED:
            self.wait()  # all that was put there before has been read
            lane.next = 0
        staged = lane.ring[lane.next : lane.next + array.nbytes]
        lane.next += -(-array.nbytes // 64) * 64
        staged[:] = array.reshape(-1).view(np.uint8)
        out = self._cupy.empty(array.shape, array.dtype)
        self.copy_in(staged, out)
        return out

    def download(self, array: DeviceArray) -> NDArray[Any]:
        """Copy an array from the device."""
        with self._lane.device:
            if array.nbytes > STAGED or array.nbytes == 0:
                return np.asarray(array.get())
            staged = self._lane.staged[: array.nbytes].view(array.dtype).reshape(array.shape)
            array.get(out=staged)
            return np.array(staged)

    def pin(self, array: DeviceArray) -> NDArray[Any]:
        """Copy an array to new pinned memory."""
        with self._lane.device:
            memory = _pin(self._cupy, max(array.nbytes, 1))[: array.nbytes]
        pinned: NDArray[Any] = memory.view(array.dtype).reshape(array.shape)
        self.copy_out(array, pinned)
        return pinned

    def copy_out(self, array: DeviceArray, out: NDArray[Any]) -> None:
        """Copy an array to pinned memory."""
        with self._lane.device:
            array.data.copy_to_host_async(out.ctypes.data, out.nbytes)

    def copy_in(self, pinned: NDArray[Any], out: DeviceArray) -> None:
        """Copy an array from pinned memory."""
        with self._lane.device:
            out.data.copy_from_host_async(pinned.ctypes.data, pinned.nbytes)

    def compile(self, source: Path) -> Kernels:
        """Kernels of a source file, compiled the first time they are asked for."""
        if source not in self._compiled:
            options = ("--std=c++17", "--fmad=false")
            module = self._cupy.RawModule(code=kernel_source(source), options=options)
            self._compiled[source] = _CudaKernels(module, self._lane)
        return self._compiled[source]

    def join(self, launch: Callable[[], None]) -> Callable[[], None]:
        """Return launches as a graph: a launch from Python takes longer than a short kernel runs."""
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with self._lane.device, stream:
            stream.begin_capture()
            launch()
            graph = stream.end_capture()

        def launch_graph() -> None:
            with self._lane.device:
                graph.launch()

        return launch_graph


class _CudaKernels:
    """Compiled kernels of one source."""

    def __init__(self, module: Any, lane: _Lane) -> None:
        self._module, self._lane = module, lane
        self._known: dict[str, Any] = {}

    def launch(
        self, name: str, blocks: tuple[int, int, int], arguments: Sequence[Any], shared: int = 0, threads: int = THREADS
    ) -> None:
        """Run a kernel."""
        with self._lane.device:
            kernel = self._known.get(name)
            if kernel is None:
                kernel = self._module.get_function(name)
                if shared > FREE_SHARED:
                    kernel.max_dynamic_shared_size_bytes = shared
                self._known[name] = kernel
            kernel(blocks, (threads,), tuple(arguments), shared_mem=shared)
