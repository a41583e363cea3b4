"""The trees that the paper's author published, on the paper's own events."""

import json

import numpy as np
import pytest
import uproot

from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.systematic import Systematic
from qbdt.training.methods import train
from qbdt.training.settings import Settings

pytestmark = pytest.mark.shared

BINS = {
    "pt_lep": (60, 20, 80),
    "pt_tau": (60, 20, 80),
    "pt_pho": (70, 10, 80),
    "pt_met": (60, 0, 60),
    "m_lephad": (60, 10, 120),
    "m_lephadpho": (75, 50, 150),
    "m_lephadmet": (80, 20, 180),
    "m_lephadphomet": (65, 70, 200),
}
SOURCES = ("tes", "tauid", "met", "leppt", "lepid", "phopt", "phoid")


def read(path):
    with uproot.open(path) as file:
        tree = file["NOMINAL_train"]
        return Events({n: tree[n].array(library="np") for n in BINS}, tree["fweight"].array(library="np"))


@pytest.fixture(scope="module")
def dataset(paper_files):
    samples = [
        Sample("h2atata", Role.SIGNAL, read(paper_files / "fhist_h2atata.root")),
        Sample("atata", Role.BACKGROUND, read(paper_files / "fhist_atata.root")),
    ]
    varied = [
        Systematic.shape(name, {"atata": read(paper_files / f"fhist_atata_syst_{name}.root")}) for name in SOURCES
    ]
    return Dataset(samples, varied)


def cut(text):
    """A cut as (variable, side, value rounded to what is published)."""
    side = "<" if "<" in text else ">"
    name, _, value = text.partition(side)
    return name, side, round(float(value), 6)


@pytest.mark.parametrize(("growth", "n_trees"), [("leaves", 7), ("published", 10)])
def test_published_trees_come_out(dataset, paper_files, growth, n_trees):
    published = json.loads((paper_files / "published_trees_qbdt0.json").read_text())[:n_trees]
    settings = Settings(method="paper", n_trees=n_trees, growth=growth, binning=BINS)
    result = train(dataset.with_systematics([]), settings).ensemble
    assert len(result.trees) == len(published) == n_trees
    for tree, expected in zip(result.trees, published, strict=True):
        found = {
            frozenset(cut(text) for text in tree.cuts(int(leaf), result.features)): int(leaf)
            for leaf in np.flatnonzero(tree.is_leaf)
        }
        assert set(found) == {frozenset(cut(text) for text in leaf["cuts"]) for leaf in expected["leaves"]}
        # The author's histograms are in single precision.
        assert tree.weight == pytest.approx(expected["tree_weight"], abs=1e-5)
        for leaf in expected["leaves"]:
            node = found[frozenset(cut(text) for text in leaf["cuts"])]
            for field, key in (("s", "s"), ("b", "b"), ("q", "Q")):
                assert tree.nodes[field][node] == pytest.approx(leaf[key], abs=1e-5)
            assert tree.purities[node] == pytest.approx(leaf["purity"], abs=1e-4)


@pytest.mark.parametrize("n_sources", [1, 3, 7])
def test_qbdt_with_sources_trains(dataset, n_sources):
    settings = Settings(method="paper", n_trees=5, binning=BINS, growth="published", mc_stat=n_sources == 7)
    result = train(dataset.with_systematics(SOURCES[:n_sources]), settings).ensemble
    for tree in result.trees:
        assert np.all(tree.nodes["sigma2"] >= 0)
        assert tree.nodes["sigma2"].max() > 0
        assert np.all(tree.nodes["b"] > 0)
