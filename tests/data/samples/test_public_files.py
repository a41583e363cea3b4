"""Loaders of public files: the corrections on events made by hand, and the documented yields where the files are."""

import numpy as np
import pytest
import uproot

from qbdt.data.samples.cms_htautau import CMS_FEATURES, COLUMNS, FILES, cms_htautau
from qbdt.data.samples.objects.reconstruction import FEATURES
from qbdt.data.samples.public_files import paper_tautaugamma
from qbdt.errors import DataError
from tests.conftest import SHARED

EVENT = {
    **{"muon_pt": 30.0, "muon_eta": 0.0, "muon_phi": 0.0, "muon_m": 0.1057, "muon_iso": -999.0},
    **{"tau_pt": 40.0, "tau_eta": 1.0, "tau_phi": 2.0, "tau_m": -0.05, "tau_iso": 0.1},
    **{"jpt_1": 50.0, "jeta_1": 0.1, "jphi_1": 0.2, "jm_1": 5.0, "jbtag_1": 0.3},
    **{"jpt_2": 40.0, "jeta_2": -2.0, "jphi_2": -2.0, "jm_2": 4.0, "jbtag_2": 0.9},
    **{"MET_pt": 25.0, "MET_phi": 1.0, "weight": 2.0},
}


@pytest.fixture
def cms_folder(tmp_path):
    """Two events per process: as above, and one whose second jet is near the jet threshold and whose tau is soft."""
    second = EVENT | {"tau_pt": 22.4, "jeta_1": 3.0, "jpt_2": 32.5}
    for file, _ in FILES.values():
        with uproot.recreate(tmp_path / file) as root:
            columns = {name: np.array([EVENT[name], second[name]], dtype=np.float32) for name in COLUMNS}
            root.mktree("Events", dict.fromkeys(columns, np.float32))
            root["Events"].extend(columns)
    return tmp_path


def test_cms_corrections(cms_folder):
    data = cms_htautau(cms_folder)
    assert data.features == CMS_FEATURES
    assert len(CMS_FEATURES) == 24
    background, signal = data.sample("dy").events, data.sample("ggh").events
    assert background.weight == pytest.approx([2, 2])
    assert signal.weight == pytest.approx([2 * 0.0632] * 2)
    assert np.isnan(background.column("muon_iso")).all()
    # The first jet of the first event is the muon: the second moves up, with its own b-tag.
    assert background.column("n_jets") == pytest.approx([1, 2])
    assert background.column("jet1_pt") == pytest.approx([40, 50])
    assert background.column("jet1_btag") == pytest.approx([0.9, 0.3])
    assert np.isnan(background.column("jet2_pt")[0])
    assert background.column("tau_mass") == pytest.approx([0, 0])


def test_cms_shifts_act_before_the_selection_and_on_the_missing_momentum(cms_folder):
    data = cms_htautau(cms_folder)
    assert set(data.varied("tes", "up")) == {"ggh", "vbf", "dy"}
    assert data.varied("tes", "down")["dy"].n_rows == 1, "a tau of 22.4 GeV falls below 22"
    assert data.varied("tes", "up")["dy"].column("tau_pt") == pytest.approx([41.2, 22.4 * 1.03])
    jes = data.varied("jes", "down")["ttbar"]
    assert jes.column("n_jets") == pytest.approx([1, 1]), "a jet of 32.5 GeV falls below 32"
    met = np.array([25 * np.cos(1) + 0.03 * 40 * np.cos(-2), 25 * np.sin(1) + 0.03 * 40 * np.sin(-2)])
    assert jes.column("met")[0] == pytest.approx(np.hypot(*met), rel=1e-5)


def test_absent_files_and_trees_are_named(tmp_path, cms_folder):
    with pytest.raises(DataError, match=r"fhist_h2atata\.root: no such file; .* \(see docs/data\.md\)"):
        paper_tautaugamma(tmp_path)
    with uproot.recreate(tmp_path / "fhist_h2atata.root") as root:
        root.mktree("OTHER", {"x": np.float32})
    with pytest.raises(DataError, match="no tree NOMINAL; there are: OTHER"):
        paper_tautaugamma(tmp_path)


@pytest.mark.shared
def test_the_papers_events(paper_files):
    data = paper_tautaugamma(paper_files)
    assert data.features == FEATURES
    assert data.total("signal") == pytest.approx(87.2, abs=0.05)
    assert data.total("background") == pytest.approx(20_496, abs=1)
    assert data.varied("tes", "up")["background"].n_rows == 24_754
    assert not any(source.two_sided for source in data.systematics)
    assert data.folds is not None
    assert set(data.folds.assign(data.sample("signal").events)) == {0, 1}


@pytest.mark.shared
def test_the_cms_yields():
    folder = SHARED / "cms_htautau"
    if not folder.is_dir():
        pytest.skip(f"the CMS files are not in {folder}")
    data = cms_htautau(folder)
    assert data.total("signal") == pytest.approx(136, abs=0.5)
    assert data.total("background") == pytest.approx(68_500, abs=100)
