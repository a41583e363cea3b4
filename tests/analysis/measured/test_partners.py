"""Training beside what else the fit knows: a workspace, or control regions of the analysis."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from qbdt.analysis.analysis_file import parse_analysis, read_analysis
from qbdt.analysis.loader import describe_partner, load_regions, training_settings
from qbdt.analysis.region_fit import fit_regions, read_control_regions
from qbdt.analysis.run import run_analysis
from qbdt.errors import ConfigError
from qbdt.inference.partners import read_partner
from qbdt.models.model_file import read_any_model
from qbdt.training.partner import Partner
from tests.analysis.measured.conftest import TEXT

REGIONS = TEXT.replace("strengths: {mu_ggH: ggH, mu_VBF: VBF}", "with: control regions").replace(
    "folds:", "regions: {signal: {selection: x > -0.5}, control: {selection: x <= -0.5, observable: yield}}\nfolds:"
)


SEVERAL = REGIONS.replace("with: control", "strengths: {mu_ggH: ggH, mu_VBF: VBF}, free: ttbar, with: control")


def describe_control(*modifiers):
    """Return a workspace of two bins of 800 events, which some sources tilt by 5 %."""
    tilt = {"hi_data": [840.0, 760.0], "lo_data": [760.0, 840.0]}
    shifts = [{"name": name, "type": "histosys", "data": tilt} for name in modifiers]
    samples = [
        {"name": "top", "data": [800.0, 800.0], "modifiers": shifts},
        {"name": "H", "data": [5.0, 60.0], "modifiers": [{"name": "mu_ggH", "type": "normfactor", "data": None}]},
    ]
    return {
        "channels": [{"name": "control", "samples": samples}],
        "observations": [{"name": "control", "data": [805.0, 860.0]}],
        "measurements": [{"name": "measurement", "config": {"poi": "mu_ggH", "parameters": []}}],
        "version": "1.0.0",
    }


def find_errors(spec):
    """σ of all parameters of a workspace, from its second derivatives."""
    every = read_partner(spec, poi=None)
    covariance = np.linalg.inv(np.array(every.information) + np.diag(every.priors))
    return dict(zip(every.names, np.sqrt(np.diag(covariance)), strict=True))


def test_a_run_says_what_is_expected_of_the_fit_together_with_its_workspace(run, folder):
    """A training by folds expects σ of its own events, not of all, and the fit is of the trained region alone."""
    control = describe_control("tilt", "xs", "jes")
    (folder / "control.json").write_text(json.dumps(control))
    (folder / "joint.yaml").write_text(
        TEXT.replace("n_trees: 10", "n_trees: 10, with: {file: control.json, poi: none}")
    )
    scored = folder / "out" / "scored"
    result = fit_regions(
        load_regions(read_analysis(scored / "scored.yaml"), scored), read_analysis(folder / "joint.yaml")
    )
    assert result.joint is not None
    assert result.to_dict()["joint"]["partner"] == "control.json"
    assert "Expected together with control.json" in [table.title for table in result.tables()]
    both = dict(result.workspace)
    both |= {key: [*both[key], *control[key]] for key in ("channels", "observations")}
    alone, together = find_errors(result.workspace), find_errors(both)
    for name in ("mu_ggH", "mu_VBF"):
        assert result.joint.sigmas[name] == pytest.approx((alone[name], together[name]), rel=1e-4)
    assert together["mu_ggH"] < 0.99 * alone["mu_ggH"]
    assert (
        fit_regions(
            load_regions(read_analysis(scored / "scored.yaml"), scored), read_analysis(folder / "analysis.yaml")
        ).joint
        is None
    )


def test_control_regions_of_the_analysis_are_partners_of_its_training(folder):
    (folder / "regions.yaml").write_text(REGIONS)
    analysis = read_analysis(folder / "regions.yaml")
    partner = read_control_regions(load_regions(analysis, folder), analysis)
    events = pq.read_table(folder / "ttbar.parquet")
    control = events["w"].to_numpy()[events["x"].to_numpy() <= -0.5]
    # the yield n changes by 10 %: (0.1 n)²/n, less what MC statistics take, n + Σw²
    expected = (0.1 * control.sum()) ** 2 / (control.sum() + (control**2).sum())
    assert partner.about(["mu", "xs", "tilt"])[1, 1] == pytest.approx(expected, rel=0.05)
    with pytest.raises(ConfigError, match="control regions: their events are read by qbdt run only"):
        training_settings(analysis)
    done = run_analysis(analysis, folder, folder / "regions", n_threads=1, figures=False)
    assert "control regions" in done.steps
    assert "measured beside the trained region: mu, tilt, xs" in done.steps
    trained = read_any_model(folder / "regions" / "model.qbdt")[0].trainings[0]
    assert trained.settings.partner == partner


def test_control_regions_have_mc_statistics_as_the_fit_says(folder):
    (folder / "exact.yaml").write_text(REGIONS.replace("bins: 12", "bins: 12, mc_stat: false"))
    analysis = read_analysis(folder / "exact.yaml")
    partner = read_control_regions(load_regions(analysis, folder), analysis)
    tables = {name: pq.read_table(folder / f"{name}.parquet") for name in ("ttbar", "ggH", "VBF")}
    yields = {name: t["w"].to_numpy()[t["x"].to_numpy() <= -0.5].sum() for name, t in tables.items()}
    expected = (0.1 * yields["ttbar"]) ** 2 / sum(yields.values())
    assert partner.about(["mu", "xs", "tilt"])[1, 1] == pytest.approx(expected, rel=0.01)
    assert not any(name.startswith("staterror") for name in partner.names)


def test_control_regions_need_not_measure_what_the_fit_measures(folder):
    """One bin cannot tell two strengths apart, and may have no signal at all; sources have names of the user's."""
    text = SEVERAL.replace("bins: 12", "bins: 12, free: {k_tt: ttbar}, groups: {energy: [tilt]}").replace(
        "xs:", "lumi:"
    )
    for selection in ("x <= -0.5", "x <= -0.5 and y < -1.5"):
        (folder / "several.yaml").write_text(text.replace("{selection: x <= -0.5,", f"{{selection: {selection},"))
        analysis = read_analysis(folder / "several.yaml")
        partner = read_control_regions(load_regions(analysis, folder), analysis)
        known = partner.about(["norm_ttbar", "lumi", "mu_ggH", "mu_VBF"])
        assert known[0, 0] > 1
        assert known[1, 1] == pytest.approx(0.01 * known[0, 0], rel=0.01)  # interpolated between ×0.9 and ×1.1
        assert known[0, 1] == pytest.approx(0.1 * known[0, 0], rel=0.01)
        assert np.linalg.matrix_rank(known) == 1


