"""qbdt export as a user meets it."""

import json

import pytest

from tests.cli.inside import qbdt
from tests.cli.test_train import ANALYSIS

pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    (folder / "a.yaml").write_text(ANALYSIS)
    assert qbdt("train", "a.yaml", "-o", "m.qbdt", "-j", 1, cwd=folder).returncode == 0
    return folder


def test_export_checks_itself_on_cuts_and_events(trained):
    done = qbdt("export", "m.qbdt", "--to", "onnx", "--events", "a.yaml", "--json", cwd=trained)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["files"] == ["m.onnx"]
    checked = {check["what"] for check in content["checks"]}
    assert {"around every cut", "missing values", "signal", "background__r_up"} <= checked
    assert not [what for what in checked if "__norm_" in what]  # the same events as the nominal ones
    assert all(check["difference"] == 0 for check in content["checks"])
    done = qbdt("export", "m.qbdt", "--to", "onnx", cwd=trained)
    assert (done.returncode, done.stderr) == (2, "qbdt: m.onnx exists; --force overwrites it\n")


def test_warnings_say_what_the_format_cannot_hold(trained):
    done = qbdt("export", "m.qbdt", "--to", "tmva", "-o", "w.xml", cwd=trained)
    assert done.returncode == 0, done.stderr
    assert "wrote w.fold0.xml, w.fold1.xml, w.tmva-index.json\n  around every cut: " in done.stdout
    assert "warning: leaves and features are single-precision numbers" in done.stderr
    assert "warning: the reader of these files must still choose the model of an event's fold" in done.stderr
