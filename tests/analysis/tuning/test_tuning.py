"""The search: nested, resumable to the same end, refused in a folder of another, and written ready for use."""

import gc
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

import qbdt.analysis.tuning.search as module
from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.loader import load
from qbdt.analysis.schema import Analysis
from qbdt.analysis.tuning.figures import search_history
from qbdt.analysis.tuning.judge import Judge
from qbdt.analysis.tuning.result import Tuning, TuningTrial, best_section, write_tuning
from qbdt.analysis.tuning.search import tune
from qbdt.analysis.tuning.space import SPACES, space_of
from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.folds import SplitFolds
from qbdt.data.samples.inferno import inferno
from qbdt.errors import ConfigError, DataError, FitError, OutputError
from qbdt.files import FolderLock
from qbdt.statistics import Sensitivity
from qbdt.training.methods import train as run_training
from qbdt.training.settings import Settings
from qbdt.trees.ensemble import Ensemble

pytest.importorskip("optuna")
ANALYSIS = """
name: small
dataset: {name: inferno, options: {n: 400, k: 2}}
training: {method: paper, n_trees: 4, n_leaves: 3}
fit: {bins: 4, min_entries: 0, scan: false}
"""


@pytest.fixture(scope="module")
def analysis():
    return parse_analysis(ANALYSIS, "small.yaml")


@pytest.fixture(scope="module")
def dataset(analysis):
    return load(analysis)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """Make trials short: the number of trees is searched between 2 and 6."""
    short = tuple(replace(d, low=2, high=6) if d.name == "n_trees" else d for d in SPACES["paper"])
    monkeypatch.setitem(SPACES, "paper", short)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return tmp_path_factory.mktemp("tuning")


@pytest.fixture
def found(analysis, dataset, study):
    return tune(dataset, analysis, study, n_trials=4, inner=2, n_threads=1)


def test_the_result(found):
    assert [trial.number for trial in found.trials] == [0, 1, 2, 3]
    assert all(len(trial.full) == 2 for trial in found.trials)
    assert found.best.value == min(trial.value for trial in (found.start, *found.trials))
    assert found.start.settings["n_trees"] == 4
    assert found.nested.sigma_full > 0
    assert found.out_of_fold.sigma_full >= found.out_of_fold.sigma_stat


def test_a_second_call_trains_nothing(found, analysis, dataset, study, monkeypatch):
    monkeypatch.setattr(module, "train", None)
    assert tune(dataset, analysis, study, n_trials=4, inner=2, n_threads=1) == found


