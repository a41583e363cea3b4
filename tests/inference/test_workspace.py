"""Workspaces: what is in them, that other programs open them, and that they say the same there."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import uproot

from qbdt.errors import FitError
from qbdt.inference.combine import write_datacard
from qbdt.inference.fit import fit_templates
from qbdt.inference.histfactory import write_xml
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.measurement import Measurement
from qbdt.inference.settings import FitSettings
from qbdt.inference.summary import fit_freely, summarise
from qbdt.inference.templates import TemplateSet
from qbdt.inference.workspace import build_workspace, read_workspace, write_workspace
from tests.inference.models import smooth_templates

PYHF = Path(sys.executable).with_name("pyhf")


@pytest.fixture(scope="module")
def templates():
    return smooth_templates(8, 3, signal_shifts=True, norm=0.1)


@pytest.fixture(scope="module")
def workspace(templates):
    return build_workspace(templates)


@pytest.fixture(scope="module")
def summary(workspace):
    return summarise(fit_freely(Likelihood(workspace)))


def modifiers(workspace, sample):
    found = next(s for s in workspace["channels"][0]["samples"] if s["name"] == sample)
    return {m["name"]: m["type"] for m in found["modifiers"]}


def test_each_kind_of_source_has_its_modifier(workspace):
    assert modifiers(workspace, "signal")["mu"] == "normfactor"
    assert modifiers(workspace, "major")["source0"] == "histosys"
    assert modifiers(workspace, "minor")["norm"] == "normsys"
    assert all("staterror_signal_region" in modifiers(workspace, s) for s in ("major", "minor"))
    assert "staterror_signal_region" not in modifiers(workspace, "signal")


def test_without_mc_statistics_there_are_no_bin_parameters(templates):
    assert not Likelihood(build_workspace(templates, mc_stat=False)).of_kind("mc_stat")


def test_recorded_data_become_the_observations(templates):
    from dataclasses import replace

    counts = np.arange(8.0)
    spec = build_workspace(replace(templates, data=counts))
    assert spec["observations"][0]["data"] == counts.tolist()


def test_json_round_trip(workspace, tmp_path):
    path = write_workspace(workspace, tmp_path / "workspace.json")
    assert read_workspace(path) == workspace


@pytest.mark.parametrize("content", ["{", '{"channels": []}'])
def test_a_file_that_is_no_workspace(content, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(FitError, match="not a pyhf workspace"):
        read_workspace(path)
    with pytest.raises(FitError, match="no workspace at"):
        read_workspace(tmp_path / "none.json")


def test_xml_round_trip_gives_the_same_fit(workspace, summary, tmp_path):
    top = write_xml(workspace, tmp_path / "a" / "histfactory")
    moved = tmp_path / "moved"
    (tmp_path / "a" / "histfactory").rename(moved)
    again = summarise(fit_freely(Likelihood(read_workspace(moved / top.name))))
    assert again.mu == pytest.approx(summary.mu, abs=1e-4)
    assert again.z == pytest.approx(summary.z, abs=1e-4)
    assert again.sigma_mu == pytest.approx(summary.sigma_mu, rel=1e-4)
    for parameter in summary.parameters:
        assert again.parameter(parameter.name).error == pytest.approx(parameter.error, rel=1e-4)
    channel = (moved / "config" / "measurement_signal_region.xml").read_text()
    assert '<StatErrorConfig RelErrorThreshold="0" ConstraintType="Gaussian"' in channel
    assert str(tmp_path) not in channel + (moved / top.name).read_text()


def test_a_broken_xml_file(tmp_path):
    path = tmp_path / "broken.xml"
    path.write_text("<Combination>")
    with pytest.raises(FitError, match="cannot be read as a HistFactory measurement"):
        read_workspace(path)


def pyhf_fit(path, *patches):
    """Best parameters and −2 ln L from pyhf's own command line, with MINUIT."""
    command = [PYHF, "fit", path, "--optimizer", "minuit", "--value", *(a for p in patches for a in ("--patch", p))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_pyhf_command_line_agrees(workspace, summary, tmp_path):
    path = write_workspace(workspace, tmp_path / "workspace.json")
    null = tmp_path / "null.json"
    at_zero = {"name": "mu", "inits": [0.0], "bounds": [[-1.0, 1.0]], "fixed": True}
    null.write_text(json.dumps([{"op": "replace", "path": "/parameters/0", "value": at_zero}]))
    best, background_only = pyhf_fit(path), pyhf_fit(path, null)
    assert best["mle_parameters"]["mu"][0] == pytest.approx(summary.mu, abs=1e-4)
    for source in summary.sources:
        assert best["mle_parameters"][source.name][0] == pytest.approx(source.value, abs=1e-4)
    z = np.sqrt(background_only["twice_nll"] - best["twice_nll"])
    assert z == pytest.approx(summary.z, abs=1e-4)


def test_cabinetry_agrees(workspace, summary):
    """Values, intervals and significance to 1e-4; MINUIT's numerical second derivatives are good to a few 1e-4 only."""
    import cabinetry

    model, data = cabinetry.model_utils.model_and_data(workspace)
    fit = cabinetry.fit.fit(model, data, strategy=0, minos=["mu"])
    values = dict(zip(fit.labels, zip(fit.bestfit, fit.uncertainty, strict=True), strict=True))
    assert values["mu"][0] == pytest.approx(summary.mu, abs=1e-4)
    assert fit.minos_uncertainty["mu"] == pytest.approx(summary.interval, abs=1e-4)
    assert cabinetry.fit.significance(model, data).observed_significance == pytest.approx(summary.z, abs=1e-4)
    assert values["mu"][1] == pytest.approx(summary.sigma_mu, abs=1e-4)
    for source in summary.sources:
        assert values[source.name][0] == pytest.approx(source.value, abs=1e-4)
        assert values[source.name][1] == pytest.approx(source.error, abs=3e-4)


def test_datacard_holds_the_same_templates(templates, tmp_path):
    card = write_datacard(Measurement({"signal_region": templates}), tmp_path).read_text().splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in card if line and not line.startswith("-")}
    assert rows["rate"][0] == f"{templates.signal.sum():.10g}"
    assert rows["source0"] == ["shape", "1", "1", "-"]
    assert rows["norm"] == ["lnN", "-", "-", "0.9/1.1"]
    assert rows["signal_region"] == ["autoMCStats", "0"]
    with uproot.open(tmp_path / "shapes.root") as shapes:
        nominal = shapes["signal_region/major/nominal"]
        assert nominal.values() == pytest.approx(templates.process("major").nominal)
        assert nominal.variances() == pytest.approx(templates.process("major").variance)
        up = shapes["signal_region/major/source0Up"].values()
        assert up == pytest.approx(templates.process("major").shifts["source0"].up)
        assert shapes["signal_region/data_obs"].values() == pytest.approx(templates.asimov)
        assert "signal_region/minor/normUp" not in shapes


