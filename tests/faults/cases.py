"""Commands that write: what they start from, and how they are called."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ANALYSIS = """\
name: small
features: [x, y]
weight: w
samples:
  higgs: {role: signal, files: higgs.parquet}
  ttbar: {role: background, files: ttbar.parquet}
systematics:
  scale: {kind: shape, processes: ttbar, up: {columns: {x: x + 0.05}}}
  xs: {kind: norm, processes: ttbar, size: 0.1}
folds: {columns: event}
training: {method: METHOD, n_trees: 2, n_leaves: 3}
fit: {bins: 3, scan: false}
"""

REGIONS = """\
regions:
  signal: {selection: y < 0.5}
  control: {selection: y > 0.5, observable: x, bins: 2, range: [-3, 3]}
"""

MEASURED = """\
name: measured
features: [x, y]
weight: w
samples:
  higgs: {role: signal, files: higgs.parquet}
  vbf: {role: signal, files: vbf.parquet}
  ttbar: {role: background, files: ttbar.parquet}
systematics:
  mass: {kind: shape, processes: [higgs, vbf], up: {columns: {x: x + 1}}, down: {columns: {x: x - 1}}}
  scale: {kind: shape, processes: ttbar, up: {columns: {y: y + 0.3}}, down: {columns: {y: y - 0.3}}}
regions:
  signal: {selection: y < 1.5}
  control: {selection: y > 1.5, observable: yield}
folds: {columns: event}
training:
  {method: profile, n_trees: 1, n_leaves: 3, strengths: {mu_g: higgs, mu_v: vbf}, of_interest: [mu_g, mu_v],
   free: ttbar, with: control regions, at: {scale: 0.5}}
fit: {bins: 5, scan: false, contours: false, binning: cells, free: ttbar}
"""

N = 300


@dataclass(frozen=True)
class Case:
    """A command.

    Attributes
    ----------
    words
        Command line.
    before
        Command lines that make what it starts from.
    again
        Options with which it is started again after a fault; not for commands that write their command line down.
    in_turn
        Whether every operation meets one fault, in turn, and not the first of several of one kind all of them: for
        commands with hundreds of operations, of kinds that other cases try.
    """

    words: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    again: tuple[str, ...] = ()
    in_turn: bool = False


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


TRAIN = _split("train paper.yaml -o m.qbdt -q -j 1")
SCORED = _split("run paper.yaml -o run --no-figures -q -j 1")
FIT = _split("fit run/scored/scored.yaml -o fit --no-figures -q")


CASES = {
    "init": Case(_split("init mine.yaml"), again=("--force",)),
    "train, paper": Case(TRAIN, again=("--force",)),
    "train, resumed": Case((*TRAIN, "--resume"), (TRAIN,)),
    "train, profile": Case(_split("train profile.yaml -o m.qbdt -q -j 1"), again=("--force",)),
    "run, paper": Case(SCORED),
    "run, profile": Case(_split("run profile.yaml -o run --no-figures -q -j 1"), in_turn=True),
    "run, on disk": Case((*SCORED, "--memory", "25kB")),
    "run, regions": Case(_split("run regions.yaml -o run --no-figures -q -j 1"), in_turn=True),
    "run, measured": Case(_split("run measured.yaml -o run --no-figures -q -j 1"), in_turn=True),
    "run, other fit": Case(_split("run other.yaml -o run --no-figures -q -j 1"), (SCORED,)),
    "fit": Case((*FIT, "--force"), (SCORED,)),
    "fit, replaced": Case((*FIT, "--force"), (SCORED, FIT)),
    "score, root": Case(_split("score paper.yaml -m m.qbdt -o s.root -q --force -j 1"), (TRAIN,)),
    "score, parquet": Case(_split("score paper.yaml -m m.qbdt -o s -q --force -j 1"), (TRAIN,)),
    "export, cpp": Case(_split("export m.qbdt --to cpp --force"), (TRAIN,)),
    "export, xgboost": Case(_split("export m.qbdt --to xgboost --force"), (TRAIN,)),
    "export, onnx": Case(_split("export m.qbdt --to onnx --force"), (TRAIN,)),
    "plot": Case(_split("plot paper.yaml -o plots -q --force"), in_turn=True),
    "report": Case(_split("report run -q"), (SCORED,), in_turn=True),
    "diagnose": Case(_split("diagnose run --no-sizes --repeats 1 -q --force"), (SCORED,)),
    "compare": Case(_split("compare paper.yaml -o comparison --budget 2 -j 1 -q --method LightGBM"), in_turn=True),
    "tune": Case(_split("tune paper.yaml -o study --trials 1 --inner 2 -q"), in_turn=True),
}


def write_inputs(folder: Path) -> None:
    """Write small events and the analyses that read them."""
    rng = np.random.default_rng(3)
    for name, centre, weight in (("higgs", 0.8, 0.1), ("ttbar", -0.5, 0.5), ("vbf", -2.2, 0.1)):
        columns = {"x": rng.normal(centre, 1, N), "y": rng.normal(-centre, 1, N), "w": np.full(N, weight)}
        table = pa.table({**columns, "event": np.arange(N)})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=N // 3)
    paper = ANALYSIS.replace("METHOD", "paper")
    texts = {
        "paper": paper,
        "profile": ANALYSIS.replace("METHOD", "profile").replace("n_trees: 2", "n_trees: 1"),
        "regions": paper + REGIONS,
        "measured": MEASURED,
        "other": paper.replace("bins: 3", "bins: 4"),
    }
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
