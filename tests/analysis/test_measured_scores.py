"""Analyses of several signal strengths: a score each, cells of both, and one fit."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qbdt.analysis.analysis_file import parse_analysis, read_analysis
from qbdt.analysis.fit_folder import fit_scored
from qbdt.analysis.loader import describe_partner, load, load_regions, require_settings, training_settings
from qbdt.analysis.region_fit import fit_regions, read_control_regions
from qbdt.analysis.run import run_analysis
from qbdt.analysis.run_diagnosis import diagnose_run
from qbdt.analysis.run_folder import move_to_fit
from qbdt.analysis.run_page import run_document
from qbdt.analysis.score_tables import score_tables
from qbdt.analysis.tuning import tune
from qbdt.data import Dataset, Events, Role, Sample
from qbdt.data.readers import write_tables
from qbdt.errors import ConfigError, DataError, FitError
from qbdt.inference.partners import read_partner
from qbdt.inference.templates.score_grid import make_grid
from qbdt.models.model_file import read_any_model
from qbdt.studies.comparison import Plan
from qbdt.tables import Table
from qbdt.training.partner import Partner

N = 1500
CENTRES = {"ggH": (2.0, 0.0, 60.0), "VBF": (0.0, 2.0, 60.0), "ttbar": (0.0, 0.0, 900.0)}

TEXT = """
name: two signals
features: [x, y]
weight: w
samples:
  ggH: {role: signal, files: ggH.parquet}
  VBF: {role: signal, files: VBF.parquet}
  ttbar: {role: background, files: ttbar.parquet}
systematics:
  tilt: {kind: weight, processes: ttbar, up: nominal * (1 + 0.1 * x / 3)}
  xs: {kind: norm, processes: ttbar, size: 0.1}
