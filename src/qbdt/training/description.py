"""A training as tables: what it is, what it was trained on, which features it uses, what it expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from qbdt.tables import Table, counted

if TYPE_CHECKING:
    from qbdt.training.paper.boosting import Training

__all__ = ["training_headline", "training_tables"]


def training_headline(training: Training) -> str:
    """The training in one line."""
    settings = training.settings
    parts = (
        f"{counted(len(training.ensemble.trees), 'tree')} of up to {settings.n_leaves} leaves",
        counted(len(training.ensemble.features), "feature"),
        counted(len(training.data.get("systematics", ())), "systematic source"),
    )
    return ", ".join(parts) + (f"; {training.stopped}" if training.stopped else "")


def training_tables(training: Training) -> Iterator[Table]:
    """Tables of a training, the most telling ones first."""
    gains = training.ensemble.gains()
    share = 100 * gains / max(float(gains.sum()), 1e-300)
    order = np.argsort(-share, kind="stable")
    rows = tuple((training.ensemble.features[i], f"{share[i]:.1f}") for i in order)
    yield Table("Share of each feature in the gain (%)", ("feature", "share"), rows)
    if training.expectation is not None:
        yield training.expectation.to_table()
    samples = training.data.get("samples", ())
    counted = tuple((s["name"], s["role"], f"{s['rows']:,}", f"{s['yield']:,.5g}") for s in samples)
    yield Table("Trained on", ("process", "role", "rows", "yield"), counted)
    sources = training.data.get("systematics", ())
    yield Table("Systematic sources", ("source",), tuple((name,) for name in sources))
    settings = training.settings.to_dict()
    yield Table("Settings", ("setting", "value"), tuple((name, str(value)) for name, value in settings.items()))
