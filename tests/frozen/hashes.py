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

FILE = Path(__file__).parent / "hashes.json"


class LearnedKeys(set[str]):
    """Holds every key that it is asked for, from then on: for a recording of everything."""

    def __contains__(self, key: object) -> bool:
        self.add(str(key))
        return True


KEYS: dict[str, set[str]] = {
    kind: set(keys) for kind, keys in json.loads(FILE.read_text(encoding="utf-8"))["keys"].items()
}
"""Keys of each kind of file when its hashes were recorded, with dots between those of nested ones and * for a place in
a list. A key that came later, such as a new setting, is left out: its effect is in what it changes. One that is gone is
a difference."""


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
    return canonical_hash(read_known(path, "model"))


def plain_hashes(path: Path, kind: str) -> dict[str, str]:
    """Hash of each top-level key of a JSON file, so that a difference says where it is."""
    return {f"{kind}.{key}": canonical_hash(value) for key, value in read_known(path, kind).items()}


def read_known(path: Path, kind: str) -> dict[str, Any]:
    """Read a file of plain data, as far as its keys were known when hashes were recorded."""
    content = json.loads(path.read_text(encoding="utf-8"))
    found: dict[str, Any] = select_known({k: v for k, v in content.items() if k not in VOLATILE}, KEYS[kind])
    return found


def select_known(content: Any, known: set[str], path: str = "") -> Any:
    """Keep entries whose keys are known, at any depth."""
    if isinstance(content, dict):
        places = {key: f"{path}.{key}".lstrip(".") for key in content}
        return {key: select_known(content[key], known, place) for key, place in places.items() if place in known}
    return [select_known(one, known, f"{path}.*") for one in content] if isinstance(content, list) else content


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
