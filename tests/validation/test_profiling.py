"""The study of what limits the profiled score, small."""

from qbdt.data import HashFolds
from qbdt.data.samples import tautaugamma
from qbdt.training import Settings
from validation import profiling


def test_all_scores_are_fitted(monkeypatch, capsys):
    rule = HashFolds(40, ("event_number",), 1)
    few = tautaugamma(k=2).select(lambda events: rule.assign(events) == 0).with_systematics(["tes", "tauid"])
    monkeypatch.setattr(profiling, "tautaugamma", lambda folder, k: few)
    monkeypatch.setattr(profiling, "SETTINGS", Settings(method="profile", n_trees=10, n_leaves=4))
    monkeypatch.setattr(profiling, "BINS", (4,))
    monkeypatch.setattr(profiling, "COMPARED", 4)
    monkeypatch.setattr("sys.argv", ["profiling", "--share", "3", "--seeds", "1"])
    profiling.main()
    printed = capsys.readouterr().out
    for name in ("F alone", "coefficients × 1.25", "at least 50 events", "× the events"):
        assert name in printed
    assert "nan" not in printed
