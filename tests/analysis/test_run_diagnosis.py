"""A finished run is opened again, diagnosed, and the report shows it."""

import json

import pytest
from typer.testing import CliRunner

from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.run import run_analysis
from qbdt.analysis.run_diagnosis import diagnose_run
from qbdt.analysis.run_page import run_document
from qbdt.cli.app import app
from qbdt.errors import ConfigError, OutputError

ANALYSIS = """
name: small
dataset: {name: inferno, options: {n: 600, k: 2}}
training: {method: paper, n_trees: 4, n_leaves: 3}
fit: {bins: 5, scan: false}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    run_analysis(parse_analysis(ANALYSIS, "small.yaml"), out, out, n_threads=1, figures=False)
    return out


@pytest.fixture(scope="module")
def diagnosed(folder):
    return diagnose_run(folder, each_sample=True, repeats=1, n_threads=1)


def test_what_is_left_in_the_folder(diagnosed, folder):
    assert {path.name for path in (folder / "diagnosis").iterdir()} == {
        "diagnosis.json",
        "features.png",
        "learning.png",
        "sources.png",
    }
    fitted = json.loads((folder / "result.json").read_text())["fit"]["expected"]
    # the fit of the run uses pyhf's exponential normalisations, this one their linear part
    assert diagnosed.strength.sigma_full == pytest.approx(fitted["sigma_mu"], rel=0.03)
    assert diagnosed.sizes is not None


def test_which_sample_to_generate(diagnosed, folder):
    table = next(table for table in diagnosed.tables() if table.title.startswith("More events of one sample"))
    assert {row[0] for row in table.rows} == {
        "signal",
        "background",
        "r (its varied events)",
        "rate (its varied events)",
    }
    with pytest.raises(ConfigError, match="each_sample needs the learning curve"):
        diagnose_run(folder, sizes=False, each_sample=True, force=True)


def test_it_is_not_replaced_unasked(diagnosed, folder):
    with pytest.raises(OutputError, match="force=True"):
        diagnose_run(folder)


def test_the_report_shows_it(diagnosed, folder):
    document = run_document(folder)
    section = next(section for section in document.sections if section.title == "Diagnosis")
    titles = [getattr(block, "title", getattr(block, "name", "")) for block in section.blocks]
    assert {
        "σ_μ against trees",
        "More events of one sample: σ_μ would change by",
        "features",
        "learning",
        "source-map",
    } <= set(titles)


def test_the_command(diagnosed, folder):
    done = CliRunner().invoke(
        app, ["diagnose", str(folder), "--no-sizes", "--repeats", "1", "-j", "1", "--json", "-q", "--force"]
    )
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["sizes"] is None
    assert found["features"] == json.loads(json.dumps(diagnosed.to_dict()))["features"]


def test_folders_that_hold_no_run(tmp_path, folder):
    with pytest.raises(ConfigError, match="not the folder of a finished qbdt run"):
        diagnose_run(tmp_path)
    with pytest.raises(ConfigError, match="no models of a finished qbdt run"):
        diagnose_run(folder / "fit")
