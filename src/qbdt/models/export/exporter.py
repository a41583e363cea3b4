"""Exporting: write, read back, compare, and only then put the files in their place."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.errors import ConfigError, OutputError
from qbdt.files import replace_file, require_place, scratch_folder
from qbdt.models.export.comparison import (
    Check,
    ExportComparison,
    Outputs,
    bound_rounding,
    compare_rows,
    rows_of_events,
)
from qbdt.models.export.cpp_header import CompiledHeader, header_text, namespace_of
from qbdt.models.export.onnx_graph import read_onnx, write_onnx
from qbdt.models.export.probes import make_probes
from qbdt.models.export.tmva_xml import read_tmva, write_tmva
from qbdt.models.export.xgboost_json import read_xgboost, write_xgboost
from qbdt.training import Model
from qbdt.trees import Ensemble, Tree

FORMATS = {"onnx": ".onnx", "xgboost": ".json", "tmva": ".xml", "cpp": ".h"}
"""Formats with the usual ends of their files' names."""

SINGLE = ("xgboost", "tmva")
"""Formats in single precision, which hold sums of trees only."""

DOUBLE_BOUND = 1e-12
"""Relative difference beyond which a double-precision export is wrong and not merely added up in another order."""

FORMULA = "p = 1/(1 + exp(-(ratio + log_odds))); u = (p - shift)/share - 1; score = u/(1 + |u|)"

RULES = {
    "modulo": "fold = column modulo k, never negative",
    "split": "fold = column, which must lie in 0 ... k - 1",
    "hash": "state = salt; for each column: state = splitmix64(state xor column) on unsigned 64-bit words; "
    "fold = state modulo k",
}


