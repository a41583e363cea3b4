"""Samples that come with qbdt, are made on the spot, or are read from public files: functions that give a `Dataset`.

How the h → γττ sample is stored and reconstructed is behind the door `qbdt.data.samples.objects`.
"""

from collections.abc import Callable

from qbdt.data.dataset import Dataset
from qbdt.data.samples.bundled import tautaugamma, write_bundled_ntuples, write_ntuples
from qbdt.data.samples.cms_htautau import cms_htautau
from qbdt.data.samples.inferno import BACKGROUND_YIELD, NOMINAL_RATE, SIGNAL_YIELD, inferno
from qbdt.data.samples.public_files import paper_tautaugamma

__all__ = [
    "BACKGROUND_YIELD",
    "BUILTIN",
    "NOMINAL_RATE",
    "SIGNAL_YIELD",
    "cms_htautau",
    "inferno",
    "paper_tautaugamma",
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
"""Samples that the key `dataset` of an analysis file may name."""
