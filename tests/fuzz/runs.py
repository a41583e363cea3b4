"""Whole runs as fuzzed input: small analyses that use most keys of the file, and the events that they read."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from qbdt.analysis import run_analysis
from qbdt.analysis.analysis_file import parse_analysis

N = 120
"""Events of each sample."""

SAMPLES = """
  ggH: {role: signal, files: ggH.parquet}
  VBF: {role: signal, files: VBF.parquet, scale: 2.0}
  ttbar: {role: background, files: ttbar.parquet, label: t, color: red}
  wjets: {role: background, files: [wjets.parquet], selection: x < 9}
"""

REGIONS = f"""
name: regions
features: [x, y, ratio]
columns: {{ratio: y / (1 + abs(x))}}
weight: w
missing: [-999]
samples: {SAMPLES}
  recorded: {{role: data, files: recorded.parquet}}
systematics:
  scale: {{kind: shape, processes: [ttbar, ggH], up: {{columns: {{x: x + 0.1}}}}, down: {{columns: {{x: x - 0.1}}}}}}
  btag: {{kind: weight, up: nominal * 1.1, down: nominal * 0.9, decorrelate: process, norm: {{wjets: 0.1}}}}
  lumi: {{kind: norm, processes: "*", size: 0.02, lognormal: true}}
  pdf: {{kind: replicas, weights: pdf, processes: ttbar, components: 1}}
regions:
  signal: {{selection: y < 1, blind: true, draw: [x]}}
  control: {{selection: y > 1, observable: x, bins: 2, range: [-3, 3], title: x}}
folds: {{by: hash, columns: [event], k: 2, salt: 1}}
training: {{method: paper, n_trees: 2, n_leaves: 3, systematics: [scale, lumi]}}
fit:
  {{bins: 3, scan: false, free: [wjets], parameters: {{mu_g: ggH, mu_v: VBF}}, groups: {{g: [scale]}},
   bounds: {{mu_g: [0, 9]}}}}
"""

STRENGTHS = f"""
name: strengths
features: [x, y]
weight: w
samples: {SAMPLES}
systematics:
  scale: {{kind: shape, processes: ttbar, up: {{columns: {{x: x + 0.1}}}}}}
  xs: {{kind: norm, size: {{ttbar: 0.1, wjets: [-0.1, 0.2]}}}}
folds: {{columns: event}}
training:
  {{method: profile, n_trees: 2, n_leaves: 3, strengths: {{mu_g: ggH, mu_v: VBF}}, free: [wjets], at: {{scale: 0.5}}}}
fit: {{bins: 4, scan: false, of_interest: [mu_g]}}
"""

ERAS = f"""
name: eras
features: [x, z]
weight: w
friends: [{{files: "{{file}}_friend.parquet", by: event}}]
eras: {{a: {{luminosity: 10, weight: w * 2}}, b: {{luminosity: 20, selection: x > -2}}}}
samples: {SAMPLES}
  recorded: {{role: data, files: recorded.parquet}}
  fakes: {{role: background, from_data: {{samples: recorded, subtract: wjets, selection: y > 0, weight: 0.1 + 0 * y}}}}
systematics:
  tag: {{kind: weight, up: nominal * 1.1, eras: a, correlated: false}}
folds: {{columns: event}}
training: {{method: paper, n_trees: 2, n_leaves: 3}}
fit: {{bins: 3, scan: false}}
"""

MASS = f"""
name: mass
features: [x, y]
weight: w
samples: {SAMPLES}
systematics:
  mass: {{kind: shape, processes: [ggH, VBF], up: {{columns: {{x: x + 1}}}}, down: {{columns: {{x: x - 1}}}}}}
  tilt: {{kind: weight, processes: ttbar, up: nominal * (1 + 0.1 * x / 3)}}
regions:
  signal: {{selection: y < 1}}
  control: {{selection: y > 1, observable: yield}}
folds: {{columns: event, k: 3}}
training:
  {{method: profile, n_trees: 2, n_leaves: 3, of_interest: [mass, mu], free: ttbar, with: control regions,
   negative_weights: raw}}
fit: {{bins: 4, scan: false, contours: false, binning: cells, free: ttbar}}
"""

FLAT = REGIONS.replace(
    "up: nominal * 1.1, down: nominal * 0.9, decorrelate", "up: x < 9, down: nominal * 0.9, decorrelate"
)
"""A source that can make the few signal events vanish: the likelihood falls for ever while a strength runs away."""

SEEDS = tuple(yaml.safe_load(text) for text in (REGIONS, STRENGTHS, ERAS, MASS, FLAT))


def _event_files() -> dict[str, bytes]:
    """Content of the files that the analyses read."""
    rng, found = np.random.default_rng(3), {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        for name, centre, weight in (
            ("ggH", 0.8, 0.1),
            ("VBF", -2.2, 0.05),
            ("ttbar", -0.5, 0.6),
            ("wjets", -0.3, 0.4),
            ("recorded", -0.4, 1.0),
        ):
            columns = {"x": rng.normal(centre, 1, N), "y": rng.normal(-centre, 1, N), "w": np.full(N, weight)}
            pdf = pa.array(list(1 + 0.1 * rng.normal(size=(N, 4))))
            pq.write_table(pa.table({**columns, "event": np.arange(N), "pdf": pdf}), path)
            found[f"{name}.parquet"] = path.read_bytes()
            pq.write_table(pa.table({"event": np.arange(N), "z": rng.normal(centre, 1, N)}), path)
            found[f"{name}_friend.parquet"] = path.read_bytes()
    return found


EVENTS = _event_files()


def use_analysis(content: Any, folder: Path) -> None:
    """Run an analysis of plain data on the events."""
    for name, events in EVENTS.items():
        (folder / name).write_bytes(events)
    text = yaml.safe_dump(content, allow_unicode=True)
    run_analysis(parse_analysis(text), folder, folder / "run", figures=False, n_threads=1)