def test_an_interrupted_search_ends_the_same(found, analysis, dataset, tmp_path, monkeypatch):
    verdict, calls = module._verdict, []

    def interrupted(judge, settings):
        calls.append(settings)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return verdict(judge, settings)

    monkeypatch.setattr(module, "_verdict", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(dataset, analysis, tmp_path, n_trials=4, inner=2, n_threads=1)
    assert tune(dataset, analysis, tmp_path, n_trials=4, inner=2, n_threads=1) == found


def test_a_folder_of_another_search(found, analysis, dataset, study):
    with pytest.raises(ConfigError, match="holds a search of another analysis"):
        tune(dataset, analysis, study, n_trials=4, inner=3)


def test_the_study_is_closed(found, analysis, dataset, study):
    psutil = pytest.importorskip("psutil")
    tune(dataset, analysis, study, n_trials=4, inner=2, n_threads=1)
    assert not [file for file in psutil.Process().open_files() if Path(file.path) == (study / "study.db").resolve()]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_damaged_study(analysis, dataset, tmp_path):
    (tmp_path / "study.db").write_bytes(b"no database" * 100)
    with pytest.raises(OutputError, match=r"study\.db: the study cannot be read or written: file is not a database"):
        tune(dataset, analysis, tmp_path, n_trials=1)
    gc.collect()  # optuna leaves a damaged file open; from Python 3.13 on that is a warning


def test_a_study_that_cannot_be_written(found, analysis, dataset, study, monkeypatch):
    import optuna

    def fail(*_, **given):
        raise optuna.exceptions.StorageInternalError from OSError(28, "No space left on device")

    monkeypatch.setattr(optuna.storages.RDBStorage, "set_trial_state_values", fail)
    with pytest.raises(OutputError, match=r"the study cannot be read or written: .*No space left on device"):
        tune(dataset, analysis, study, n_trials=5, inner=2, n_threads=1)


def test_what_is_written(found, analysis, tmp_path):
    paths = write_tuning(found, analysis, tmp_path)
    assert [path.name for path in paths] == ["tuning.json", "best.yaml", "tuning.png"]
    assert paths[2].stat().st_size > 10_000
    assert json.loads(paths[0].read_text())["tuning"]["best"]["settings"] == found.best.settings
    section = yaml.safe_load(paths[1].read_text())
    merged = Analysis.model_validate({**yaml.safe_load(ANALYSIS), **section})
    assert merged.training.model_dump()["n_trees"] == found.best.settings["n_trees"]
    assert merged.training.method == "paper"


def test_settings_that_are_not_searched_stay(found):
    kept = parse_analysis(ANALYSIS.replace("n_leaves: 3", "n_leaves: 3, max_bins: 30, systematics: []"), "a.yaml")
    section = yaml.safe_load(best_section(found, kept))["training"]
    assert (section["max_bins"], section["systematics"]) == (30, [])


@pytest.mark.parametrize("method", Settings.rules()["method"].choices)
def test_every_method_has_a_space_of_real_settings(method):
    names = [dimension.name for dimension in space_of(method)]
    assert len(set(names)) == len(names) > 3
    for dimension in space_of(method):
        for value in dimension.choices or (dimension.low, dimension.high):
            Settings(method=method, **{dimension.name: value})
    with pytest.raises(ConfigError, match="no settings to search"):
        space_of("other")


def test_verdicts_never_see_the_events_of_their_fold():
    """Changing every event of fold 0 changes nothing in the verdict without it, and everything in the other one."""

    def spoilt(data):
        def change(events):
            flipped = np.where(data.folds.assign(events) == 0, -7.0, 1.0)
            return {name: events.column(name) * flipped for name in events.features}

        return data.transform(change)

    base = inferno(400, k=2)
    settings = parse_analysis(ANALYSIS, "a.yaml").fit

    def train(part, chosen):
        return run_training(part, chosen, n_threads=1).ensemble

    judges = [Judge(data, settings, train, inner=2) for data in (base, spoilt(base))]
    chosen = Settings(method="paper", n_trees=3)
    assert judges[0].inside(0, chosen) == judges[1].inside(0, chosen)
    assert judges[0].inside(1, chosen) != judges[1].inside(1, chosen)


def test_no_model_is_judged_on_events_it_saw():
    seen = []
    base = inferno(400, k=2)

    def train(part, chosen):
        seen.append({s.name: set(s.events.identifier("event_number").tolist()) for s in part.samples})
        return Recorder(part.features, ())

    class Recorder(Ensemble):
        def score(self, events, n_threads=None):
            ids = set(events.identifier("event_number").tolist())
            name = "signal" if events.total < 30 else "background"
            assert not ids & seen[-1][name] or not ids & seen[-2][name]
            return np.linspace(-1, 1, events.n_rows)

    fit = parse_analysis(ANALYSIS, "a.yaml").fit
    Judge(base, fit, train, inner=2).inside(1, Settings(method="paper"))
    outer = {int(i) for parts in seen for i in parts["background"]}
    assert all(i % 2 == 0 for i in outer)


def test_settings_that_cannot_be_fitted_are_infinitely_bad(analysis, dataset):
    def refuse(part, chosen):
        raise FitError("nothing to fit")

    verdict = module._verdict(Judge(dataset, analysis.fit, refuse), Settings(method="paper"))
    assert verdict == {"full": [np.inf] * 2, "stat": [np.inf] * 2}


def test_a_search_needs_settings_to_start_from_that_can_be_fitted(analysis, dataset, tmp_path, monkeypatch):
    def refuse(judge, fold, settings):
        raise FitError("nothing to fit")

    monkeypatch.setattr(Judge, "inside", refuse)
    with pytest.raises(FitError, match="nothing to fit"):
        tune(dataset, analysis, tmp_path, n_trials=2)


def test_a_figure_of_trials_that_gave_nothing():
    assert search_history(
        [np.inf, np.inf], {"n_trees": [3, 4], "symmetrise": [True, False]}, 1.0, {"n_trees": 3, "symmetrise": True}
    )


def test_what_cannot_be_tuned(analysis, dataset):
    def never(part, chosen):
        raise AssertionError

    with pytest.raises(ConfigError, match="folds: needed to tune"):
        Judge(dataset.with_folds(None), analysis.fit, never)
    with pytest.raises(ConfigError, match="inner=1"):
        Judge(dataset, analysis.fit, never, inner=1)
    events = Events({"x": np.zeros(10)}, np.ones(10), {"half": np.arange(10) % 2})
    coarse = Dataset([Sample("b", Role.BACKGROUND, events)], folds=SplitFolds(2, "half"))
    with pytest.raises(DataError, match="do not tell events apart"):
        Judge(coarse, analysis.fit, never)


def test_the_best_without_a_fold():
    start = TuningTrial(-1, {}, (3.0, 3.0), (1.0, 1.0))
    trials = (TuningTrial(0, {}, (1.0, 4.0), (1.0, 1.0)), TuningTrial(1, {}, (2.0, 2.0), (1.0, 1.0)))
    found = Tuning("paper", start, trials, Sensitivity(1, 1), Sensitivity(1, 1))
    assert (found.best_without(0).number, found.best_without(1).number, found.best.number) == (0, 1, 1)


def test_the_command(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from qbdt.cli.app import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(ANALYSIS.replace("n: 400", "n: 200"))
    done = CliRunner().invoke(app, ["tune", "a.yaml", "--trials", "1", "--inner", "2", "-j", "1", "--json", "-q"])
    assert done.exit_code == 0
    assert len(json.loads(done.stdout)["trials"]) == 1
    assert (tmp_path / "tuning" / "best.yaml").exists()
    with FolderLock(tmp_path / "tuning"):
        refused = CliRunner().invoke(app, ["tune", "a.yaml"])
    assert "another process is working in this folder" in str(refused.exception)
