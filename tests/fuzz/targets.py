"""What is fuzzed: for each kind of input its seeds, how one is changed, and what is done with it."""

import io
import json
import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import uproot
import yaml

from qbdt import QBDTClassifier
from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.examples import example_names, example_text
from qbdt.analysis.run_folder import read_run
from qbdt.data import Events, Expression
from qbdt.data.readers import read_events
from qbdt.errors import QBDTError
from qbdt.files import choose_file_names, choose_words
from qbdt.inference import FitSettings, fit_templates, write_fit
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.measurement import Measurement
from qbdt.inference.templates import TemplateSet
from qbdt.inference.workspace import build_workspace, read_workspace
from qbdt.models import read_any_model, score_events
from qbdt.models.export import export_model
from qbdt.models.file_text import checksum, parse_text
from tests.faults.cases import ANALYSIS
from tests.fuzz.damaged_runs import change_file, list_seeds, use_damaged_run
from tests.fuzz.equivalent_runs import use_equivalent_runs
from tests.fuzz.mutations import WORDS, change_bytes, change_plain, change_text
from tests.fuzz.runs import SEEDS, use_analysis
from tests.inference.models import smooth_templates

FOLDERS = (Path(__file__).parents[1] / "frozen" / "models", Path(__file__).parent / "models")
MODELS = [path for folder in FOLDERS for path in sorted(folder.glob("*.qbdt"))]
"""Of the paper's and the profiled method, whole and by folds; a regression, and one of several scores."""

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{one}: &{one} [{', '.join([f'*{other}'] * 9)}]\n" for other, one in zip("abcdefgh", "bcdefghi", strict=True)
)


@dataclass(frozen=True)
class Target:
    """A kind of input.

    Attributes
    ----------
    seeds
        Inputs that are tried as they are, and changed.
    change
        A random change of one.
    use
        Does what a user would do with it, in a folder of its own.
    times
        How often it does so: each time within the limit.
    """

    seeds: tuple[Any, ...]
    change: Callable[[Any, random.Random], Any]
    use: Callable[[Any, Path], object]
    times: int = 1


def _use_model(content: Any, folder: Path) -> None:
    try:
        sealed = json.dumps({**content, "checksum": checksum(content)})
    except ValueError:  # not finite: such a file cannot be sealed
        return
    _use_model_file(sealed.encode(), folder)


def _use_model_file(content: bytes, folder: Path) -> None:
    path = folder / "model.qbdt"
    path.write_bytes(content)
    model, _ = read_any_model(path)
    str(model)
    if model.folds is None:
        rows = np.array([[0.0], [np.nan], [1e300]]) * np.ones(len(model.ensemble.features))
        columns = {name: rows[:, i] for i, name in enumerate(model.ensemble.features)}
        score_events(model.ensemble, Events(columns, np.ones(len(rows))))
        QBDTClassifier.load(path).decision_function(columns)


def _use_export(content: Any, folder: Path) -> None:
    """Write a changed model for other programs: each file is read back and compared, or refused."""
    try:
        sealed = json.dumps({**content, "checksum": checksum(content)})
    except ValueError:
        return
    (folder / "model.qbdt").write_text(sealed)
    model, _ = read_any_model(folder / "model.qbdt")
    for name, to in (("m.json", "xgboost"), ("m.xml", "tmva"), ("m.onnx", "onnx")):
        with suppress(QBDTError):  # a format that cannot hold it; others may
            export_model(model.ensemble, folder / name, to)


def _use_run_folder(files: dict[str, Any], folder: Path) -> None:
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    read_run(folder)


def _run_folder() -> dict[str, Any]:
    """Return the files of the folder of a run that has no model, with a result of two bins."""
    templates = smooth_templates(3, 2)
    with tempfile.TemporaryDirectory() as folder:
        write_fit(fit_templates(templates, FitSettings(scan=False)), folder)
        files = {name: json.loads((Path(folder) / name).read_text()) for name in ("fit.json", "templates.json")}
    analysis = parse_analysis(ANALYSIS.replace("METHOD", "paper")).model_dump(mode="json", exclude_defaults=True)
    table = {"title": "Result", "header": ["", "value"], "rows": [["mu", "1"]]}
    return {**files, "result.json": {"name": "small", "analysis": analysis, "tables": [table], "yaml": "", "qbdt": "1"}}


def _use_expression(text: str, folder: Path) -> None:
    lists = np.arange(8.0).reshape(4, 2)
    Expression(text).evaluate({"pt": np.arange(4.0), "n": np.arange(4), "jet_pt": lists, "jet.eta": -lists[:, 0]})


def _use_columns(derived: dict[str, str], folder: Path) -> None:
    read_events({"a": np.arange(3.0)}, list(derived)[-1:], derived=derived)


