"""A diagnosis in a report: read from the folder of a run, where `qbdt diagnose` left it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qbdt.analysis.diagnosis.curves import LearningCurve
from qbdt.analysis.diagnosis.diagnose import Diagnosis
from qbdt.analysis.diagnosis.figures import feature_ranking, learning_curves, source_map
from qbdt.errors import ConfigError
from qbdt.report import Block, Figure

__all__ = ["DIAGNOSIS_FILE", "diagnosis_blocks", "read_diagnosis"]

DIAGNOSIS_FILE = "diagnosis/diagnosis.json"


def read_diagnosis(folder: Path) -> Diagnosis | None:
    """Return the diagnosis of a run, if there is one."""
    path = folder / DIAGNOSIS_FILE
    if not path.exists():
        return None
    try:
        return Diagnosis.from_dict(json.loads(path.read_text(encoding="utf-8"))["diagnosis"])
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ConfigError(f"{path}: not a diagnosis of this version; run qbdt diagnose again") from error


def diagnosis_blocks(found: Diagnosis | None) -> list[Block]:
    """Tables and figures; nothing without a diagnosis."""
    if found is None:
        return []
    tables, several = found.tables(), found.sizes is not None
    ranks: dict[str, Sequence[Any]] = {
        "feature": [rank.feature for rank in found.features],
        **{key: [getattr(r, key) for r in found.features] for key in ("gain", "full", "full_spread", "stat")},
    }
    blocks: list[Block] = [
        *tables,
        Figure("features", feature_ranking(found.features), "What σ_μ loses when a feature is scrambled.", ranks),
        Figure("learning", learning_curves(found), "σ_μ of out-of-fold scores.", _columns(found.trees), several),
    ]
    if found.sources:
        shifts: Mapping[str, Sequence[float]] = {s.source: s.bins for s in found.sources}
        caption = "Where each source lives: features that it moves, and bins of the score."
        blocks.append(Figure("source-map", source_map(found.sources), caption, shifts, True))
    return blocks


def _columns(curve: LearningCurve) -> dict[str, Sequence[float]]:
    return {curve.against: curve.at, "full": curve.full, "stat": curve.stat}