def test_no_two_histograms_of_a_datacard_share_a_name(templates, tmp_path):
    processes = {"major": "W", "minor": "W_jets", templates.processes[0].name: "data_obs"}
    sources = {"source0": "jets_scale", "source1": "scale", "norm": "a b/$*"}
    odd = templates.renamed(processes, sources)
    card = write_datacard(Measurement({"signal_region": odd}), tmp_path).read_text()
    with uproot.open(tmp_path / "shapes.root") as shapes:
        folder = shapes["signal_region"]
        histograms = [name for name, kind in folder.classnames(cycle=False).items() if kind.startswith("TH1")]
        shapes_of = [s for p in odd.processes for s in p.shifts.values() if s.factors is None]
        assert len(set(histograms)) == 1 + len(odd.processes) + 2 * len(shapes_of)
        assert folder["data_obs"].values() == pytest.approx(odd.asimov)
        assert folder["W/jets_scaleUp"].values() == pytest.approx(odd.process("W").shifts["jets_scale"].up)
    assert "# process 'data_obs' is called data_obs_2 here" in card
    assert "# source 'a b/$*' is called a_b___ here" in card


def test_a_measurement_of_odd_names_is_read_back(templates, tmp_path):
    processes = {"major": "W", "minor": "W_jets", templates.processes[0].name: "data"}
    odd = templates.renamed(processes, {"source0": "jets_scale", "source1": "scale", "norm": "a b/<&"})
    spec = build_workspace(odd)
    path = write_xml(spec, tmp_path / "xml", "../../x")
    assert path.parent == tmp_path / "xml"
    assert [found.name for found in tmp_path.iterdir()] == ["xml"]
    samples = read_workspace(path)["channels"][0]["samples"]
    assert {s["name"]: s["data"] for s in samples} == {p.name: p.nominal.tolist() for p in odd.processes}


@pytest.mark.parametrize("name", ["a/b", "../x", "a;b", "/", "sample0", "a b"])
def test_shapes_of_odd_names_are_read_back_from_xml(templates, tmp_path, name):
    def list_shapes(spec):
        samples = spec["channels"][0]["samples"]
        found = [(s["name"], m["name"], m["data"]) for s in samples for m in s["modifiers"] if m["type"] == "histosys"]
        return sorted(found, key=lambda shape: shape[:2])

    spec = build_workspace(templates.renamed({}, {"source0": name, "source1": "a_b"}))
    assert name in {source for _, source, _ in list_shapes(spec)}
    for parameter in spec["measurements"][0]["config"]["parameters"]:
        parameter["fixed"] = parameter["name"] == name
    path = write_xml(spec, tmp_path)
    assert list_shapes(read_workspace(path)) == list_shapes(spec)
    assert f">alpha_{name}<" in path.read_text()


@pytest.mark.parametrize("name", ["lumi", "mu", "staterror_signal_region"])
def test_sources_with_names_that_mean_something_else_are_fitted(templates, name):
    odd = templates.renamed({}, {"norm": name})
    settings = FitSettings(scan=False)
    found, usual = fit_templates(odd, settings), fit_templates(templates, settings)
    assert found.expected.z == usual.expected.z
    assert f"source {name}: called {name}_2 in the fit" in str(found.templates.notes[-1])


def test_names_that_mean_something_else(templates):
    for name in ("lumi", "staterror_signal_region"):
        with pytest.raises(FitError, match=f"the name {name} means something else in HistFactory"):
            build_workspace(templates, poi=name)


def test_source_named_like_the_signal_strength(templates):
    with pytest.raises(FitError, match="source norm has the name of the signal strength"):
        build_workspace(templates, poi="norm")


def test_no_recorded_events_at_all_leave_the_expected_result(templates):
    found = fit_templates(replace(templates, data=np.zeros(templates.n_bins)), FitSettings(scan=False))
    assert found.observed is None
    assert found.expected.z == fit_templates(templates, FitSettings(scan=False)).expected.z
    assert "no events in any bin" in str(found.templates.notes[-1])


def test_shifts_of_sources_that_are_not_named_are_refused(templates):
    with pytest.raises(FitError, match=r"source0.* shifts a process and is not among them"):
        TemplateSet("score", templates.edges, templates.processes)
