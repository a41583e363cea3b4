"""Compile what most tests call, once: `python -m tests.compile_kernels`.

Tests run in several processes, some of which start workers of their own. With an empty cache each would compile the
same kernels at the same time, for longer than many tests take.
"""

import tempfile
from pathlib import Path

import numpy as np

from qbdt import QBDTRegressor
from tests.frozen.cases import METHODS, sample, trainings

COMPILED = ("plain", "all sources", "everything", "monotonic", "3 partitions on disk", "modulo folds")
"""Trainings of each method that together call all kernels but a few."""


def main() -> None:
    """Train small models in all ways that have kernels of their own."""
    known = trainings()
    for name in (f"{method}: {way}" for method in METHODS for way in COMPILED):
        with tempfile.TemporaryDirectory() as folder:
            known[name](Path(folder))
    rows = sample(600)
    QBDTRegressor(n_trees=3).fit(np.column_stack(list(rows.table.values())), rows.table["mass"])


if __name__ == "__main__":
    main()
