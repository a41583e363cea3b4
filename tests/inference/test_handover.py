"""Measurements of several regions in the forms of other programs: read back, they say the same."""

import json

import numpy as np
import pytest
import uproot

from qbdt.errors import FitError
from qbdt.inference.combine import write_datacard
from qbdt.inference.histfactory import write_xml
from qbdt.inference.hs3 import describe_hs3, write_hs3
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.workspace import describe_measurement, read_workspace, write_workspace
from tests.inference.test_measurement import abcd, measurement, regions


@pytest.fixture(scope="module")
def model():
    return measurement(groups={"exp": ["jes"]}, fixed={"xs": 0.5})


@pytest.fixture(scope="module")
def spec(model):
    return describe_measurement(model)


def require_same(spec, other):
    one, two = Likelihood(spec), Likelihood(other)
    assert one.names == two.names
    random = np.random.default_rng(1)
    for _ in range(3):
        point = one.start + random.normal(0, 0.3, len(one.start))
        assert two.expected(point) == pytest.approx(one.expected(point), rel=1e-12)
        assert two.twice_nll(point) == pytest.approx(one.twice_nll(point), rel=1e-9)
    assert two.constant.tolist() == one.constant.tolist()


def test_hs3_is_read_back(model, spec, tmp_path):
    path = write_hs3(model, spec, tmp_path / "hs3.json")
    require_same(spec, read_workspace(path))
    plain = json.loads(path.read_text())
    names = {dist["name"] for dist in plain["distributions"]}
    (likelihood,), (analysis,) = plain["likelihoods"], plain["analyses"]
    assert names == {*likelihood["distributions"], *likelihood["aux_distributions"]}
    assert analysis["parameters_of_interest"] == ["mu_ggH", "mu_VBF"]
    assert [one["name"] for one in plain["data"]] == likelihood["data"]


@pytest.mark.parametrize("mc_model", ["process", "process_poisson"])
def test_factors_per_process_and_bin_are_read_back(model, mc_model, tmp_path):
    spec = describe_measurement(model, mc_model=mc_model)
    assert not any(name.partition("[")[0] == "staterror_control" for name in Likelihood(spec).names)
    require_same(spec, read_workspace(write_hs3(model, spec, tmp_path / "hs3.json")))
    again = read_workspace(write_xml(spec, tmp_path / "xml"))
    one, two = Likelihood(spec), Likelihood(again)
    names = [[m.names[i] for i in m.constraints.index] for m in (one, two)]
    for terms in ("widths", "rates"):
        values = [getattr(m.constraints, terms) for m in (one, two)]
        first, second = (dict(zip(n, v, strict=True)) for n, v in zip(names, values, strict=True))
        assert second == pytest.approx(first, rel=1e-5)
    assert np.any(one.constraints.rates > 0) == (mc_model == "process_poisson")


def test_poisson_factors_per_bin_are_read_back(model, tmp_path):
    spec = describe_measurement(model, mc_model="bin_poisson")
    hs3, xml = write_hs3(model, spec, tmp_path / "hs3.json"), write_xml(spec, tmp_path / "xml")
    for read in (read_workspace(hs3), read_workspace(write_workspace(spec, tmp_path / "workspace.json"))):
        require_same(spec, read)
    one, two = Likelihood(spec), Likelihood(read_workspace(xml))  # ROOT files have single precision
    point = one.start + 0.2
    there = [point[one.names.index(name)] for name in two.names]
    assert two.twice_nll(np.array(there)) == pytest.approx(one.twice_nll(point), rel=1e-4)
    assert np.all(one.constraints.rates[-5:] > 0)
    config = (tmp_path / "xml/config/measurement_control.xml").read_text()
    assert '<StatErrorConfig RelErrorThreshold="0" ConstraintType="Poisson" />' in config
    card = write_datacard(model, tmp_path, "bin_poisson").read_text()
    assert "control autoMCStats 0" in card
    assert "# MC statistics: Gaussian here" in card


def test_datacards_of_factors_per_process_and_bin(model, tmp_path):
    poisson = write_datacard(model, tmp_path, "process_poisson").read_text().splitlines()
    assert "control autoMCStats 1000000000 1" in poisson
    gaussian = write_datacard(model, tmp_path, "process").read_text()
    assert "autoMCStats" not in gaussian
    templates = regions()["control"].process("ttbar")
    with uproot.open(tmp_path / "shapes.root") as shapes:
        up = shapes["control/ttbar/staterror_control_ttbar_bin1Up"].values()
    assert up[0] == pytest.approx(templates.nominal[0] + np.sqrt(templates.variance[0]))
    assert up[1:] == pytest.approx(templates.nominal[1:])
    assert "autoMCStats" not in write_datacard(model, tmp_path, None).read_text()


def test_tied_yields_are_handed_over(tmp_path):
    tied = abcd()
    spec = describe_measurement(tied)
    require_same(spec, read_workspace(write_hs3(tied, spec, tmp_path / "hs3.json")))
    card = write_datacard(tied, tmp_path).read_text().splitlines()
    assert [line for line in card if line.startswith("transfer_W")] == [
        "transfer_W rateParam a W 1 [0,10]",
        "transfer_W rateParam c W 1 [0,10]",
    ]
    assert sum(line.startswith("norm_W rateParam") for line in card) == 4


def test_a_damaged_hs3_document_is_refused(model, spec, tmp_path):
    plain = describe_hs3(model, spec)
    del plain["data"]
    (tmp_path / "hs3.json").write_text(json.dumps(plain))
    with pytest.raises(FitError, match="the HS3 document cannot be read: 'data'"):
        read_workspace(tmp_path / "hs3.json")


def test_histfactory_with_several_regions_is_read_back(spec, tmp_path):
    again = read_workspace(write_xml(spec, tmp_path / "xml"))
    one, two = Likelihood(spec), Likelihood(again)
    assert sorted(two.names) == sorted(one.names)
    order = [two.names.index(name) for name in one.names]
    point = one.start + 0.1
    moved = np.empty_like(point)
    moved[order] = point
    assert two.expected(moved) == pytest.approx(one.expected(point), rel=1e-6)  # the histograms are read as they are


def test_datacard_of_several_regions(model, tmp_path):
    card = write_datacard(model, tmp_path).read_text()
    lines = {line.split()[0]: line.split()[1:] for line in card.splitlines() if line and line[0] not in "-#"}
    assert lines["imax"] == ["2"]
    assert lines["observation"] == [f"{region.asimov.sum():.10g}" for region in regions().values()]
    assert lines["norm_ttbar"] == ["rateParam", "*", "ttbar", "1", "[0,10]"]
    assert lines["xs"] == ["lnN", *(["-", "-", "-", "0.7/1.6"] * 2)]
    assert lines["exp"] == ["group", "=", "jes"]
    assert lines["signal"] == lines["control"] == ["autoMCStats", "0"]
    assert "--PO 'map=.*/VBF:mu_VBF[1,-20,20]'" in card
    assert "--setParameters xs=0.5 --freezeParameters xs" in card
    with uproot.open(tmp_path / "shapes.root") as shapes:
        assert shapes["control/ttbar/jesUp"].values() == pytest.approx(
            regions()["control"].process("ttbar").shifts["jes"].up
        )
