"""From generated events to expected ones: luminosity × cross section / generated events.

The number of generated events, or their sum of weights, is given, or is summed over all files of a sample before any
selection: over a tree, such as NanoAOD's `Runs`, or over a histogram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.schema import Generated
from qbdt.data import Expression
from qbdt.data.readers import read_histogram, sum_expression
from qbdt.errors import DataError
from qbdt.tables import Table

PB_TO_FB = 1000.0
"""Cross sections are in pb, luminosities in fb⁻¹."""


@dataclass(frozen=True)
class Normalisation:
    """Factor on the weights of a sample."""

    # process, era: the sample, and the era where there are some
    process: str
    era: str
    # luminosity, cross_section: in fb⁻¹ and pb
    luminosity: float
    cross_section: float
    generated: float  # Generated events, or the sum of their weights

    @property
    def factor(self) -> float:
        """Expected events for each unit of generated weight."""
        return PB_TO_FB * self.luminosity * self.cross_section / self.generated

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "factor": self.factor}


def normalisation_table(found: Sequence[Normalisation]) -> Table:
    """Normalisations for people; no rows where there are none."""
    eras = any(one.era for one in found)
    header = ("luminosity (fb⁻¹)", "cross section (pb)", "generated", "events per unit of weight")
    rows = []
    for n in found:
        numbers = (f"{n.luminosity:g}", f"{n.cross_section:g}", f"{n.generated:,.6g}", f"{n.factor:.5g}")
        rows.append((n.process, *[n.era] * eras, *numbers))
    return Table("Normalisation", ("process", *["era"] * eras, *header), tuple(rows))


def count_generated(generated: Generated, files: Sequence[str], tree: str | None) -> float:
    """Sum of generated events, or of their weights, over all files of a sample.

    `tree` is the tree of the events, where the sum does not name another.
    """
    if generated.number is not None:
        return generated.number
    what = f"the sum of {generated.sum or generated.histogram} over {len(files)} file{'s' * (len(files) > 1)}"
    total = float(np.sum([_count_in_file(generated, path, tree) for path in files]))
    if not np.isfinite(total) or total <= 0:
        raise DataError(f"generated: {what} is {total:g}: a positive number is needed")
    return total


def _count_in_file(generated: Generated, path: str, tree: str | None) -> float:
    changed = 0 if "://" in path else Path(path).stat().st_mtime_ns
    return _count(path, changed, generated.model_dump_json(), generated.tree or tree)


@lru_cache(maxsize=100_000)
def _count(path: str, changed: int, generated: str, tree: str | None) -> float:
    """Sum over one file, kept as long as the file does not change: partitions and variations ask again."""
    wanted = Generated.model_validate_json(generated)
    if wanted.histogram is not None:
        values = read_histogram(path, wanted.histogram)
        if wanted.bin is not None and wanted.bin > values.size:
            raise DataError(f"{path}: generated: bin {wanted.bin} of {wanted.histogram}, which has {values.size}")
        return float(values.sum() if wanted.bin is None else values[wanted.bin - 1])
    assert wanted.sum is not None
    return sum_expression(path, tree, Expression(wanted.sum))
