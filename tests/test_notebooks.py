"""What a notebook shows of models, datasets and results; and the notebook of the documentation, run as it is."""

import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context

from qbdt import Dataset, Events, QBDTClassifier, Sample, Systematic
from qbdt.data import Role
from qbdt.data.folds import ModuloFolds
from qbdt.inference.fit import run_fit
from qbdt.inference.settings import FitSettings
from qbdt.models.cross_training import cross_train
from qbdt.statistics import Expectation, SourceExpectation
from qbdt.training.methods import train
from qbdt.training.settings import Settings

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def dataset():
    rng = np.random.default_rng(1)
    samples = [
        Sample(name, role, Events({"<x>": rng.normal(c, 1, 500)}, np.full(500, w), {"event": np.arange(500)}))
        for name, role, c, w in (("s & co", Role.SIGNAL, 1, 0.01), ("b", Role.BACKGROUND, -1, 0.2))
    ]
    return Dataset(samples, [Systematic.norm("xs", 0.1, processes=["b"])], ModuloFolds(2, "event"))


def parsed(text):
    """Elements of a piece of HTML; fails where it is not well formed."""
    return ET.fromstring(text)


def texts(tree, tag):
    return ["".join(element.itertext()) for element in tree.iter(tag)]


def test_dataset(dataset):
    tree = parsed(dataset._repr_html_())
    assert texts(tree, "strong") == ["Dataset, 2 folds by modulo of event"]
    assert texts(tree, "td")[:8] == ["s & co", "signal", "500", "5", "b", "background", "500", "100"]
    assert texts(tree, "summary") == ["1 systematic source", "1 feature"]
    assert texts(parsed(dataset.with_folds(None)._repr_html_()), "strong") == ["Dataset, no folds"]


def test_summary_of_a_dataset(dataset):
    assert texts(parsed(dataset.summary()._repr_html_()), "caption") == ["Samples", "Systematic sources"]


def test_training_and_what_it_expects(dataset):
    training = train(dataset, Settings(method="paper", n_trees=2, n_leaves=3))
    tree = parsed(training._repr_html_())
    assert texts(tree, "strong") == ["2 trees of up to 3 leaves, 1 feature, 1 systematic source"]
    assert texts(tree, "td")[:2] == ["<x>", "100.0"]
    assert str(training).startswith("2 trees of up to 3 leaves")
    expected = Expectation(0.5, 0.7, unprofiled=0.9, sources=(SourceExpectation("xs", 0.2, 0.4, 0.3),))
    profiled = type(training)(training.ensemble, training.binning, training.settings, expectations=(expected,))
    title = "Expected by the training, for its own events, on folds held out"
    assert title in texts(parsed(profiled._repr_html_()), "summary")


def test_cross_training(dataset):
    tree = parsed(cross_train(dataset, Settings(method="paper", n_trees=2, n_leaves=3))._repr_html_())
    assert texts(tree, "strong") == ["2 of 2 folds by event: 2 + 2 trees"]
    assert texts(tree, "td")[:3] == ["<x>", "100.0", "100.0"]
    assert texts(tree, "summary") == ["Trained on", "Systematic sources", "Settings"]


def test_fit_results(dataset):
    result = run_fit(dataset, FitSettings(transform="none", binning="equal_signal", bins=3, scan=False))
    tree = parsed(result._repr_html_())
    assert texts(tree, "strong") == [result.expected.headline]
    assert result.expected.headline.startswith(f"Z = {result.expected.z:.3f} (")
    assert len(texts(tree, "summary")) == len(result.tables()) - 2
    assert texts(parsed(result.expected._repr_html_()), "strong") == [result.expected.headline]


def test_classifier_keeps_what_scikit_learn_shows():
    X, y = np.arange(40.0).reshape(20, 2), np.repeat([1, 0], 10)
    model = QBDTClassifier(method="paper", n_trees=2, n_leaves=2)
    assert "trees of up to" not in model._repr_html_()
    model.fit(X, y)
    for shown in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert shown.startswith("<div><strong>2 trees of up to 2 leaves")
        assert "<summary>Parameters</summary>" in shown
        HTMLParser().feed(shown)
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
