"""Hashes of data, without what may change: versions, provenance, order of keys. Nothing here knows the package."""

import hashlib
import json
import math
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

VOLATILE = {"qbdt", "format", "version", "checksum", "provenance"}
"""Keys that are left out wherever they stand at the top of a file."""

LATER = {"negative_weights", "blind", "blind_above", "with", "free", "strengths", "of_interest"}
LATER |= {"limits", "contours", "goodness", "toys", "figure", "smooth", "symmetrise", "noise", "shift_variance"}
LATER |= {"lognormal", "mc_model", "by_era", "at"}
"""Settings that there were not when hashes were recorded; their effect is in what they change."""

LATER_EMPTY = {"regions", "decorrelate", "parameters", "fixed", "bounds", "groups"}
LATER_EMPTY |= {"eras", "cross_section", "generated", "friends", "from_data", "norm", "group_impacts", "abcd"}
"""Sections that there were not either, and that are left out where nothing stands in them."""

LATER_BESIDE = {"luminosity": "samples", "correlated": "processes"}
"""The same of keys that were there elsewhere: they are left out beside these."""


def text_hash(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def array_hash(values: Any) -> str:
    """SHA-256 of numbers in double precision, with their shape."""
    numbers = np.ascontiguousarray(values, dtype="<f8")
    return hashlib.sha256(repr(numbers.shape).encode() + numbers.tobytes()).hexdigest()


def canonical_hash(content: Any) -> str:
    """SHA-256 of plain data, whatever the order of its keys."""
    return text_hash(json.dumps(content, sort_keys=True, separators=(",", ":")))


def model_hash(path: Path) -> str:
    """Hash of what a model file holds."""
    content = json.loads(path.read_text(encoding="utf-8"), object_hook=_without_later)
    return canonical_hash({key: value for key, value in content.items() if key not in VOLATILE})


def _without_later(content: dict[str, Any]) -> dict[str, Any]:
    later = LATER | {key for key, beside in LATER_BESIDE.items() if beside in content}
    kept = {key: value for key, value in content.items() if key not in later}
    return {key: value for key, value in kept.items() if key not in LATER_EMPTY or value not in ([], {}, None)}


def plain_hashes(path: Path, what: str) -> dict[str, str]:
    """Hash of each top-level key of a JSON file, so that a difference says where it is."""
    content = json.loads(path.read_text(encoding="utf-8"), object_hook=_without_later)
    return {f"{what}.{key}": canonical_hash(value) for key, value in content.items() if key not in VOLATILE}


def file_hash(path: Path) -> str:
    """Hash of an exported file, without the version that wrote it."""
    if path.suffix == ".onnx":
        return _onnx_hash(path)
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"\bqbdt \d+\.\d+[\w.+]*", "qbdt", text)  # "Made by qbdt 0.1.0" of the header and of TMVA's XML
    text = re.sub(r'"qbdt": "\d[^"]*"', '"qbdt": ""', text)  # attributes of XGBoost's JSON, and of an index
    return text_hash(text)


def _onnx_hash(path: Path) -> str:
    import onnx

    model = onnx.load(str(path))
    model.producer_version = ""
    kept = [(entry.key, entry.value) for entry in model.metadata_props if entry.key != "qbdt"]
    del model.metadata_props[:]
    return text_hash(repr(sorted(kept)) + model.SerializeToString(deterministic=True).hex())


def fingerprint() -> dict[str, str]:
    """What bits depend on besides the package: the functions of numpy, libm and LAPACK on this CPU, and versions.

    numpy has other code for exp, log and tanh with AVX2 than with AVX-512, so the last bits differ between machines.
    """
    grid = np.linspace(-20.0, 20.0, 4001)
    positive = np.geomspace(1e-6, 1e6, 4001)
    libm = [f(x) for x in positive.tolist() for f in (math.log, math.sqrt, lambda x: math.exp(-x))]
    matrix = np.cos(np.arange(400.0).reshape(20, 20)) + 20 * np.eye(20)
    return {
        "numpy": _short("numpy"),
        "numba": _short("numba"),
        "scipy": _short("scipy"),
        "iminuit": _short("iminuit"),
        "exp": array_hash(np.exp(grid)),
        "log": array_hash(np.log(positive)),
        "tanh": array_hash(np.tanh(grid)),
        "single": array_hash(np.exp(grid.astype(np.float32))),
        "libm": array_hash(libm),
        "lapack": array_hash(np.linalg.inv(matrix @ matrix.T)),
    }


def _short(package: str) -> str:
    return ".".join(version(package).split(".")[:2])
