"""An analysis of two signals, its events and its run."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qbdt.analysis.analysis_file import read_analysis
from qbdt.analysis.run import run_analysis

N = 1500
CENTRES = {"ggH": (2.0, 0.0, 60.0), "VBF": (0.0, 2.0, 60.0), "ttbar": (0.0, 0.0, 900.0)}

TEXT = """
name: two signals
features: [x, y]
weight: w
samples:
  ggH: {role: signal, files: ggH.parquet}
  VBF: {role: signal, files: VBF.parquet}
  ttbar: {role: background, files: ttbar.parquet}
systematics:
  tilt: {kind: weight, processes: ttbar, up: nominal * (1 + 0.1 * x / 3)}
  xs: {kind: norm, processes: ttbar, size: 0.1}
folds: {columns: event}
training: {n_trees: 10, n_leaves: 4, strengths: {mu_ggH: ggH, mu_VBF: VBF}}
fit: {bins: 12, contours: true}
"""


@pytest.fixture(scope="package")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    rng = np.random.default_rng(5)
    for name, (x, y, total) in CENTRES.items():
        columns = {
            "x": rng.normal(x, 1, N),
            "y": rng.normal(y, 1, N),
            "event": np.arange(N),
            "w": np.full(N, total / N),
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    (folder / "analysis.yaml").write_text(TEXT)
    return folder


@pytest.fixture(scope="package")
def run(folder):
    return run_analysis(read_analysis(folder / "analysis.yaml"), folder, folder / "out", n_threads=1, figures=False)