def _table_file(suffix: str) -> bytes:
    table = {"a": np.arange(40.0), "n": np.arange(40)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        if suffix == ".root":
            with uproot.recreate(path) as file:
                file.mktree("t", {name: values.dtype for name, values in table.items()}).extend(table)
        elif suffix == ".parquet":
            pq.write_table(pa.table(table), path, write_page_checksum=True)
        elif suffix == ".feather":
            pyarrow.feather.write_feather(pa.table(table), path)
        else:
            path.write_text("a,n\n" + "".join(f"{i},{i}\n" for i in range(40)))
        return path.read_bytes()


def _large_basket() -> bytes:
    """A ROOT file whose first basket says that it has 1 GB."""
    content = bytearray(_table_file(".root"))
    with uproot.open(io.BytesIO(bytes(content))) as file:
        place = int(file["t"]["a"].member("fBasketSeek")[0])
    content[place + 6] ^= 0x3F
    return bytes(content)


ODD_TABLES = {".csv": (b"a\xacn\n",), ".root": (_large_basket(),)}
"""Tables whose names of columns cannot be decoded, or that say that they are large."""


def _reader(suffix: str) -> Target:
    def use(content: bytes, folder: Path) -> None:
        path = folder / f"a{suffix}"
        path.write_bytes(content)
        read_events(str(path), ["a"], weight="n + 1")

    return Target((_table_file(suffix), *ODD_TABLES.get(suffix, ())), change_bytes, use)


def _use_workspace(spec: Any, folder: Path) -> None:
    path = folder / "workspace.json"
    path.write_text(json.dumps(spec))
    Likelihood(read_workspace(path))


def _use_names(names: list[str], folder: Path) -> None:
    for choose in (choose_file_names, choose_words):
        chosen = choose(names)
        assert len(set(chosen)) == len(names), (names, chosen)
        assert all((folder / name).parent == folder for name in chosen)


def _change_names(names: list[str], rng: random.Random) -> list[str]:
    return [rng.choice(names)[:40] + rng.choice([*WORDS, "_2", "~2", "/", "..", "A", "é"]) for _ in range(8)]


def _change_columns(derived: dict[str, str], rng: random.Random) -> dict[str, str]:
    names = list(derived)
    return {**derived, rng.choice(names): f"{rng.choice(names)} + {rng.choice(names)} * {rng.choice(['a', '2', 'zz'])}"}


CHAIN = {"c0": "a"} | {f"c{i}": f"c{i - 1} + 1" for i in range(1, 300)}
GRID = {"c0": "a", "c1": "a"} | {f"c{i}": f"c{i - 1} + c{i - 2}" for i in range(2, 60)}

ANALYSES = tuple(example_text(name) for name in example_names())
HALF = yaml.safe_dump({**SEEDS[1], "training": {**SEEDS[1]["training"], "free": ["\ud800"]}}, allow_unicode=True)
"""An analysis with half of a character, which no message can show."""

EXPRESSIONS = (
    "pt > 25 and abs(jet.eta) < 2.4",
    "where(jet_pt[0] > 30, pt / n, -999)",
    "1e999 * pt",
    "9" * 400,
    "jet_pt[1000000]",
    "2 ** 99999999999",
)

CONTENTS = tuple(map(parse_text, MODELS))
NO_NAMES = {**CONTENTS[-1], "settings": {**CONTENTS[-1]["settings"], "strengths": {"mu_g": 1.5}}}
"""A model of several scores, whose strength has a number in the place of signals."""

FOLDED = next(one for one in CONTENTS if one["model"] == "cross-trained")
ODD_COLUMNS = [{**FOLDED, "folds": {"by": "modulo", "columns": [n], "k": FOLDED["folds"]["k"]}} for n in ("", "\ud800")]
"""Models of folds by a column without a name, or with half of a character in it, as ONNX inputs must not be."""


def _scaled_templates() -> dict[str, Any]:
    """Templates with a source that scales a yield, whose factor in the other direction is lost."""
    plain: dict[str, Any] = smooth_templates(3, 2).to_dict()
    plain["processes"][1]["shifts"]["source0"]["factors"] = [True]
    return plain


def _measurement() -> dict[str, Any]:
    """Two regions with all that can be said of a fit."""
    templates = smooth_templates(3, 2)
    return Measurement(
        {"signal": templates, "control": templates},
        strengths={"mu": ("signal",)},
        free={"k": ("major",)},
        fixed={"source0": 0.5},
        bounds={"mu": (0.0, 5.0)},
        groups={"all": ("source1",)},
    ).to_dict()


TARGETS: dict[str, Target] = {
    "model": Target((*CONTENTS, NO_NAMES), change_plain, _use_model),
    "model file": Target(tuple(path.read_bytes() for path in MODELS), change_bytes, _use_model_file),
    "analysis": Target((*ANALYSES, BOMB, HALF, "features: &a [*a]"), change_text, lambda text, _: parse_analysis(text)),
    "expression": Target(EXPRESSIONS, change_text, _use_expression),
    "columns": Target((CHAIN, GRID), _change_columns, _use_columns),
    **{suffix: _reader(suffix) for suffix in (".root", ".parquet", ".feather", ".csv")},
    "workspace": Target((build_workspace(smooth_templates(3, 2)),), change_plain, _use_workspace),
    "templates": Target(
        (smooth_templates(3, 2).to_dict(), _scaled_templates()),
        change_plain,
        lambda plain, _: TemplateSet.from_dict(plain).arrays(),
    ),
    "measurement": Target((_measurement(),), change_plain, lambda plain, _: Measurement.from_dict(plain)),
    "export": Target((*CONTENTS, *ODD_COLUMNS), change_plain, _use_export),
    "run": Target(SEEDS, change_plain, use_analysis),
    "damaged run": Target(list_seeds(), change_file(change_bytes), use_damaged_run),
    "equivalent": Target(SEEDS, change_plain, use_equivalent_runs, times=2),
    "run folder": Target((_run_folder(),), change_plain, _use_run_folder),
    "names": Target((["b", "b__0_up", "../b", "data_obs", "lumi", "B"],), _change_names, _use_names),
}
