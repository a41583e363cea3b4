"""Training on more events than fit in memory: binned rows in files that are mapped, passed over part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qbdt.threads import Workers
from qbdt.training.partitions.calls import Answers, Call, added
from qbdt.training.partitions.group import answers_of
from qbdt.training.partitions.mapped_arrays import MappedArrays, Scratch
from qbdt.training.partitions.partition import Builder, EventsInParts, Here, Part, PartHosts

__all__ = ["OutOfCore"]


@dataclass(frozen=True, eq=False)
class OutOfCore(EventsInParts):
    """Events whose binned rows are kept on disk during a training.

    Parameters
    ----------
    parts, folds
        As for `EventsInParts`.
    folder
        Where the binned rows are kept while the training lasts: about 52 bytes a row with up to 32 features;
        docs/cluster.md has the numbers of the profiled method.
    """

    folder: Path = Path()

    def hosts(self, workers: Workers) -> PartHosts:
        """Return what keeps the parts on disk."""
        return _Disk(self.parts, self.folder, workers)


class _Disk(Here):
    """Partitions in mapped files."""

    def __init__(self, parts: Sequence[Part], folder: Path, workers: Workers) -> None:
        super().__init__(parts, workers)
        self._folder = folder
        self._partitions: list[tuple[object, MappedArrays]] = []

    def build(self, build: Builder) -> None:
        """Bin all parts, one in memory at a time."""
        self._partitions.clear()
        scratch = Scratch()
        for number, part in enumerate(self._parts):
            arrays = MappedArrays(self._folder, scratch)
            self._partitions.append((build(number, part(), self._workers, arrays), arrays))

    def run(self, calls: Sequence[Call]) -> Answers:
        """Pass over all partitions in the order they lie on disk; the next one is read while one is worked on."""
        together: Answers | None = None
        for (partition, _), (_, ahead) in zip(
            self._partitions, [*self._partitions[1:], self._partitions[0]], strict=True
        ):
            ahead.fetch()
            together = added(calls, together, answers_of(partition, calls))
        assert together is not None
        return together
