"""Checks of eras and families of weights, beside those of the events themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.loader import load_eras
from qbdt.analysis.schema import Analysis
from qbdt.data.checks import Finding
from qbdt.data.families import FamilyBasis
from qbdt.progress import Progress, silent

YIELD_FACTOR = 1.5
"""Ratio of yields per luminosity of one process in two eras from which on it is worth a question: conditions of running
change them by 10 or 20 %."""

LEAST_ENTRIES = 100.0
"""Effective entries in an era, at least: their yield is then known to 10 %."""


def check_families(families: Mapping[str, FamilyBasis]) -> Iterator[Finding]:
    """Families whose weights are the same for all members."""
    for name, basis in families.items():
        for process in basis.size:
            if process not in basis.kept:
                message = f"its {basis.n_weights} weights do not vary: is the branch filled?"
                yield Finding("family", f"{name}, {process}", message)


def check_eras(
    analysis: Analysis, folder: str | Path, hidden: Collection[str] = (), progress: Progress = silent
) -> Iterator[Finding]:
    """Processes whose yield per luminosity is another in one era; only weights and the selection are read."""
    light = {name: era.luminosity for name, era in analysis.eras.items() if era.luminosity is not None}
    if len(light) < 2:
        return
    samples = {name: sample for name, sample in analysis.samples.items() if name not in hidden}
    off: dict[str, Any] = {"features": [], "systematics": {}, "folds": None, "regions": {}, "missing": []}
    bare = analysis.model_copy(update={**off, "samples": samples})
    rates: dict[str, dict[str, float]] = {}
    for era, dataset in load_eras(bare, folder, progress).items():
        for sample in dataset.samples:
            if era in light and sample.events.effective_entries > LEAST_ENTRIES:
                rates.setdefault(sample.name, {})[era] = sample.events.total / light[era]
    for process, found in rates.items():
        yield from _compare(process, {era: rate for era, rate in found.items() if rate > 0})


def _compare(process: str, rates: Mapping[str, float]) -> Iterator[Finding]:
    if len(rates) < 2:
        return
    middle = float(np.exp(np.median(np.log(list(rates.values())))))
    odd = max(rates, key=lambda era: abs(np.log(rates[era] / middle)))
    others = [rate for era, rate in rates.items() if era != odd]
    other = float(np.exp(np.mean(np.log(others))))
    if abs(np.log(rates[odd] / other)) > np.log(YIELD_FACTOR):
        message = f"{rates[odd]:.4g} events per fb⁻¹ in {odd}, {other:.4g} in the other eras: a weight or a file?"
        yield Finding("eras", process, message)
