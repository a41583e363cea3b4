"""How many events an analysis will read, from the first rows of some of its files: nothing else is read.

Every event of a probe has as its weight the number of events that it stands for. So sums of weights count events,
whatever regions, eras and backgrounds from data make of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.event_reader import EventReader, VariedColumns
from qbdt.analysis.input_files import name_in_errors
from qbdt.analysis.loader import fold_rule
from qbdt.analysis.region_events import RegionEvents, list_models, name_training_regions, require_filled
from qbdt.analysis.schema import Analysis
from qbdt.analysis.transfer_ratio import Transfer
from qbdt.data import Events, Tally
from qbdt.data.readers import Request, Share, expand, read_request
from qbdt.progress import silent

PROBED_ROWS = 10_000
"""Rows of a file that are read: a selection that keeps one in ten is known to 3 %."""

PROBED_FILES = 2
"""Files of a sample, or of a variation, that are opened; the others have rows in proportion to their size."""


def probe_events(analysis: Analysis, folder: Path) -> RegionEvents:
    """First events of every sample and variation; their weights are the numbers of events that they stand for.

    A sample or a region that was read to its end and has no event is refused here, before anything is said or done.
    """
    reader = _ProbeReader(analysis, folder, fold_rule(analysis), silent)
    found = RegionEvents(reader.dataset(), analysis.regions)
    if not reader.cut_short:
        require_filled(found.count_backgrounds(), analysis.regions)
    for model in list_models(analysis.regions):
        with name_in_errors(name_training_regions(analysis.regions, model)):
            for sample in found.training(model).samples:
                if reader.has_read(sample.name):
                    Tally.of(f"sample {sample.name}", sample.role, sample.events).require_usable()
    return found


class _ProbeReader(EventReader):
    """Reads the first rows of some files; notes which processes have more rows than were read, in any era."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.cut_short: set[str] = set()

    def has_read(self, process: str) -> bool:
        """Whether all rows of a process were read; one that is made of others is not looked into."""
        made = self._analysis.samples[process].from_data is not None
        return not self.cut_short if made else process not in self.cut_short

    def _with(self, analysis: Analysis) -> EventReader:
        reader = super()._with(analysis)
        assert isinstance(reader, _ProbeReader)
        reader.cut_short = self.cut_short
        return reader

    def transfers(self) -> list[Transfer]:
        """Return none: events are counted, not weighted."""
        return []

    def _read(
        self, what: str, process: str, paths: Sequence[str], tree: str | None, request: Request
    ) -> tuple[Events, VariedColumns]:
        with name_in_errors(what):
            files = [file for path in paths for file in expand(path, self._folder)]
            some = files[:: -(-len(files) // PROBED_FILES)]
            in_all = _sum_sizes(files) / max(_sum_sizes(some), 1)
            found = [self._read_first_rows(process, path, tree, request) for path in some]
            weights = [np.full(events.n_rows, in_all * stands_for) for events, _, stands_for in found]
            if len(some) < len(files) or any(stands_for > 1 for _, _, stands_for in found):
                self.cut_short.add(process)
            columns = {name: np.concatenate([own[name] for _, own, _ in found]) for name in found[0][1]}
            events = Events.concatenate([events for events, _, _ in found])
        return events.with_weight(np.concatenate(weights)), columns

    def _read_first_rows(
        self, process: str, path: str, tree: str | None, request: Request
    ) -> tuple[Events, VariedColumns, float]:
        """First events of a file, columns of other weights, and how many rows of the file each row stands for."""
        with self._open(process, path, tree, Share()) as whole:
            n_rows = whole.n_rows
            if n_rows is None:  # the format does not say
                n_rows = sum(len(next(iter(chunk.values()))) for chunk in whole.chunks(whole.names[:1]))
            share = Share(Fraction(0), min(Fraction(1), Fraction(PROBED_ROWS, max(n_rows, 1))))
            with self._open(process, path, tree, share) as table:
                first = _FirstRows(table if table.n_rows else whole)  # some formats are not divided so finely
                events, columns = read_request([nullcontext(first)], request)
        return events, columns, n_rows / max(first.n_read, 1)


class _FirstRows:
    """The first rows of a table; a `TableFile`."""

    def __init__(self, table: Any) -> None:
        self.label, self.names, self.first_row, self.n_rows = table.label, table.names, 0, None
        self._table, self.n_read = table, 0

    def chunks(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """One piece."""
        for chunk in self._table.chunks(columns):
            first = {name: values[:PROBED_ROWS] for name, values in chunk.items()}
            self.n_read = len(next(iter(first.values())))
            yield first
            return


def _sum_sizes(files: Sequence[str]) -> int:
    """Bytes of files; those elsewhere count as one."""
    return sum(Path(path).stat().st_size if Path(path).is_file() else 1 for path in files)
