"""What a workspace knows, for training: the expected information of its counts."""

import json

import numpy as np
import pytest
from validation.known_densities import control_workspace

from qbdt.analysis.analysis_file import read_analysis
from qbdt.analysis.loader import training_settings
from qbdt.data import Role
from qbdt.errors import ConfigError, FitError
from qbdt.inference.asimov import fit_asimov
from qbdt.inference.measurement import Measurement
from qbdt.inference.partners import read_partner
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.inference.workspace import build_workspace
from qbdt.training.partner import Partner


@pytest.fixture
def templates():
    s, b = np.array([2.0, 8.0, 5.0]), np.array([200.0, 90.0, 30.0])
    shift = Shift(b * [1.1, 1.0, 0.9], b * [0.9, 1.0, 1.1])
    norm = Shift(b * 1.2, b * 0.8, factors=(0.8, 1.2))
    signal = ProcessTemplates("s", Role.SIGNAL, s, 0.01 * s)
    background = ProcessTemplates("b", Role.BACKGROUND, b, 0.5 * b, {"tilt": shift, "xs": norm})
    return TemplateSet("score", np.arange(4.0), (signal, background), ("tilt", "xs"))


def test_it_has_the_uncertainty_of_the_fit(templates):
    """With constraints added, what a partner knows of μ is what the fit to its Asimov data quotes."""
    known = read_partner(templates).about(["mu", "tilt", "xs"]) + np.diag([0.0, 1.0, 1.0])
    assert np.sqrt(np.linalg.inv(known)[0, 0]) == pytest.approx(fit_asimov(templates.arrays()).sigma_mu, rel=0.01)


def test_mc_statistics_may_be_left_out(templates):
    known = read_partner(templates, mc_stat=False).about(["mu", "tilt", "xs"]) + np.diag([0.0, 1.0, 1.0])
    exact = fit_asimov(templates.arrays().without_mc_stat()).sigma_mu
    assert np.sqrt(np.linalg.inv(known)[0, 0]) == pytest.approx(exact, rel=0.01)
    assert exact < 0.95 * fit_asimov(templates.arrays()).sigma_mu


def test_a_control_region_measures_its_source():
    assert read_partner(control_workspace(), poi=None).about(["mu", "r"]) == pytest.approx(np.diag([0.0, 15.0]))


def test_a_workspace_without_the_strength_is_refused(templates):
    with pytest.raises(FitError, match=r"workspace: no signal strength mu; there are: sigma_VH\. Say with poi which"):
        read_partner(build_workspace(templates, poi="sigma_VH"))
    assert "mu" in read_partner(build_workspace(templates, poi="sigma_VH"), poi="sigma_VH").names


def test_a_strength_of_the_same_name_is_another_where_the_signal_is_not_part_of_it(templates):
    partner = read_partner(build_workspace(templates), poi=None)
    assert "mu of workspace" in partner.names
    assert not partner.about(["mu"]).any()
    known, profiled = (np.diag(one.about(["tilt", "xs"])) for one in (read_partner(templates), partner))
    assert profiled == pytest.approx(known)  # the strength is profiled either way


def test_negative_expectations_are_refused(templates):
    spec = build_workspace(templates)
    for sample in spec["channels"][0]["samples"]:
        sample["data"][1] = -1.0
    with pytest.raises(
        FitError, match="workspace: bin 2 of signal_region expects -2 events: a positive number is needed"
    ):
        read_partner(spec)


def test_bins_that_stay_empty_tell_nothing():
    spec, wider = control_workspace(), control_workspace()
    for values in (wider["channels"][0]["samples"][0], wider["observations"][0]):
        values["data"].append(0.0)
    for ends in wider["channels"][0]["samples"][0]["modifiers"][0]["data"].values():
        ends.append(0.0)
    assert read_partner(wider, poi=None) == read_partner(spec, poi=None)
    wider["channels"][0]["samples"][0]["modifiers"][0]["data"]["hi_data"][2] = 5.0
    with pytest.raises(FitError, match="bin 3 of control expects 0 events: a positive number is needed"):
        read_partner(wider, poi=None)


def test_a_name_that_is_nearly_that_of_a_strength(templates):
    with pytest.raises(FitError, match=r"no signal strength mu; did you mean mu_H\? Say with poi which"):
        read_partner(build_workspace(templates, poi="mu_H"))


def test_sources_keep_their_names_where_a_workspace_has_others_for_them(templates):
    renamed = templates.renamed({}, {"xs": "lumi"})
    for source in (renamed, Measurement({"control": renamed}, {"mu": ["s"]})):
        assert read_partner(source).about(["lumi"]) == pytest.approx(read_partner(templates).about(["xs"]))


@pytest.mark.parametrize("name", ["b", "tt + jets", "γ"])
def test_training_calls_a_free_background_as_the_fit_does(templates, name):
    measurement = Measurement({"control": templates.renamed({"b": name}, {})}, {"mu": ["s"]}, free=[name])
    assert Partner.name_free(name) in read_partner(measurement).names


def test_a_free_factor_in_each_bin_leaves_nothing_to_know():
    spec = control_workspace()
    (channel,) = spec["channels"]
    channel["samples"][0]["modifiers"].append({"name": "from_data", "type": "shapefactor", "data": None})
    assert read_partner(spec, poi=None).about(["r"]) == pytest.approx(0, abs=1e-9)


def test_an_analysis_file_names_the_workspace(tmp_path, templates):
    (tmp_path / "combination.json").write_text(json.dumps(build_workspace(templates)))
    (tmp_path / "control.json").write_text(json.dumps(control_workspace()))
    analysis = tmp_path / "analysis.yaml"
    analysis.write_text("dataset: {name: inferno}\ntraining: {with: combination.json, n_trees: 3}\n")
    partner = training_settings(read_analysis(analysis)).partner
    assert partner is not None
    assert set(partner.names) >= {"mu", "tilt", "xs"}
    analysis.write_text("dataset: {name: inferno}\ntraining: {with: {file: control.json, poi: none}}\n")
    partner = training_settings(read_analysis(analysis)).partner
    assert partner is not None
    assert partner.names == ("r",)
    analysis.write_text("dataset: {name: inferno}\ntraining: {with: control.json}\n")
    with pytest.raises(ConfigError, match=r"training\.with: .*control\.json: no signal strength mu; there are: none"):
        training_settings(read_analysis(analysis))
    analysis.write_text("dataset: {name: inferno}\ntraining: {with: absent.json}\n")
    with pytest.raises(ConfigError, match=r"training\.with: no workspace at .*absent\.json"):
        training_settings(read_analysis(analysis))
