"""Training on more events than fit in memory: binned rows in files that are mapped, passed over part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qbdt.boosting.parts import Build, EventsInParts, Part, Survey, start_in_parts, survey_part
from qbdt.boosting.rows import Start
from qbdt.boosting.settings import Settings
from qbdt.store import Answers, Call, added
from qbdt.store.group import answers_of
from qbdt.store.mapped import MappedArrays, Scratch
from qbdt.workers import Workers

__all__ = ["OutOfCore"]


@dataclass(frozen=True, eq=False)
class OutOfCore(EventsInParts):
    """Events whose binned rows are kept on disk during a training.

    Parameters
    ----------
    parts, folds
        As for `EventsInParts`.
    folder
        Where the binned rows are kept while the training lasts: about 52 bytes a row with up to 32 features.
    """

    folder: Path = Path()

    def start(self, settings: Settings, workers: Workers) -> Start:
        """Read, check and bin them."""
        return start_in_parts(_Disk(self.parts, self.folder, workers), settings, workers)


class _Disk:
    """Partitions in mapped files."""

    def __init__(self, parts: Sequence[Part], folder: Path, workers: Workers) -> None:
        self._parts, self._folder, self._workers = parts, folder, workers
        self._partitions: list[tuple[object, MappedArrays]] = []

    def survey(self, settings: Settings) -> Survey:
        """Pass over all parts, one in memory at a time."""
        found: Survey | None = None
        for number, part in enumerate(self._parts):
            one = survey_part(number, part(), settings, self._workers)
            found = one if found is None else found.merged(one)
        assert found is not None
        return found

    def build(self, build: Build) -> None:
        """Bin all parts, one in memory at a time."""
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
