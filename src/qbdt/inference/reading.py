"""Fit results back from the plain data that `FitSummary.to_dict` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from qbdt.inference.result import FitSummary, FittedParameter, Impact, Scan, Variant

__all__ = ["scan_from_dict", "summary_from_dict"]


def summary_from_dict(plain: Mapping[str, Any]) -> FitSummary:
    """Make a `FitSummary` of its plain data."""
    return FitSummary(
        data=plain["data"],
        mu=plain["mu"],
        interval=None if plain["interval"] is None else (plain["interval"][0], plain["interval"][1]),
        variants=tuple(Variant(name, v["z"], v["sigma_mu"]) for name, v in _items(plain["variants"], "full")),
        parameters=tuple(FittedParameter(n, p["kind"], p["value"], p["error"]) for n, p in plain["parameters"].items()),
        correlation=np.array(plain["correlation"]),
        impacts=tuple(Impact(name, **values) for name, values in plain["impacts"].items()),
        breakdown=tuple(plain["breakdown"].items()),
        counts=np.array(plain["counts"]),
        postfit={name: np.array(values) for name, values in plain["postfit"].items()},
        postfit_error=np.array(plain["postfit_error"]),
        prefit_error=np.array(plain["prefit_error"]),
        twice_nll=plain["twice_nll"],
    )


def scan_from_dict(plain: Mapping[str, Any] | None) -> Scan | None:
    """Make a `Scan` of its plain data."""
    return None if plain is None else Scan(*(np.array(plain[name]) for name in ("mu", "full", "stat")))


def _items(variants: Mapping[str, Any], first: str) -> list[tuple[str, Any]]:
    """Entries with one of them in front, whatever order the file had."""
    return sorted(variants.items(), key=lambda item: item[0] != first)