@dataclass(frozen=True)
class Export:
    """Files that were written and read back."""

    format: str  # `onnx`, `xgboost`, `tmva` or `cpp`
    # All files; where there are several, the last is a JSON file that says how to use them together
    files: tuple[Path, ...]
    checks: tuple[Check, ...]  # What was compared; empty where the file could not be read back here
    warnings: tuple[str, ...]  # What the format cannot hold and why, and what its reader must still compute

    @property
    def difference(self) -> float:
        """Largest difference of all checks."""
        return max((check.difference for check in self.checks), default=float("nan"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "format": self.format,
            "files": [str(path) for path in self.files],
            "checks": [asdict(check) for check in self.checks],
            "warnings": list(self.warnings),
        }


def export_model(
    model: Model, path: str | Path, to: str, *, events: Iterable[tuple[str, Events]] = (), force: bool = True
) -> Export:
    """Write a model in another format, read it back and compare.

    Parameters
    ----------
    model
        A model of either method, single or cross-trained.
    path
        File to write. Where a format needs several, their names are made from it: `NAME.fold0.ratio.json`, …, and
        `NAME.xgboost-index.json`, which says how to use them together.
    to
        "onnx", "xgboost", "tmva" or "cpp".
    events
        Named events to compare scores on, besides the values around every cut.
    force
        Whether files that are there may be replaced.

    Returns
    -------
    Export
        Files, differences, and warnings about what the format cannot hold. Files that do not agree with the model as
        far as the format can hold it are not left behind: that is an error.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_model(Ensemble(("pt",), ()), Path(folder) / "model.xml", "tmva").checks[0].difference
    0.0
    """
    if to not in FORMATS:
        raise ConfigError(f"to={to}: there are: {', '.join(FORMATS)}")
    if to in SINGLE and model.parameters:
        raise ConfigError(
            f"to={to}: only models of one signal strength are exported so; onnx and cpp take those of other parameters"
        )
    target = Path(path)
    if to in SINGLE and target.suffix != FORMATS[to]:
        raise ConfigError(f"{target}: {to} reads files by the end of their names: it must be {FORMATS[to]}")
    require_place(target)
    try:
        return _export(model, target, to, events, force)
    except OSError as error:
        raise OutputError(f"{target}: {error.strerror or error}") from error


def _export(model: Model, target: Path, to: str, events: Iterable[tuple[str, Events]], force: bool) -> Export:
    with scratch_folder(target) as scratch:
        exporter = _FilePerSum(model, to, scratch, target) if to in SINGLE else _OneFile(model, to, scratch, target)
        files = exporter.write()
        checks, warnings = _check(exporter, events)
        places = [target.parent / file.name for file in files]
        if not force and (there := [place for place in places if place.exists()]):
            raise OutputError(f"{there[0]} exists; force=True overwrites it")
        for file, place in zip(files, places, strict=True):
            with replace_file(place) as whole:
                shutil.copyfile(file, whole)
    return Export(to, tuple(places), tuple(checks), tuple(warnings))


class _OneFile:
    """A format that holds the whole model in one file, in double precision."""

    single, holds_missing = False, True

    def __init__(self, model: Model, to: str, scratch: Path, target: Path) -> None:
        self.model, self.to, self._scratch, self._file = model, to, scratch, scratch / target.name
        largest = max(
            (
                sum(float(np.abs(t.outputs).max()) for t in e.trees)
                for m in model.members
                for e in m.components.values()
            ),
            default=0.0,
        )
        smallest = min([1.0, *(m.constants["widths"].min() for m in model.members if model.parameters)])
        self.bound = DOUBLE_BOUND * max(1.0, largest) / smallest  # several scores are in units of their widths

    def write(self) -> list[Path]:
        if self.to == "onnx":
            return write_onnx(self.model, self._file)
        self._file.write_text(header_text(self.model, namespace_of(self._file.stem)), encoding="utf-8")
        return [self._file]

    def read(self) -> Outputs | None:
        """Return the file as a function; None where it cannot be read here."""
        if self.to == "onnx":
            return read_onnx(self._file)
        if CompiledHeader.compiler() is None:
            return None
        columns = () if self.model.folds is None else self.model.folds.columns
        n_scores = len(self.model.parameters) or None
        return CompiledHeader(self._file, namespace_of(self._file.stem), columns, self._scratch, n_scores)

    def warnings(self, result: ExportComparison | None) -> list[str]:
        if result is None:
            return ["no C++ compiler is found: the header is not checked"]
        found = []
        if max(result.largest, result.largest_missing) > 0:
            found.append(
                "scores differ in their last digits: the exponential function, or the order of sums, is another one"
            )
        if self.to == "onnx":
            found.append(
                "with several threads onnxruntime may add up trees in another order: last digits can differ then"
            )
            if any(tree.is_set.any() for member in self.model.members for tree in member.trees):
                found.append(
                    "onnxruntime before 1.30 gets divisions by category wrong, without a word: use 1.30 or newer"
                )
        return found


class _FilePerSum:
    """A format that holds sums of trees only, in single precision: one file for each, and an index."""

    single = True

    def __init__(self, model: Model, to: str, scratch: Path, target: Path) -> None:
        self.model, self.to, self._scratch, self._target = model, to, scratch, target
        self.bound = max(bound_rounding(member) for member in model.members)
        self.holds_missing = to != "tmva" or not self._missing_right()
        self._index_name = f"{target.stem}.{to}-index.json"

    def write(self) -> list[Path]:
        files = []
        for sums in self._sums_by_file():
            for name, ensemble in sums.items():
                file = self._scratch / name
                self._write_one(ensemble, file)
                files.append(file)
        if self._needs_index:
            index = self._scratch / self._index_name
            index.write_text(json.dumps(self._index(), indent=1) + "\n", encoding="utf-8")
            files.append(index)
        return files

    def read(self) -> Outputs:
        reader: Callable[[Path, NDArray[np.float32]], Floats] = read_tmva if self.to == "tmva" else read_xgboost
        rule = self.model.folds

        def outputs(values: Floats, identifiers: dict[str, NDArray[np.int64]]) -> dict[str, Floats]:
            with np.errstate(over="ignore", under="ignore"):
                rows = values.astype(np.float32)
            scores = []
            for member, files in zip(self.model.members, self._sums_by_file(), strict=True):
                found = [reader(self._scratch / name, rows) for name in files]
                scores.append(member.combine(dict(zip(member.components, found, strict=True))))
            if rule is None:
                return {"score": scores[0]}
            fold = rule.assign(Events({}, np.ones(len(values)), identifiers))
            table = np.stack(scores)
            return {"score": table[fold, np.arange(len(values))], "average": table.mean(axis=0)}

        return outputs

    def warnings(self, result: ExportComparison | None) -> list[str]:
        assert result is not None
        found = [
            "leaves and features are single-precision numbers in this format: scores are rounded, and a feature whose "
            "value lies within rounding of a cut can fall on its other side"
        ]
        if self.to == "tmva":
            found.append(self._missing_warning(result))
        if any(tree.is_set.any() for tree in self._trees()):
            found.append(
                "divisions by category are read by XGBoost, but not by ROOT's RBDT; of a value that is no whole number "
                "XGBoost takes the whole part"
            )
        if self.model.members[0].constants:
            found.append(f"the reader of these files must still compute the score from two sums: {FORMULA}")
        if self.model.folds is not None:
            found.append("the reader of these files must still choose the model of an event's fold: the index says how")
        return found

    def _missing_warning(self, result: ExportComparison) -> str:
        advice = "TMVA's Reader returns -999 for missing values: give it -3.4e38 instead, which goes left at every cut"
        if self.holds_missing:
            return advice
        cuts = sum(int((~tree.is_leaf).sum()) for tree in self._trees())
        return (
            f"{advice}; {self._missing_right()} of {cuts} cuts send missing values right: scores of such events differ "
            f"by up to {result.largest_missing:.3g}"
        )

    def _missing_right(self) -> int:
        return sum(int((~tree.nodes["missing_left"][~tree.is_leaf]).sum()) for tree in self._trees())

    def _trees(self) -> list[Tree]:
        return [tree for member in self.model.members for tree in member.trees]

    def _sums_by_file(self) -> list[dict[str, Ensemble]]:
        """For each member, file name to sum of trees."""
        stem, suffix = self._target.stem, self._target.suffix
        found = []
        for fold, member in enumerate(self.model.members):
            front = stem if self.model.folds is None else f"{stem}.fold{fold}"
            several = len(member.components) > 1
            names = (f".{name}" * several for name in member.components)
            found.append({f"{front}{n}{suffix}": e for n, e in zip(names, member.components.values(), strict=True)})
        return found

    def _write_one(self, ensemble: Ensemble, file: Path) -> None:
        if self.to == "tmva":
            write_tmva(ensemble, file)
        else:
            write_xgboost(ensemble, file, {"see": self._index_name} if self._needs_index else {})

    @property
    def _needs_index(self) -> bool:
        """Whether there are several files: of folds, or of the sums of a profiled model."""
        return self.model.folds is not None or len(self.model.members[0].components) > 1

    def _index(self) -> dict[str, Any]:
        content: dict[str, Any] = {"qbdt": version("qbdt"), "features": list(self.model.features)}
        if self.model.folds is not None:
            rule = self.model.folds.to_dict()
            content["folds"] = {**rule, "rule": RULES[rule["by"]]}
            content["average"] = "for events that took no part in the training: the mean of all models"
        content["models"] = []
        for member, names in zip(self.model.members, self._sums_by_file(), strict=True):
            files: dict[str, Any] = dict(zip(member.components, names, strict=True))
            if member.constants:
                files |= {**member.constants, "formula": FORMULA}
            content["models"].append(files)
        return content


def _check(exporter: _OneFile | _FilePerSum, events: Iterable[tuple[str, Events]]) -> tuple[list[Check], list[str]]:
    """Compare around every cut and on events; refuse a file that is wrong."""
    outputs = exporter.read()
    if outputs is None:
        return [], exporter.warnings(None)
    model, bound, single = exporter.model, exporter.bound, exporter.single
    around = compare_rows(model, outputs, make_probes(model, fractions=not single), bound, single=single)
    if around.largest > bound or (around.largest_missing > bound and exporter.holds_missing):
        raise OutputError(
            f"the {exporter.to} file does not agree with the model: scores differ by "
            f"{max(around.largest, around.largest_missing):.3g}; it is not kept. Please report this"
        )
    checks = [Check("around every cut", around.rows - around.rows_missing, around.largest)]
    if exporter.holds_missing:
        checks.append(Check("missing values", around.rows_missing, around.largest_missing))
    warnings = exporter.warnings(around)
    for name, own in events:
        result = compare_rows(model, outputs, rows_of_events(model, own), bound, single=False)
        checks.append(Check(name, result.rows, max(result.largest, result.largest_missing)))
        if result.beyond:
            warnings.append(f"{name}: {result.beyond} of {result.rows} events take another way through the trees")
    return checks, warnings
