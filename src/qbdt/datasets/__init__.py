"""Datasets that come with qbdt, or that are made on the spot."""

from collections.abc import Callable

from qbdt.dataset import Dataset
from qbdt.datasets.bundled import tautaugamma
from qbdt.datasets.cms import cms_htautau
from qbdt.datasets.inferno import inferno
from qbdt.datasets.paper import paper_tautaugamma

__all__ = ["BUILTIN", "cms_htautau", "inferno", "paper_tautaugamma", "tautaugamma"]

BUILTIN: dict[str, Callable[..., Dataset]] = {
    "cms_htautau": cms_htautau,
    "inferno": inferno,
    "paper_tautaugamma": paper_tautaugamma,
    "tautaugamma": tautaugamma,
}
"""What the key `dataset` of an analysis file may name."""
