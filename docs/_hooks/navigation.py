"""Pages that the navigation does not name yet are found under "More", so that no page is ever out of reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Add what is missing to the navigation."""
    folder = Path(config["docs_dir"])
    pages = {str(path.relative_to(folder)) for path in folder.rglob("*.md")}
    if missing := sorted(pages - set(_named(config["nav"]))):
        config["nav"] = [*config["nav"], {"More": missing}]
    return config


def _named(entries: Any) -> list[str]:
    """Paths of all pages in the navigation."""
    if isinstance(entries, str):
        return [entries]
    parts = entries.values() if isinstance(entries, dict) else entries
    return [path for part in parts for path in _named(part)]
