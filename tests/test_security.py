"""Each sentence of docs/security.md about what a stranger's file cannot do."""

import builtins
import os
import pickle
import re
import time
from pathlib import Path

import pytest
import uproot

from qbdt.analysis.analysis_file import parse_analysis
from qbdt.data import Expression
from qbdt.data.readers import read_events
from qbdt.errors import QBDTError
from qbdt.inference.workspace import read_workspace
from qbdt.models import read_any_model
from qbdt.models.export import export_model
from qbdt.report.document import Figure
from qbdt.report.page import write_report
from qbdt.trees.ensemble import Ensemble
from tests.fuzz.runner import try_input
from tests.fuzz.targets import BOMB, MODELS, TARGETS
from tests.report.pages import small_document
from tests.trees.test_ensemble import make_chain

PAGE = Path(__file__).parents[1] / "docs" / "security.md"

XML = """<?xml version="1.0"?>
<!DOCTYPE Combination [<!ENTITY secret SYSTEM "{secret}">]>
<Combination OutputFilePrefix="x"><Input>&secret;</Input></Combination>
"""


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self._folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self._folder,)


def fuzz(target, n=4):
    """Try some damaged inputs after the seeds; `make fuzz` tries millions."""
    first = len(TARGETS[target].seeds)
    return [finding for number in range(first, first + n) if (finding := try_input(target, number)) is not None]


def test_every_sentence_has_its_test():
    sentences = re.findall(r"^- (.*?\)(?=\n\n|\n- |\n?$))", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(sentences) >= 15
    for sentence in sentences:
        name = re.search(r"\(`(test_\w+)`\)$", sentence.replace("\n", " "))
        assert name is not None, sentence
        assert name[1] in globals(), name[1]


def test_a_pickle_is_no_model(tmp_path):
    (tmp_path / "model.qbdt").write_bytes(pickle.dumps(Evil(tmp_path / "made")))
    with pytest.raises(QBDTError):
        read_any_model(tmp_path / "model.qbdt")
    assert not (tmp_path / "made").exists()


def test_reading_a_model_opens_nothing_else(monkeypatch):
    read_any_model(MODELS[0])  # imports are done
    opened = []
    whole = builtins.open

    def watch(file, *arguments, **options):
        opened.append(Path(file))
        return whole(file, *arguments, **options)

    monkeypatch.setattr(builtins, "open", watch)
    monkeypatch.setattr("io.open", watch)
    read_any_model(MODELS[0])
    assert {path for path in opened if path.suffix not in (".py", ".pyc")} <= {MODELS[0]}


@pytest.mark.parametrize("target", ["model", "model file"])
def test_damaged_models_end_in_an_error(target):
    assert fuzz(target) == []


def test_names_in_exports_are_quoted(tmp_path):
    name = 'x"); system("true"); //<x>'
    export_model(Ensemble((name,), (make_chain(2),)), tmp_path / "m.h", "cpp")
    export_model(Ensemble((name,), (make_chain(2),)), tmp_path / "m.xml", "tmva")
    assert 'system("true")' not in (tmp_path / "m.h").read_text().replace('\\"', "")
    assert "<x>" not in (tmp_path / "m.xml").read_text()


def test_an_analysis_runs_nothing(tmp_path):
    for text in (
        f"features: !!python/object/apply:os.mkdir ['{tmp_path / 'made'}']",
        "features: !!python/name:os.mkdir",
    ):
        with pytest.raises(QBDTError):
            parse_analysis(text)
    for text in ("__import__('os').getcwd()", "pt[0].__class__()", "(lambda: 1)()", "[x for x in pt]"):
        with pytest.raises(QBDTError):
            Expression(text)
    assert not (tmp_path / "made").exists()


def test_bombs_are_refused_at_once():
    begin = time.process_time()
    for text in (BOMB, "features: &a [*a]", "features: " + "[" * 5000):
        with pytest.raises(QBDTError):
            parse_analysis(text)
    for expression in ("(" * 5000 + "pt" + ")" * 5000, "+".join(["pt"] * 5000), "9" * 5000):
        with pytest.raises(QBDTError):
            Expression(expression)
    assert time.process_time() - begin < 10


def test_names_do_not_become_paths():
    assert fuzz("names", 20) == []


def test_objects_in_event_files_are_not_made(tmp_path):
    with uproot.recreate(tmp_path / "a.root") as file:
        file["t"] = "only text, under the name of a tree"
    with pytest.raises(QBDTError):
        read_events(str(tmp_path / "a.root"), ["a"], tree="t")
    (tmp_path / "a.parquet").write_bytes(pickle.dumps(Evil(tmp_path / "made")))
    with pytest.raises(QBDTError):
        read_events(str(tmp_path / "a.parquet"), ["a"])
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("target", [".root", ".parquet", ".feather", ".csv"])
def test_damaged_events_end_in_an_error(target):
    assert fuzz(target) == []


def test_xml_entities_are_not_followed(tmp_path):
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "m.xml").write_text(XML.format(secret=(tmp_path / "secret").as_uri()))
    with pytest.raises(QBDTError) as refused:
        read_workspace(tmp_path / "m.xml")
    assert "a secret" not in str(refused.value)


def test_damaged_workspaces_end_in_an_error(tmp_path):
    assert fuzz("workspace") == []
    (tmp_path / "w.json").write_bytes(pickle.dumps(Evil(tmp_path / "made")))
    with pytest.raises(QBDTError):
        read_workspace(tmp_path / "w.json")
    assert not (tmp_path / "made").exists()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_report(small_document(), tmp_path_factory.mktemp("report")).read_text(encoding="utf-8")


def test_the_policy_of_a_report_is_strict(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    for kind in ("script-src", "style-src"):
        assert re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", rules[kind].replace("&#43;", "+"))
    assert "unsafe" not in policy[1]


def test_names_in_reports_are_escaped(page):
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_cells_of_tables_are_no_formulas():
    cells = Figure("f", None, "", {"=1+1": ["@x", "-2", "+3", "ttbar"]}).csv().splitlines()
    assert not [cell for cell in cells if cell[0] in "=@+-"]


def test_damaged_run_folders_end_in_an_error():
    assert fuzz("run folder") == []
