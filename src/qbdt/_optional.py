"""The one gate to optional packages: import them through `require` and nowhere else."""

from __future__ import annotations

import importlib
from types import ModuleType

from qbdt.errors import MissingDependencyError

__all__ = ["EXTRAS", "require"]

EXTRAS = {
    "dask": "dask",
    "distributed": "dask",
    "dask_awkward": "dask",
    "lightgbm": "baselines",
    "onnx": "export",
    "onnxruntime": "export",
    "optuna": "tune",
    "pythia8mc": "generate",
    "xgboost": "baselines",
}
"""Import name of each optional package and the extra of qbdt that installs it."""


def require(module: str, purpose: str) -> ModuleType:
    """Import an optional package, or say what to install.

    Parameters
    ----------
    module
        Import name, for example ``"pythia8mc"``.
    purpose
        What needs it, for the message: ``"qbdt generate"``.

    Examples
    --------
    >>> require("json", "an example").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        extra = EXTRAS.get(top)
        install = f"pip install 'qbdt[{extra}]'" if extra else f"pip install {top}"
        raise MissingDependencyError(f"{purpose} needs the package {top}, which is not installed: {install}") from error
