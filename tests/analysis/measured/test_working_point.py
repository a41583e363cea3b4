"""Training at the values of the sources that an earlier fit found."""

import math

import pytest

from qbdt.analysis.analysis_file import read_analysis
from qbdt.analysis.loader import training_settings
from qbdt.analysis.run import run_analysis
from qbdt.analysis.run_folder import move_to_fit
from qbdt.errors import ConfigError
from qbdt.files.records import read_record, write_record
from tests.analysis.measured.conftest import TEXT


def test_training_at_the_point_of_an_earlier_fit(run, folder, tmp_path):
    analysis = read_analysis(folder / "analysis.yaml")
    with pytest.raises(ConfigError, match=r"at: .*out has a fit to Asimov data, whose best point is the nominal one"):
        run_analysis(analysis, folder, tmp_path / "moved", at=run.folder)
    fit = read_record(run.folder / "fit" / "fit.json")
    observed = {**fit["expected"], "data": "recorded"}
    observed["parameters"]["tilt"]["value"] = 0.7
    write_record(tmp_path / "fit.json", {**fit, "observed": observed})
    at = training_settings(move_to_fit(analysis, tmp_path)).at
    assert at["tilt"] == 0.7
    assert set(at) <= {"tilt", "xs"}
    observed["parameters"]["lumi_2"] = {**observed["parameters"].pop("xs"), "value": 0.4}
    write_record(tmp_path / "fit.json", {**fit, "observed": observed})
    (folder / "lumi.yaml").write_text(TEXT.replace("xs:", "lumi:"))  # a fit must not call a source so
    assert training_settings(move_to_fit(read_analysis(folder / "lumi.yaml"), tmp_path)).at == {
        "tilt": 0.7,
        "lumi": 0.4,
    }
    other = analysis.model_copy(update={"training": analysis.training.model_copy(update={"systematics": []})})
    with pytest.raises(ConfigError, match="has none of the sources of the training"):
        move_to_fit(other, tmp_path)


@pytest.mark.parametrize("value", ["x", 10**400, math.nan, None, [1], 1e5])
def test_a_fit_whose_values_are_no_working_point_is_refused(value, run, folder, tmp_path):
    fit = read_record(run.folder / "fit" / "fit.json")
    fit["observed"] = {**fit["expected"], "data": "recorded"}
    fit["observed"]["parameters"]["tilt"]["value"] = value
    write_record(tmp_path / "fit.json", fit)
    with pytest.raises(ConfigError, match=r"fit\.json: (damaged|at: tilt: .*standard deviations)"):
        move_to_fit(read_analysis(folder / "analysis.yaml"), tmp_path)


def test_a_working_point_is_a_key_of_the_training(folder):
    (folder / "at.yaml").write_text(TEXT.replace("n_trees: 10", "n_trees: 10, at: {tilt: 0.5, xs: 0}"))
    assert training_settings(read_analysis(folder / "at.yaml")).at == {"tilt": 0.5}
    (folder / "at.yaml").write_text(TEXT.replace("n_trees: 10", "n_trees: 10, at: {tlit: 0.5}"))
    with pytest.raises(ConfigError, match=r"at\.yaml:\d\d: training\.at: no source tlit; did you mean tilt\?"):
        read_analysis(folder / "at.yaml")
    (folder / "at.yaml").write_text(TEXT.replace("n_trees: 10", "n_trees: 10, at: {tilt: -1.e+5}"))
    with pytest.raises(ConfigError, match="at: tilt: -100000: no fit is farther than 1000 standard deviations away"):
        read_analysis(folder / "at.yaml")
