"""Datasets that come with qbdt, or that are made on the spot."""

from collections.abc import Callable

from qbdt.dataset import Dataset
from qbdt.datasets.inferno import inferno

__all__ = ["BUILTIN", "inferno"]

BUILTIN: dict[str, Callable[..., Dataset]] = {"inferno": inferno}
"""What the key `dataset` of an analysis file may name."""
