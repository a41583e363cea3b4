"""What is frozen: trainings, exports, one run and the scores of old model files, each as a mapping from name to hash.

All names of the package that these tests reach for are imported here and nowhere else: where a module moves or a class
is renamed, this file alone is edited, and the hashes stay.
"""

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

from qbdt import CrossTrainedClassifier, Dataset, QBDTClassifier, Systematic
from qbdt.cli.app import main
from qbdt.data.folds import HashFolds, ModuloFolds
from qbdt.models.model_file import write_model
from qbdt.training.methods import train
from qbdt.training.partitions.dask.partitions import OnCluster
from qbdt.training.partitions.disk import OutOfCore
from qbdt.training.partitions.events import PartitionedEvents, divide_dataset
from qbdt.training.settings import Settings
from tests.frozen.hashes import array_hash, file_hash, model_hash, plain_hashes

FOLDER = Path(__file__).parent
MODELS = FOLDER / "models"
METHODS = ("paper", "profile")
FEATURES = ("mass", "pt", "eta", "njets")
SIZES: dict[str, dict[str, Any]] = {"paper": {"n_trees": 6, "n_leaves": 5}, "profile": {"n_trees": 5, "n_leaves": 4}}

Table = dict[str, np.ndarray]


# Events ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Rows of signal and background with weights and an identifier."""

    table: Table
    y: np.ndarray
    weight: np.ndarray
    event: np.ndarray

    def with_event(self) -> Table:
        """Return the features with the identifier."""
        return {**self.table, "event": self.event}


def sample(n: int = 1500, seed: int = 7, shift: float = 0.0, negative: bool = False) -> Sample:
    """Draw events; `shift` moves the mass as an energy scale does."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0], [n // 3, n - n // 3])
    table = {
        "mass": rng.normal(0.8 * y, 1.0) * (1.0 + shift),
        "pt": rng.exponential(1.0 + 0.5 * y) + shift,
        "eta": rng.uniform(-2.5, 2.5, n) * (1.0 - 0.3 * y),
        "njets": np.floor(rng.uniform(0.0, 5.0 + y, n)),
    }
    weight = rng.uniform(0.5, 1.5, n) * np.where(y == 1, 1.0, 10.0)
    if negative:
        weight = np.where(rng.uniform(size=n) < 0.15, -0.5 * weight, weight)
    return Sample(table, y, weight, np.arange(n) * 7919 % 100_003)


def with_missing(table: Table, seed: int = 3) -> Table:
    """Put NaN into some rows of two features."""
    rng = np.random.default_rng(seed)
    gaps = {name: rng.uniform(size=len(table[name])) < share for name, share in (("pt", 0.2), ("eta", 0.05))}
    return {name: np.where(gaps[name], np.nan, values) if name in gaps else values for name, values in table.items()}


def weights_up(rows: Sample, size: float) -> np.ndarray:
    """Vary weights of background events that look like signal, so that the profiled method learns the shift."""
    return rows.weight * np.where((rows.y == 0) & (rows.table["mass"] > 0.3), 1.0 + size, 1.0)


def shape_side(shift: float, n: int, identifiers: bool = False) -> tuple[Table, np.ndarray, np.ndarray]:
    """Return other events for a shape source: rows have migrated, so their number is another one."""
    rows = sample(n, shift=shift)
    return rows.with_event() if identifiers else rows.table, rows.y, rows.weight


JES = ((0.3, 1520), (-0.3, 1460))
"""Shift and number of rows, up and down."""


def sources(rows: Sample, names: str, identifiers: bool = False) -> list[Any]:
    """Make sources by their names."""
    makers: dict[str, Callable[[], Any]] = {
        "weight1": lambda: Systematic.weight("btag", weights_up(rows, 0.6)),
        "weight2": lambda: Systematic.weight("trigger", weights_up(rows, 0.4), weights_up(rows, -0.25)),
        "shape1": lambda: Systematic.shape("tes", shape_side(0.3, 1480, identifiers)),
        "shape2": lambda: Systematic.shape("jes", *(shape_side(*side, identifiers) for side in JES)),
        "norm": lambda: Systematic.norm("lumi", 0.3, rows.y == 0),
        "normwhere": lambda: Systematic.norm("xsec", 0.5, (rows.y == 0) & (rows.table["njets"] > 2)),
    }
    return [makers[name]() for name in names.split()]


ALL_SOURCES = "weight1 weight2 shape1 shape2 norm normwhere"


# Trainings ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One training of a classifier.

    `options` go to the classifier; `folds` makes it a cross-trained one.
    """

    sources: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    negative: bool = False
    missing: bool = False
    validation: bool = False
    folds: Any = None

    def hashes(self, method: str, folder: Path) -> dict[str, str]:
        """Train, and return the hashes of the model file and of the scores."""
        model, table = self.trained(method)
        model.save(folder / "model.qbdt")
        return {"model": model_hash(folder / "model.qbdt"), "scores": array_hash(model.decision_function(table))}

    def trained(self, method: str) -> tuple[Any, Table]:
        """Return the classifier and the table it was trained on."""
        rows = sample(negative=self.negative)
        table = rows.table if self.folds is None else rows.with_event()
        table = with_missing(table) if self.missing else table
        model: Any = QBDTClassifier(method=method, n_threads=1, **{**SIZES[method], **self.options})
        if self.folds is not None:
            model = CrossTrainedClassifier(model, self.folds)
        more: dict[str, Any] = {}
        if self.validation:
            other = sample(400, seed=8)
            more["validation"] = (other.table, other.y, other.weight)
        given = sources(rows, self.sources, identifiers=self.folds is not None)
        return model.fit(table, rows.y, rows.weight, given, **more), table