def test_a_free_background_may_have_any_name(folder):
    text = SEVERAL.replace("bins: 12", "bins: 12, free: [ttbar]")
    (folder / "words.yaml").write_text(text)
    (folder / "signs.yaml").write_text(text.replace("ttbar", "tt+jets").replace("tt+jets.parquet", "ttbar.parquet"))
    known = []
    for path in (folder / "words.yaml", folder / "signs.yaml"):
        analysis = read_analysis(path)
        partner = read_control_regions(load_regions(analysis, folder), analysis)
        known.append(partner.about([Partner.name_free(*analysis.training.free), "xs", "mu_ggH", "mu_VBF"]))
    assert known[0][0, 0] > 1
    assert np.array_equal(known[0], known[1])


def test_control_regions_may_tie_a_background_among_them(folder):
    cuts = {"a": "x > -1 and y > 0", "b": "x > -1 and y <= 0", "c": "x <= -1 and y > 0", "d": "x <= -1 and y <= 0"}
    four = ", ".join(f"{name}: {{selection: x <= -0.5 and {cut}, observable: yield}}" for name, cut in cuts.items())
    text = SEVERAL.replace("control: {selection: x <= -0.5, observable: yield}", four)
    (folder / "tied.yaml").write_text(text.replace("bins: 12", "bins: 12, abcd: {ttbar: [a, b, c, d]}"))
    analysis = read_analysis(folder / "tied.yaml")
    names = read_control_regions(load_regions(analysis, folder), analysis).names
    assert {"norm_ttbar", "transfer_ttbar", "side_ttbar"} < set(names)


def test_a_partner_is_a_file_or_control_regions(folder):
    (folder / "wrong.yaml").write_text(REGIONS.replace("with: control regions", "with: {poi: none}"))
    with pytest.raises(ConfigError, match="a file, or 'control regions', is needed"):
        read_analysis(folder / "wrong.yaml")
    (folder / "wrong.yaml").write_text(REGIONS.replace(", observable: yield", ""))
    analysis = read_analysis(folder / "wrong.yaml")
    with pytest.raises(ConfigError, match="control regions: no region is one"):
        read_control_regions(load_regions(analysis, folder), analysis)


def test_a_run_says_what_is_measured_beside_it():
    """A source that has another name in the workspace is not noticed otherwise."""
    analysis = parse_analysis(TEXT.replace("strengths: {mu_ggH: ggH, mu_VBF: VBF}", "free: ttbar"))
    said = describe_partner(Partner(["mu", "xs", "jes"], np.eye(3).tolist()), analysis)
    assert said == "measured beside the trained region: mu, xs; not there: tilt, norm_ttbar"


def test_a_workspace_that_cannot_be_used_is_refused_before_events_are_read(folder, tmp_path):
    (folder / "with.yaml").write_text(TEXT.replace("n_trees: 10", "n_trees: 10, with: nowhere.json"))
    steps: list[str] = []
    with pytest.raises(ConfigError, match=r"training\.with: no workspace at .*nowhere\.json"):
        run_analysis(read_analysis(folder / "with.yaml"), folder, tmp_path / "out", say=steps.append)
    assert "read" not in steps


@pytest.mark.parametrize("name", [r"a\0b", "x" * 5000, ".", "/dev/zero", "loop.json", "empty.json"])
def test_a_name_that_no_workspace_can_have_is_one_message(name, folder, tmp_path):
    (folder / "empty.json").write_text("")
    if not (folder / "loop.json").is_symlink():
        (folder / "loop.json").symlink_to(folder / "loop.json")
    (folder / "odd.yaml").write_text(TEXT.replace("n_trees: 10", f'n_trees: 10, with: "{name}"'))
    with pytest.raises(ConfigError, match=r"training\.with"):
        run_analysis(read_analysis(folder / "odd.yaml"), folder, tmp_path / "out")
