"""Events of a run that are read again for its report and its diagnosis: the same as those of the analysis file."""

import pytest
import yaml

from qbdt.analysis import run_analysis
from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.eras import split_eras
from qbdt.analysis.loader import load_regions
from qbdt.analysis.run_folder import read_run
from tests.fuzz.runs import ERAS, EVENTS, REGIONS

SCALED = yaml.safe_load(ERAS)
SCALED["samples"]["ttbar"] = {**SCALED["samples"]["ttbar"], "eras": {"b": {"scale": 1.1}}}
"""With a sample that is different in one era."""


@pytest.fixture
def folder(tmp_path):
    for name, content in EVENTS.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("content", [yaml.safe_load(REGIONS), SCALED], ids=["families", "eras and fakes"])
def test_events_are_those_of_the_analysis_file(content, folder):
    analysis = parse_analysis(yaml.safe_dump(content))
    run_analysis(analysis, folder, folder / "run", figures=False, n_threads=1)
    wanted = load_regions(analysis, folder).every_event()
    again = read_run(folder / "run").events
    assert again is not None
    found = again.every_event()
    assert [(s.name, s.events.n_rows, s.events.total) for s in found.samples] == [
        (s.name, s.events.n_rows, s.events.total) for s in wanted.samples
    ]
    assert [source.name for source in found.systematics] == [source.name for source in wanted.systematics]


def test_trees_and_friends_have_the_name_of_the_era():
    text = """
features: [x]
weight: w
tree: ev_{era}
friends: [{files: "{era}/{file}_friend.root", tree: "f_{era}", by: event}]
eras: {a: {}, b: {}}
samples:
  h: {role: signal, files: "{era}/h.root"}
  b: {role: background, files: "{era}/b.root", friends: [{files: "{era}/other.root"}]}
folds: {columns: event}
"""
    eras = split_eras(parse_analysis(text), {})
    assert {era: one.tree for era, one in eras.items()} == {"a": "ev_a", "b": "ev_b"}
    (friend,) = eras["b"].friends
    assert (friend.files, friend.tree) == ("b/{file}_friend.root", "f_b")
    assert eras["a"].samples["h"].friends is None
    (own,) = list(eras["a"].samples["b"].friends or [])
    assert own.files == "a/other.root"