EVERYTHING: dict[str, Any] = {
    "categorical_features": ["njets"],
    "monotonic_constraints": {"mass": 1},
    "row_fraction": 0.8,
    "feature_fraction": 0.75,
}
BOTH = {
    "plain": Case(),
    "weight one-sided": Case("weight1"),
    "weight two-sided": Case("weight2"),
    "shape one-sided": Case("shape1"),
    "shape two-sided": Case("shape2"),
    "norm": Case("norm"),
    "norm on some rows": Case("normwhere"),
    "all sources": Case(ALL_SOURCES),
    "categories": Case("weight2 shape1", {"categorical_features": ["njets"]}),
    "monotonic": Case("weight1 shape2", {"monotonic_constraints": {"mass": 1, "pt": -1}}),
    "rows subsampled": Case("weight1", {"row_fraction": 0.6, "random_state": 5}),
    "features subsampled": Case("shape1", {"feature_fraction": 0.5, "random_state": 6}),
    "missing": Case("weight2", missing=True),
    "negative weights": Case("weight1 norm", negative=True),
    "raw negative weights": Case("weight1 norm", {"negative_weights": "raw"}, negative=True),
    "learning rate and depth": Case("norm", {"learning_rate": 0.4, "max_depth": 2, "max_bins": 16}),
    "leaf entries": Case("weight1", {"min_leaf_entries": 300.0}),
    "everything": Case(ALL_SOURCES, EVERYTHING, negative=True, missing=True),
    "everything, raw": Case(ALL_SOURCES, {**EVERYTHING, "negative_weights": "raw"}, negative=True, missing=True),
    "modulo folds": Case(ALL_SOURCES, folds=ModuloFolds(3, "event")),
    "hash folds": Case("weight1 norm", folds=HashFolds(2, ("event",), salt=4)),
}
PAPER_ONLY = {
    "mc_stat": Case("weight1", {"mc_stat": True}),
    "published growth": Case("weight2 shape1", {"growth": "published"}),
    "published growth and mc_stat": Case("norm", {"growth": "published", "mc_stat": True}),
    "equal-width bins": Case(
        "weight1", {"binning": [(20, -3.0, 4.0), (10, 0.0, 5.0), (8, -2.5, 2.5), (6, 0.0, 6.0)], "growth": "published"}
    ),
    "early stopping": Case("weight1", {"n_trees": 30, "early_stopping": 2}, validation=True),
}


def in_parts(method: str, kind: str, n_parts: int, client: Client | None, folder: Path) -> dict[str, str]:
    """Train on events in partitions: in memory, on disk or on a cluster."""
    rows = sample()
    dataset = Dataset.from_arrays(rows.table, rows.y, rows.weight, sources(rows, ALL_SOURCES))
    parts = divide_dataset(dataset, n_parts)
    match kind:
        case "disk":
            events: PartitionedEvents = OutOfCore(parts, folder=folder)
        case "dask":
            events = OnCluster(parts, client=client)
        case _:
            events = PartitionedEvents(parts)
    settings = Settings(method=method, row_fraction=0.8, **SIZES[method])
    write_model(folder / "model.qbdt", train(events, settings, n_threads=1))
    return {"model": model_hash(folder / "model.qbdt")}


PARTITIONED = {
    "1 partition": ("memory", 1),
    "3 partitions": ("memory", 3),
    "7 partitions": ("memory", 7),
    "3 partitions on disk": ("disk", 3),
}


@contextlib.contextmanager
def cluster() -> Iterator[Client]:
    """Two workers for the trainings on Dask."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as workers,
        Client(workers, direct_to_workers=True) as client,
    ):
        yield client


# Exports, runs, old models --------------------------------------------------------------------------------------------

FORMATS = {"cpp": ".h", "onnx": ".onnx", "xgboost": ".json", "tmva": ".xml"}
OLD_MODELS = ("paper", "profile", "paper-folded", "profile-folded")
EXPORTED = ("paper", "profile", "paper-folded")


def qbdt(*arguments: object) -> None:
    """Run a command in this process."""
    said, code = io.StringIO(), None
    words = ["qbdt", *map(str, arguments)]
    with mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            code = end.code
    assert code == 0, said.getvalue()


def export_hashes(model: str, to: str, folder: Path) -> dict[str, str]:
    """Export a committed model file, and return the hash of each file that is written."""
    qbdt("export", MODELS / f"{model}.qbdt", "--to", to, "--out", folder / f"model{FORMATS[to]}")
    return {path.name: file_hash(path) for path in sorted(folder.iterdir())}


ANALYSIS = """
name: frozen
features: [mass, pt, eta]
weight: w
samples:
  higgs: {{role: signal, files: higgs.parquet}}
  ttbar: {{role: background, files: ttbar.parquet}}
