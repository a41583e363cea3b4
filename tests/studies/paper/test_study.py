"""The whole study on a small imitation of the events: complete, resumable, the same every time."""

import json
import math
from dataclasses import replace

import pytest

from qbdt.errors import ConfigError
from qbdt.report.document import Figure, Statement
from qbdt.studies.paper import measurement, study
from qbdt.studies.paper.paper_methods import METHODS, PROFILED, get_method
from qbdt.studies.paper.paper_tables import make_main_table
from qbdt.studies.paper.random_halves import HalfTask, evaluate_half
from qbdt.studies.paper.statements import make_statements
from qbdt.studies.paper.study import StudyOptions, reproduce
from qbdt.studies.paper.study_page import make_document
from qbdt.tables import Table
from tests.studies.paper.events import imitation

CHOSEN = (
    get_method("QBDT7, 7 leaves"),
    get_method("QBDT7"),
    *(replace(get_method(name), stands_for=None) for name in ("QBDT0", "GradBDT")),
    get_method(PROFILED),
)
"""Fits by pyhf, which take seconds, are made of methods that stand for a column of the paper: of QBDT7 only."""
OPTIONS = StudyOptions(trees=2, halves=2, jobs=1)


@pytest.fixture(scope="module", autouse=True)
def few_edges():
    """Optimised edges, which take most of the time, are found twice and not five times for each method."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "EDGE_FOLDS", 2)
        yield


@pytest.fixture(scope="module")
def data():
    return imitation()


@pytest.fixture(scope="module")
def done(data, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "load_events", lambda folder: data)
        return reproduce(OPTIONS, tmp_path_factory.mktemp("study"), methods=CHOSEN)


def test_everything_is_measured(done):
    assert set(done.published) == set(done.halves) == {m.name for m in CHOSEN}
    for name in done.published:
        assert set(done.published[name]["cases"]) == {"I", "II", "III"}
        assert len(done.values(name, "z_full")) == 4
        assert all(math.isfinite(z) and z > 0 for z in done.values(name, "z_full"))
    table = make_main_table(done)
    assert [row[0] for row in table.rows] == [m.name for m in CHOSEN]


def test_the_same_seed_gives_the_same_numbers_and_nothing_is_redone(done, data, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "load_events", lambda folder: data)
    again = reproduce(OPTIONS, tmp_path, methods=CHOSEN[:1])
    for name in again.published:
        assert again.published[name] == done.published[name]
        assert again.halves[name] == done.halves[name]
    before = (tmp_path / "study.json").read_bytes()
    (tmp_path / "steps" / "half-01-b-qbdt7-7-leaves.json").unlink()
    monkeypatch.setattr(study, "evaluate_published_split", lambda *arguments: pytest.fail("done already"))
    reproduce(OPTIONS, tmp_path, methods=CHOSEN[:1])
    assert (tmp_path / "study.json").read_bytes() == before


def test_another_seed_is_another_study(done, data, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "load_events", lambda folder: data)
    with pytest.raises(ConfigError, match="another seed"):
        reproduce(replace(OPTIONS, seed=2), done.folder, methods=CHOSEN)
    first, second = (evaluate_half(HalfTask("QBDT0", 0, False, 2, seed), data) for seed in (1, 2))
    assert first["z_full"] != second["z_full"]


def test_processes_give_the_numbers_of_one_process(done):
    task = HalfTask("QBDT0", 1, True, OPTIONS.trees, OPTIONS.seed)
    assert evaluate_half(task, done.data) == done.halves["QBDT0"][1][1]


def test_statements_are_computed(done):
    found = make_statements(done)
    assert found
    assert all(isinstance(s, Statement) and s.evidence for s in found)
    # Not the paper's events: nothing is said about reproducing its significances.
    assert not any("come out within" in s.claim for s in found)
    better = replace(done, halves={**done.halves, "QBDT7": _raised(done.halves["QBDT7"])})
    verdicts = {s.claim: s.verdict for s in make_statements(better)}
    assert verdicts["Systematics in training: QBDT7 beats QBDT0."] == "holds"


def _raised(halves):
    """The same values, with the last digits of nothing but a constant added."""
    return {i: [{**side, "z_full": side["z_full"] + 100 + 1e-3 * i} for side in sides] for i, sides in halves.items()}


def test_the_report_has_all_parts(done):
    document = make_document(done)
    titles = [section.title for section in document.sections]
    assert titles[0] == "Result"
    assert titles[-1] == "Settings"
    figures = list(document.figures())
    names = [figure.name for figure in figures]
    assert len(names) == len(set(names))
    assert {"roc", "formula", "training-curves", "variable-pt-lep", "correlation-iii-qbdt7"} <= set(names)
    assert {"envelope-tes-qbdt-profiled", "halves-z-full-optimised", "halves-delta-mu-optimised"} <= set(names)
    assert all(isinstance(f, Figure) and f.csv().count("\n") > 1 for f in figures)
    tables = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    assert any("0.83" in "".join(row) for row in tables[0].rows)


def test_missing_packages_are_left_out_and_named(data, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "load_events", lambda folder: data)
    absent = replace(METHODS[3], package="no_such_package")
    found = reproduce(replace(OPTIONS, halves=0), tmp_path, methods=(CHOSEN[0], absent))
    assert found.skipped == (absent.name,)
    assert absent.name not in found.published


def test_options_are_checked(tmp_path):
    with pytest.raises(ConfigError, match="trees=0"):
        StudyOptions(trees=0)
    with pytest.raises(ConfigError, match="no such folder"):
        StudyOptions(data=tmp_path / "absent")


def test_study_file_is_plain_data(done):
    content = json.loads((done.folder / "study.json").read_text())
    assert set(content) == {"settings", "published", "halves", "provenance"}
    assert content["provenance"]["versions"]["qbdt"] == content["settings"]["qbdt"]
