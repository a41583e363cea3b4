"""A search in its folder: numbers, a figure, and the best settings ready to be pasted into an analysis file."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from qbdt.analysis.schema import Analysis
from qbdt.analysis.tuning.figures import search_history
from qbdt.analysis.tuning.result import Tuning
from qbdt.files import write_text
from qbdt.report.figures import save

__all__ = ["best_section", "write_tuning"]


def best_section(found: Tuning, analysis: Analysis) -> str:
    """Return the `training:` section with the best settings, and in a comment what they are worth."""
    section: dict[str, Any] = analysis.training.model_dump(mode="json", exclude_defaults=True)
    section |= {"method": found.method, **found.best.settings}
    where = f"qbdt {version('qbdt')}"
    head = [
        f"# Best of {len(found.trials)} trials of qbdt tune ({where}). Expected σ_μ of this way to choose,",
        f"# on events that took no part in the choice: {found.nested.sigma_full:.4f}; "
        f"before: {found.out_of_fold.sigma_full:.4f}.",
    ]
    section_text = yaml.safe_dump({"training": section}, sort_keys=False, allow_unicode=True)
    return "\n".join([*head, section_text])


def write_tuning(found: Tuning, analysis: Analysis, folder: Path | str) -> list[Path]:
    """Write `tuning.json`, `tuning.png` and `best.yaml` beside the study."""
    root = Path(folder)
    paths = [root / name for name in ("tuning.json", "best.yaml", "tuning.png")]
    plain = {"qbdt": version("qbdt"), "analysis": analysis.model_dump(mode="json"), "tuning": found.to_dict()}
    write_text(paths[0], json.dumps(plain, indent=1) + "\n")
    write_text(paths[1], best_section(found, analysis))
    settings = {name: [trial.settings[name] for trial in found.trials] for name in found.start.settings}
    values = [trial.value for trial in found.trials]
    save(search_history(values, settings, found.start.value, dict(found.start.settings)), paths[2])
    return paths