folds: {columns: event}
training: {n_trees: 10, n_leaves: 4, strengths: {mu_ggH: ggH, mu_VBF: VBF}}
fit: {bins: 12, contours: true}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    rng = np.random.default_rng(5)
    for name, (x, y, total) in CENTRES.items():
        columns = {
            "x": rng.normal(x, 1, N),
            "y": rng.normal(y, 1, N),
            "event": np.arange(N),
            "w": np.full(N, total / N),
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    (folder / "analysis.yaml").write_text(TEXT)
    return folder


@pytest.fixture(scope="module")
def run(folder):
    return run_analysis(read_analysis(folder / "analysis.yaml"), folder, folder / "out", n_threads=1, figures=False)


def test_a_run_measures_both_strengths(run):
    fitted = run.result["fit"]["expected"]
    strengths = fitted["strengths"]
    assert list(strengths) == ["mu_ggH", "mu_VBF"]
    for one in strengths.values():
        assert one["mu"] == pytest.approx(1.0, abs=1e-3)
        assert 0.2 < one["sigma_mu"] < 0.6


def test_a_page_shows_both_strengths(run):
    document = run_document(run.folder)
    names = [figure.name for figure in document.figures()]
    expected = {"contour-mu_ggH-mu_VBF", "roc-mu_ggH", "roc-mu_VBF", "train-and-test-mu_ggH", "train-and-test-mu_VBF"}
    assert expected | {"ranking-mu_ggH", "ranking-mu_VBF"} <= set(names)
    assert len(names) == len(set(names))
    captions = {figure.name: figure.caption for figure in document.figures()}
    assert "ROC curve of VBF by the score of mu_VBF" in captions["roc-mu_VBF"]
    tables = [block.header for section in document.sections for block in section.blocks if isinstance(block, Table)]
    assert [header[2] for header in tables if header[:2] == ("source", "c")] == [
        "added to σ of mu_ggH, ordered by s/b",
        "added to σ of mu_VBF, ordered by s/b",
    ]
    assert [headline.label for headline in document.headlines] == ["mu_ggH", "mu_VBF"]


def test_scores_of_a_run_are_fitted_again_to_the_same_result(run, folder):
    again = fit_scored(read_analysis(folder / "out" / "scored" / "scored.yaml"), folder / "out" / "scored")
    expected = run.result["fit"]["expected"]["strengths"].values()
    assert [one.sigma_mu for one in again.expected.strengths] == pytest.approx([one["sigma_mu"] for one in expected])
    (templates,) = again.measurement.regions.values()
    assert 3 < templates.n_bins <= 12
    assert templates.variable == "cell of the scores"


def test_all_events_are_scored_with_a_column_for_each_strength(run, folder, tmp_path):
    """`qbdt score` ended in a traceback where a model has several scores."""
    analysis, (model, _) = read_analysis(folder / "analysis.yaml"), read_any_model(run.folder / "model.qbdt")
    written = write_tables(tmp_path / "scores", score_tables(analysis, folder, model, "score"))
    assert set(CENTRES) < set(written)
    for name in CENTRES:
        table = pq.read_table(tmp_path / "scores" / f"{name}.parquet").to_pandas().set_index("event")
        assert list(table.columns) == ["x", "y", "weight", "score_mu_ggH", "score_mu_VBF"]
        same = pq.read_table(folder / "out" / "scored" / f"{name}.parquet").to_pandas().set_index("event")
        columns = ["score_mu_ggH", "score_mu_VBF"]
        assert np.array_equal(table[columns], same.loc[table.index, columns])
    assert write_tables(tmp_path / "scores.root", score_tables(analysis, folder, model, "score")) == written


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


def test_a_category_for_each_signal(run, folder):
    scored = folder / "out" / "scored" / "scored.yaml"
    plan = read_analysis(scored)
    fit = plan.fit.model_copy(update={"binning": "categories", "bins": 8, "noise": False, "scan": False})
    again = fit_scored(plan.model_copy(update={"fit": fit}), scored.parent)
    (templates,) = again.measurement.regions.values()
    assert 4 < templates.n_bins <= 8
    assert templates.variable == "bin of the categories"
    cells = run.result["fit"]["expected"]["strengths"].values()
    for one, best in zip(again.expected.strengths, cells, strict=True):
        assert 0.9 * best["sigma_mu"] < one.sigma_mu < 1.5 * best["sigma_mu"]
    shares = [templates.process(name).nominal for name in ("ggH", "VBF")]
    first = np.arange(templates.n_bins) < templates.n_bins // 2
    assert shares[0][first].sum() > 2 * shares[1][first].sum()
    assert shares[1][~first].sum() > 2 * shares[0][~first].sum()


def test_the_fit_takes_its_defaults_from_the_training(folder):
    fit = read_analysis(folder / "analysis.yaml").fit
    assert (fit.binning, fit.bins, fit.parameters) == ("cells", 12, {"mu_ggH": ["ggH"], "mu_VBF": ["VBF"]})


def test_a_run_measures_a_source_of_interest(folder):
    (folder / "mass.yaml").write_text(
        TEXT.replace("strengths: {mu_ggH: ggH, mu_VBF: VBF}", "of_interest: tilt").replace("xs:", "xs_ttbar:")
    )
    analysis = read_analysis(folder / "mass.yaml")
    assert (analysis.fit.of_interest, analysis.fit.binning, analysis.fit.bins) == (["tilt"], "cells", 12)
    run = run_analysis(analysis, folder, folder / "mass", n_threads=1, figures=False)
    fitted = run.result["fit"]["expected"]
    kinds = {name: one["kind"] for name, one in fitted["parameters"].items() if one["kind"] != "mc_stat"}
    assert kinds == {"tilt": "poi", "mu": "free", "xs_ttbar": "source"}
    assert not fitted["is_strength"]
    assert fitted["mu"] == pytest.approx(0.0, abs=1e-6)
    assert 0.1 < fitted["sigma_mu"] < 3
    assert not (folder / "mass" / "fit" / "workspace.json").exists()
    assert "tilt" in {table.rows[0][0] for table in run.tables if table.header[0] == "parameter"}
    names = {figure.name for figure in run_document(run.folder).figures()}
    assert "train-and-test" in names
    assert "roc" not in names  # it does not tell signal from background


def test_what_looks_at_one_strength_refuses_more(folder, run, tmp_path):
    analysis = read_analysis(folder / "analysis.yaml")
    told = r"training\.strengths: a {} looks at one signal strength"
    with pytest.raises(ConfigError, match=told.format("comparison")):
        Plan(analysis, folder)
    with pytest.raises(ConfigError, match=told.format("search")):
        tune(load(analysis, folder), analysis, tmp_path)
    with pytest.raises(ConfigError, match=told.format("diagnosis")):
        diagnose_run(folder / "out", folder)


def test_one_named_strength_has_bins_of_its_score(folder):
    one = TEXT.replace("strengths: {mu_ggH: ggH, mu_VBF: VBF}", "strengths: {mu_H: [ggH, VBF]}")
    fit = parse_analysis(one).fit
    assert (fit.binning, fit.parameters) == ("optimised", {"mu_H": ["ggH", "VBF"]})


REGIONS = TEXT.replace("strengths: {mu_ggH: ggH, mu_VBF: VBF}", "with: control regions").replace(
    "folds:", "regions: {signal: {selection: x > -0.5}, control: {selection: x <= -0.5, observable: yield}}\nfolds:"
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


SEVERAL = REGIONS.replace("with: control", "strengths: {mu_ggH: ggH, mu_VBF: VBF}, free: ttbar, with: control")


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


def test_training_at_the_point_of_an_earlier_fit(run, folder, tmp_path):
    analysis = read_analysis(folder / "analysis.yaml")
    with pytest.raises(ConfigError, match=r"at: .*out has a fit to Asimov data, whose best point is the nominal one"):
        run_analysis(analysis, folder, tmp_path / "moved", at=run.folder)
    fit = json.loads((run.folder / "fit" / "fit.json").read_text())
    observed = {**fit["expected"], "data": "recorded"}
    observed["parameters"]["tilt"]["value"] = 0.7
    (tmp_path / "fit.json").write_text(json.dumps({**fit, "observed": observed}))
    at = training_settings(move_to_fit(analysis, tmp_path)).at
    assert at["tilt"] == 0.7
    assert set(at) <= {"tilt", "xs"}
    observed["parameters"]["lumi_2"] = {**observed["parameters"].pop("xs"), "value": 0.4}
    (tmp_path / "fit.json").write_text(json.dumps({**fit, "observed": observed}))
    (folder / "lumi.yaml").write_text(TEXT.replace("xs:", "lumi:"))  # a fit must not call a source so
    assert training_settings(move_to_fit(read_analysis(folder / "lumi.yaml"), tmp_path)).at == {
        "tilt": 0.7,
        "lumi": 0.4,
    }
    other = analysis.model_copy(update={"training": analysis.training.model_copy(update={"systematics": []})})
    with pytest.raises(ConfigError, match="has none of the sources of the training"):
        move_to_fit(other, tmp_path)


def test_more_scores_than_cells_can_be_made_of_are_refused_before_events_are_read(folder, tmp_path):
    """The fine grid has at least two boxes for each score: 42 of them took 32 TiB, after the training."""
    more = [f"s{i}" for i in range(15)]
    samples = "".join(f"  {name}: {{role: signal, files: ggH.parquet}}\n" for name in more)
    strengths = "".join(f", mu_{name}: {name}" for name in more)
    text = TEXT.replace("samples:\n", "samples:\n" + samples).replace("mu_VBF: VBF", "mu_VBF: VBF" + strengths)
    analysis = parse_analysis(text.replace("bins: 12", "bins: 40"))
    said: list[str] = []
    with pytest.raises(ConfigError, match="cells of at most 16 scores; here 17 are trained: use binning: categories"):
        run_analysis(analysis, folder, tmp_path / "out", say=said.append)
    assert said == []
    scores = {f"t{i}": np.zeros(4) for i in range(17)}
    events = [Sample(role, Role(role), Events(scores, np.ones(4))) for role in ("signal", "background")]
    with pytest.raises(FitError, match="17 scores have too many corners; at most 16"):
        make_grid(Dataset(events))


@pytest.mark.parametrize("value", ["x", 10**400, math.nan, None, [1], 1e5])
def test_a_fit_whose_values_are_no_working_point_is_refused(value, run, folder, tmp_path):
    fit = json.loads((run.folder / "fit" / "fit.json").read_text())
    fit["observed"] = {**fit["expected"], "data": "recorded"}
    fit["observed"]["parameters"]["tilt"]["value"] = value
    (tmp_path / "fit.json").write_text(json.dumps(fit))
    with pytest.raises(ConfigError, match=r"fit\.json: at: tilt: .*standard deviations"):
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mu_VBF: VBF", "mu_VBF: VBFH", r"training\.strengths: no signal process VBFH; did you mean VBF\?"),
        ("mu_VBF: VBF", "mu_VBF: ttbar", r"training\.strengths: no signal process ttbar; there are: ggH, VBF"),
        (", mu_VBF: VBF", "", r"training\.strengths: signal process VBF has no strength; each needs one"),
        ("mu_VBF: VBF", "mu_VBF: [ggH, VBF]", r"training\.strengths: signal process ggH has more than one strength"),
        ("mu_VBF: VBF", "tilt: VBF", r"training\.strengths: tilt is a source too"),
        ("n_leaves: 4", "free: ggH", r"training\.free: no background process ggH; there are: ttbar"),
        ("n_leaves: 4", "of_interest: mass", r"training\.of_interest: no strength or source mass; there are: mu_ggH"),
        ("n_leaves: 4", "of_interest: [tilt, tilt]", r"training\.of_interest: tilt is given twice"),
        ("bins: 12", "figure: area", r"fit\.figure: 'area': there are: determinant, sum, mu_ggH, mu_VBF"),
    ],
)
def test_names_that_an_analysis_does_not_have_are_refused_when_it_is_read(folder, old, new, message):
    (folder / "bad.yaml").write_text(TEXT.replace(old, new))
    with pytest.raises(ConfigError, match=r"bad\.yaml:1\d: " + message):
        read_analysis(folder / "bad.yaml")


