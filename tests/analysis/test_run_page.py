"""Reports of runs and of fits, from their folders."""

import json
import re

import numpy as np
import pytest

from qbdt import Dataset, Events, Sample
from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.run import run_analysis
from qbdt.analysis.run_histograms import fill_unit_area
from qbdt.analysis.run_page import run_document
from qbdt.data import Role
from qbdt.errors import ConfigError
from qbdt.report.page import render_markdown

ANALYSIS = """
name: "<b>synthetic</b>"
dataset: {name: inferno, options: {n: 2000, seed: 1, k: 2}}
training: {method: paper, n_trees: 3}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("run")
    run_analysis(parse_analysis(ANALYSIS, "synthetic.yaml"), target, target, n_threads=1, figures=False)
    return target


def names_of(document):
    return [figure.name for figure in document.figures()]


def test_a_run_has_all_parts(folder):
    document = run_document(folder)
    assert [s.title for s in document.sections] == [
        "Result",
        "Training",
        "Inputs",
        "Variables",
        "Scores",
        "Sources",
        "Settings",
    ]
    names = names_of(document)
    assert len(names) == len(set(names))
    expected = {"prefit", "postfit", "scan", "roc", "train-and-test", "ranking", "pulls", "correlation", "first-tree"}
    assert expected <= set(names)
    assert sum(name.startswith("variable-") for name in names) == 3
    assert sum(name.startswith("envelope-") for name in names) == 3
    result = json.loads((folder / "result.json").read_text())["fit"]["expected"]
    assert document.headlines[0].value == f"{result['z']:.2f}"
    assert {"variable-x0", "envelope-rate"} <= set(names)
    notes = render_markdown(document)
    assert "SHA-256" in notes
    assert "options: {n: 2000, seed: 1, k: 2}" in notes
    outside_code = re.sub(r"```yaml.*?```", "", notes, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)<b>", outside_code)


def test_numbers_of_something_have_a_bin_each():
    rng = np.random.default_rng(1)
    events = Events({"jets": rng.integers(0, 4, 500), "x": rng.normal(0, 1, 500)}, np.ones(500))
    data = Dataset([Sample("s", Role.SIGNAL, events), Sample("b", Role.BACKGROUND, events)], [])
    edges, shapes = fill_unit_area(data, "jets")
    assert edges.tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5]
    assert shapes[Role.SIGNAL][0].sum() == pytest.approx(1)
    assert len(fill_unit_area(data, "x")[0]) == 41


def test_a_fit_alone_has_a_report_without_training(folder):
    document = run_document(folder / "fit")
    assert "postfit" in names_of(document)
    assert not any(name.startswith(("variable-", "tree", "roc")) for name in names_of(document))
    assert "give the folder of the data" in render_markdown(document)


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"no fit\.json"):
        run_document(tmp_path)
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(ConfigError, match="qbdt reproduce"):
        run_document(tmp_path)
    (tmp_path / "study.json").unlink()
    (tmp_path / "fit.json").write_text("{")
    with pytest.raises(ConfigError, match=r"fit\.json"):
        run_document(tmp_path)
