"""Datasets that come with qbdt, or that are made on the spot."""

from collections.abc import Callable

from qbdt.dataset import Dataset
from qbdt.datasets.bundled import tautaugamma
from qbdt.datasets.inferno import inferno

__all__ = ["BUILTIN", "inferno", "tautaugamma"]

BUILTIN: dict[str, Callable[..., Dataset]] = {"inferno": inferno, "tautaugamma": tautaugamma}
"""What the key `dataset` of an analysis file may name."""
