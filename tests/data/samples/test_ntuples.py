"""The bundled sample as ROOT files is the bundled sample."""

import numpy as np
import pytest

from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.loader import load
from qbdt.data.samples.bundled import tautaugamma, write_bundled_ntuples
from qbdt.data.samples.objects.reconstruction import EFFICIENCIES, FEATURES, SHAPES
from qbdt.errors import OutputError

WEIGHTS = "".join(f"  {s}: {{kind: weight, up: weight_{s}_up, down: weight_{s}_down}}\n" for s in EFFICIENCIES)
SHIFTS = "".join(f"  {s}: {{kind: shape, up: {{tree: {s}_up}}, down: {{tree: {s}_down}}}}\n" for s in SHAPES)
ANALYSIS = f"""
features: [{", ".join(FEATURES)}]
tree: nominal
weight: weight
samples:
  signal: {{role: signal, files: signal.root}}
  background: {{role: background, files: background.root}}
systematics:
{WEIGHTS}{SHIFTS}folds: {{columns: event_number}}
"""


def test_files_hold_the_bundled_sample(tmp_path):
    write_bundled_ntuples(tmp_path / "data")
    with pytest.raises(OutputError, match=r"signal\.root exists; force=True overwrites it"):
        write_bundled_ntuples(tmp_path / "data")
    read, bundled = load(parse_analysis(ANALYSIS, "a.yaml"), tmp_path / "data"), tautaugamma(k=2)
    for source in bundled.systematics:
        for direction, _ in source.directions:
            other = read.varied(source.name, direction)
            for process, events in bundled.varied(source.name, direction).items():
                assert np.array_equal(other[process].identifier("event_number"), events.identifier("event_number"))
                np.testing.assert_allclose(other[process].weight, events.weight, rtol=1e-12)  # a product, once more
                for name in FEATURES:
                    assert np.array_equal(other[process].column(name), events.column(name))
