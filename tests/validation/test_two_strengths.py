"""The study of ggH and VBF, small and on events made here."""

import numpy as np
import pytest

from qbdt import Dataset, Events, Sample, Systematic
from qbdt.data import Role
from validation import two_strengths

N = 1500
CENTRES = {"ggh": (2.0, 0.0, 60.0), "vbf": (0.0, 2.0, 60.0), "dy": (0.0, 0.0, 900.0)}


@pytest.fixture
def dataset():
    rng = np.random.default_rng(1)
    samples = []
    for name, (x, y, total) in CENTRES.items():
        columns = {"x": rng.normal(x, 1, N), "y": rng.normal(y, 1, N)}
        events = Events(columns, np.full(N, total / N), {"row": np.arange(N)})
        samples.append(Sample(name, Role.BACKGROUND if name == "dy" else Role.SIGNAL, events))
    return Dataset(samples, [Systematic.norm("xs", 0.1, processes=["dy"])])


def test_all_ways_measure_both_strengths(dataset, monkeypatch):
    pytest.importorskip("xgboost")
    monkeypatch.setattr(two_strengths, "TRIED", two_strengths.TRIED[:1])
    monkeypatch.setattr(two_strengths, "MOST", 20)
    monkeypatch.setattr(two_strengths, "CELLS", 10)
    found = two_strengths.run(dataset, N, 8, 0, 1)
    assert len(found) == 4
    for sigmas in found.values():
        assert all(0.1 < sigma < 0.6 for sigma in sigmas[:2])
        assert 0 < sigmas[2] <= sigmas[0] * sigmas[1]
    assert "± " in str(two_strengths.summarise([found, found]))


def test_some_events_stand_for_all(dataset):
    some, scale = two_strengths.divide(dataset, N // 3, 0)
    rows = some.sample("dy").events.n_rows
    assert 0.25 * N < rows < 0.42 * N
    assert scale == pytest.approx(N / rows)