systematics:
  scale: {{kind: shape, processes: ttbar, up: {{columns: {{mass: mass_up}}}}}}
  tag: {{kind: weight, processes: ttbar, up: nominal * (1 + 0.3 * tag), down: nominal * (1 - 0.2 * tag)}}
  xs: {{kind: norm, processes: ttbar, size: 0.1}}
folds: {{columns: event}}
training: {{method: {method}, n_trees: 5, n_leaves: 4}}
fit: {{bins: 5}}
"""


def run_hashes(method: str, folder: Path) -> dict[str, str]:
    """Make a whole run from files, and return hashes of its model, templates, workspace and results."""
    rows = sample(2000, seed=12)
    for name, chosen in (("higgs", rows.y == 1), ("ttbar", rows.y == 0)):
        columns = {
            **rows.with_event(),
            "mass_up": rows.table["mass"] * 1.2,
            "tag": rows.table["pt"] < 1,
            "w": rows.weight,
        }
        pq.write_table(pa.table({key: values[chosen] for key, values in columns.items()}), folder / f"{name}.parquet")
    (folder / "analysis.yaml").write_text(ANALYSIS.format(method=method), encoding="utf-8")
    out = folder / "run"
    qbdt("run", folder / "analysis.yaml", "--out", out, "--threads", 1, "--no-figures", "--quiet")
    return {
        "model": model_hash(out / "model.qbdt"),
        **plain_hashes(out / "result.json", "result"),
        **plain_hashes(out / "fit" / "templates.json", "templates"),
        **plain_hashes(out / "fit" / "workspace.json", "workspace"),
    }


def old_model(name: str) -> Case:
    """Return how a committed model file was trained."""
    folds = {"paper-folded": ModuloFolds(2, "event"), "profile-folded": HashFolds(2, ("event",), salt=9)}.get(name)
    size = {"n_trees": 4, "n_leaves": 4} if name.startswith("paper") else {"n_trees": 2, "n_leaves": 3}
    return Case("weight2 shape1", {**size, "max_bins": 8}, missing=True, folds=folds)


def write_old_models() -> None:
    """Train the committed model files anew: only for a new kind of model, never to make a test pass."""
    MODELS.mkdir(exist_ok=True)
    for name in OLD_MODELS:
        old_model(name).trained(name.split("-")[0])[0].save(MODELS / f"{name}.qbdt")


def old_scores(name: str) -> np.ndarray:
    """Read a committed model file and score new events."""
    rows = sample(300, seed=21)
    kind: Any = CrossTrainedClassifier if "folded" in name else QBDTClassifier
    model = kind.load(MODELS / f"{name}.qbdt")
    return np.asarray(model.decision_function(with_missing(rows.with_event() if "folded" in name else rows.table)))


def old_score_hashes(name: str, _: Path) -> dict[str, str]:
    """Return the hash of the scores of a committed model file."""
    return {"scores": array_hash(old_scores(name))}


# All of them ----------------------------------------------------------------------------------------------------------

Frozen = Callable[[Path], dict[str, str]]


def trainings() -> dict[str, Frozen]:
    """Trainings in this process, by name."""
    found: dict[str, Frozen] = {}
    for method in METHODS:
        for name, case in {**BOTH, **(PAPER_ONLY if method == "paper" else {})}.items():
            found[f"{method}: {name}"] = partial(case.hashes, method)
        for name, (kind, n_parts) in PARTITIONED.items():
            found[f"{method}: {name}"] = partial(in_parts, method, kind, n_parts, None)
    return found


def on_cluster(client: Client | None) -> dict[str, Frozen]:
    """Trainings on Dask, by name."""
    return {f"{method}: 3 partitions on Dask": partial(in_parts, method, "dask", 3, client) for method in METHODS}


def exports() -> dict[str, Frozen]:
    """Exports, by model and format."""
    return {f"{model} to {to}": partial(export_hashes, model, to) for model in EXPORTED for to in FORMATS}


def runs() -> dict[str, Frozen]:
    """Whole runs, by method."""
    return {f"{method}: run": partial(run_hashes, method) for method in METHODS}


def scores() -> dict[str, Frozen]:
    """Scores of the committed model files."""
    return {f"{name}: old file": partial(old_score_hashes, name) for name in OLD_MODELS}


def computed(make: Frozen) -> dict[str, str]:
    """Compute the hashes of one case in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return make(Path(folder))
