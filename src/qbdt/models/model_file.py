"""Writing and reading model files."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from qbdt.errors import ModelFileError, OutputError, QBDTError
from qbdt.files import require_place, write_text
from qbdt.models.file_text import format_text, get, parse_text
from qbdt.models.model_content import from_dict, to_dict
from qbdt.training import AnyTrainedModel, CrossTrainedModel, TrainedModel


def write_model(
    path: str | Path,
    training: AnyTrainedModel,
    extra: Mapping[str, Any] | None = None,
    *,
    force: bool = True,
) -> None:
    """Write a model file.

    Parameters
    ----------
    path
        Where to.
    training
        What to write: one training, or one for each fold.
    extra
        Further plain values to keep with the model.
    force
        Whether an existing file may be replaced; it is, at once and as a whole.
    """
    write_text(require_model_place(path), format_text({"extra": dict(extra or {}), **to_dict(training)}), force=force)


def require_model_place(path: str | PathLike[str]) -> Path:
    """Refuse a place where no model file can be written, and what is no path."""
    if not isinstance(path, str | PathLike):
        raise OutputError(f"{path!r}: the path of a model file is needed")
    require_place(Path(path))
    return Path(path)


def read_any_model(path: str | Path) -> tuple[AnyTrainedModel, dict[str, Any]]:
    """Read a model file of any kind; returns the training and the extra values that were kept with it."""
    if not isinstance(path, str | PathLike):
        raise ModelFileError(f"{path!r}: the path of a model file is needed")
    source = Path(path)
    content = parse_text(source)
    try:
        return from_dict(content), get(content, "extra", dict)
    except ModelFileError as error:
        raise ModelFileError(f"{source}: {error}") from None
    except QBDTError as error:
        raise ModelFileError(f"{source}: {error}") from error


def read_model(path: str | Path) -> tuple[TrainedModel, dict[str, Any]]:
    """Read a file that holds a single model; returns the training and the extra values that were kept with it."""
    training, extra = read_any_model(path)
    if training.folds is not None:
        raise ModelFileError(
            f"{path}: a cross-trained model with {training.folds.k} folds, where a single model is needed; "
            "load it with CrossTrainedClassifier.load or qbdt.models.read_cross_trained"
        )
    return training, extra


def read_cross_trained(path: str | Path) -> tuple[CrossTrainedModel, dict[str, Any]]:
    """Read a file that holds a cross-trained model; returns its trainings and the extra values."""
    training, extra = read_any_model(path)
    if training.folds is None:
        raise ModelFileError(f"{path}: a single model, where a cross-trained one is needed")
    return training, extra