def test_a_workspace_that_cannot_be_used_is_refused_before_events_are_read(folder, tmp_path):
    (folder / "with.yaml").write_text(TEXT.replace("n_trees: 10", "n_trees: 10, with: nowhere.json"))
    steps: list[str] = []
    with pytest.raises(ConfigError, match=r"training\.with: no workspace at .*nowhere\.json"):
        run_analysis(read_analysis(folder / "with.yaml"), folder, tmp_path / "out", say=steps.append)
    assert "read" not in steps


def test_a_source_called_like_the_trained_strength_is_refused_before_events_are_read(folder, tmp_path):
    named = TEXT.replace("xs:", "mu:")
    require_settings(parse_analysis(named))  # strengths have names of their own
    one = named.replace(", strengths: {mu_ggH: ggH, mu_VBF: VBF}", "")
    said: list[str] = []
    with pytest.raises(ConfigError, match=r"systematics\.mu: the signal strength of the training is called so"):
        run_analysis(parse_analysis(one), folder, tmp_path / "out", say=said.append)
    assert "read" not in said
    for fine in ("{method: paper, ", "{systematics: [tilt], "):
        require_settings(parse_analysis(one.replace("training: {", f"training: {fine}")))
    family = "mu: {kind: replicas, weights: pdf, processes: ttbar}"  # its components have names of their own
    require_settings(parse_analysis(one.replace("mu: {kind: norm, processes: ttbar, size: 0.1}", family)))


