"""The h → γττ sample as detector objects: the folder format, and the variables of every variation from the objects.

In: folders that `qbdt generate tautaugamma` wrote, or objects in memory. Out: `Objects`, variables, a `Dataset`.
"""

from qbdt.data.samples.objects.object_files import (
    FORMAT_VERSION,
    METADATA,
    PROCESSES,
    Objects,
    ObjectsWriter,
    read_folder,
    read_metadata,
    round_mantissa,
)
from qbdt.data.samples.objects.reconstruction import NOMINAL, SELECTION, SHAPES, Reconstruction

__all__ = [
    "FORMAT_VERSION",
    "METADATA",
    "NOMINAL",
    "PROCESSES",
    "SELECTION",
    "SHAPES",
    "Objects",
    "ObjectsWriter",
    "Reconstruction",
    "read_folder",
    "read_metadata",
    "round_mantissa",
]
