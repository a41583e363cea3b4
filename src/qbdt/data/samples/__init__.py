"""Samples that come with qbdt, are made on the spot, or are read from public files."""

from collections.abc import Callable

from qbdt.data.dataset import Dataset
from qbdt.data.samples.bundled import tautaugamma
from qbdt.data.samples.cms_htautau import cms_htautau
from qbdt.data.samples.inferno import BACKGROUND_YIELD, NOMINAL_RATE, SIGNAL_YIELD, inferno
from qbdt.data.samples.ntuples import write_bundled_ntuples, write_ntuples
from qbdt.data.samples.objects import (
    FORMAT_VERSION,
    METADATA,
    PROCESSES,
    Objects,
    ObjectsWriter,
    checksum,
    read_metadata,
    round_mantissa,
)
from qbdt.data.samples.paper_tautaugamma import paper_tautaugamma
from qbdt.data.samples.reconstruction import NOMINAL, SELECTION, SHAPES, Reconstruction

__all__ = [
    "BACKGROUND_YIELD",
    "FORMAT_VERSION",
    "METADATA",
    "NOMINAL",
    "NOMINAL_RATE",
    "PROCESSES",
    "SELECTION",
    "SHAPES",
    "SIGNAL_YIELD",
    "Objects",
    "ObjectsWriter",
    "Reconstruction",
    "checksum",
    "cms_htautau",
    "inferno",
    "paper_tautaugamma",
    "read_metadata",
    "round_mantissa",
    "tautaugamma",
    "write_bundled_ntuples",
    "write_ntuples",
]

BUILTIN: dict[str, Callable[..., Dataset]] = {
    "cms_htautau": cms_htautau,
    "inferno": inferno,
    "paper_tautaugamma": paper_tautaugamma,
    "tautaugamma": tautaugamma,
}
"""What the key `dataset` of an analysis file may name."""