@pytest.mark.parametrize("name", [r"a\0b", "x" * 5000, ".", "/dev/zero", "loop.json", "empty.json"])
def test_a_name_that_no_workspace_can_have_is_one_message(name, folder, tmp_path):
    (folder / "empty.json").write_text("")
    if not (folder / "loop.json").is_symlink():
        (folder / "loop.json").symlink_to(folder / "loop.json")
    (folder / "odd.yaml").write_text(TEXT.replace("n_trees: 10", f'n_trees: 10, with: "{name}"'))
    with pytest.raises(ConfigError, match=r"training\.with"):
        run_analysis(read_analysis(folder / "odd.yaml"), folder, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("training: {", "training: {of_interest: xs, systematics: [tilt], "), "no strength or source xs"),
        (("fit: {", "fit: {of_interest: [xs, xs], "), "fit.of_interest: xs is given twice"),
        (("fit: {", "fit: {of_interest: xs, parameters: {xs: [ggH, VBF]}, "), "xs is a source, and a signal strength"),
        (("training: {", "training: {with: {control_regions: true, poi: mu}, "), "poi: goes with a file"),
    ],
)
def test_what_cannot_be_measured_is_refused_when_the_file_is_read(change, message):
    with pytest.raises(ConfigError, match=message):
        parse_analysis(TEXT.replace(*change))


def test_a_strength_called_like_the_measured_source_is_refused():
    """It would be measured in its place."""
    text = TEXT.replace(", strengths: {mu_ggH: ggH, mu_VBF: VBF}", ", of_interest: xs")
    parse_analysis(text)
    with pytest.raises(ConfigError, match="xs is a source, and a signal strength"):
        parse_analysis(text.replace("fit: {", "fit: {poi: xs, "))


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        ("limits: asymptotic", "fit.limits: xs is measured, and without signal"),
        ("binning: categories", "here 2 are trained and 1 fitted"),
    ],
)
def test_fits_that_no_scores_allow_are_refused_before_events_are_read(tmp_path, fit, message):
    text = TEXT.replace("strengths: {mu_ggH: ggH, mu_VBF: VBF}", "of_interest: [mu, xs]")
    with pytest.raises(ConfigError, match=message):
        run_analysis(parse_analysis(text.replace("contours: true", fit)), tmp_path, tmp_path / "run")


def test_a_sample_of_one_event_is_refused_before_any_fold_is_trained(folder, tmp_path):
    """The model of its own fold would have none of it: that was found after the other folds had been trained."""
    text = TEXT.replace("VBF.parquet}", f"VBF.parquet, selection: event == {N - 1}}}")
    said: list[str] = []
    with pytest.raises(DataError, match="folds: outside fold 1, sample VBF has no events"):
        run_analysis(parse_analysis(text), folder, tmp_path / "run", say=said.append, n_threads=1)
    assert not [text for text in said if text.startswith("train fold")]
