"""Several signal strengths: a score each, cells of both, and one fit."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from qbdt.analysis.analysis_file import parse_analysis, read_analysis
from qbdt.analysis.fit_folder import fit_scored
from qbdt.analysis.loader import load, require_settings
from qbdt.analysis.run import run_analysis
from qbdt.analysis.run_diagnosis import diagnose_run
from qbdt.analysis.run_page import run_document
from qbdt.analysis.score_tables import score_tables
from qbdt.analysis.tuning import tune
from qbdt.data import Dataset, Events, Role, Sample
from qbdt.data.readers import write_tables
from qbdt.errors import ConfigError, DataError, FitError
from qbdt.inference.templates.score_grid import make_grid
from qbdt.models.model_file import read_any_model
from qbdt.studies.comparison import Plan
from qbdt.tables import Table
from tests.analysis.measured.conftest import CENTRES, TEXT, N


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
    columns = ["event", "score_mu_ggH", "score_mu_VBF"]
    for name in CENTRES:
        table = pq.read_table(tmp_path / "scores" / f"{name}.parquet")
        assert table.column_names == ["x", "y", "event", "weight", *columns[1:]]
        same = pq.read_table(folder / "out" / "scored" / f"{name}.parquet")
        assert table.select(columns).sort_by("event").equals(same.select(columns).sort_by("event"))
    assert write_tables(tmp_path / "scores.root", score_tables(analysis, folder, model, "score")) == written


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
