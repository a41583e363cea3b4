"""What estimators take from scikit-learn, imported without two packages that no fit needs.

`sklearn.base` imports `scipy.stats` and pandas, for functions of its own that estimators never call: two thirds of the
time that a small fit in a new process takes. Here they are set aside while it is imported, and are imported as always
by whoever asks for them afterwards: SciPy imports its parts on their first use, and scikit-learn looks for the pandas
that a caller's table came from.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "check_classification_targets",
    "check_is_fitted",
    "clone",
    "column_or_1d",
    "set_aside",
    "validate_data",
]

UNUSED: dict[str, ModuleType | None] = {"scipy.stats": ModuleType("scipy.stats"), "pandas": None}
"""What stands in `sys.modules` meanwhile: scikit-learn does without pandas, but not without SciPy."""


@contextmanager
def set_aside(unused: dict[str, ModuleType | None]) -> Iterator[None]:
    """Let modules seem to be imported already (None: not to be installed) inside a `with` statement.

    Those that are imported stay as they are, and all do where another thread could import one meanwhile.
    """
    absent = [name for name in unused if name not in sys.modules] if threading.active_count() == 1 else []
    sys.modules.update({name: unused[name] for name in absent})  # type: ignore[misc]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


with set_aside(UNUSED):
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
