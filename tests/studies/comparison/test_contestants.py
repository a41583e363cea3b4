"""Contestants: the same candidates in every run, and each peer trains."""

import sys

import numpy as np
import pytest

from qbdt.data import Dataset, Role, Sample
from qbdt.errors import ConfigError, DataError, MissingDependencyError
from qbdt.studies.comparison.contestants import CONTESTANTS, OURS, get_contestant, select_contestants
from tests.studies.paper.events import imitation

PEERS = [contestant for contestant in CONTESTANTS if not contestant.ours]
SMALL = {"n_trees": 5, "n_estimators": 5, "max_iter": 5}


@pytest.mark.parametrize("contestant", CONTESTANTS, ids=lambda c: c.name)
def test_candidates_are_the_same_in_every_run_and_differ_from_each_other(contestant):
    eight = contestant.candidates(8)
    assert contestant.candidates(3) == eight[:3]
    assert len({str(settings) for settings in eight}) == len(eight)
    if contestant.ranges:
        assert len(eight) == 8


@pytest.mark.parametrize("peer", PEERS, ids=lambda c: c.name)
def test_peers_train_and_tell_signal_from_background(peer):
    pytest.importorskip(peer.package.replace("scikit-learn", "sklearn"))
    data = imitation(300, 900)
    for settings in peer.candidates(2):
        small = {name: min(value, SMALL.get(name, value)) for name, value in settings.items()}
        score = peer.fit(data, small, 1).score
        signal, background = (score(sample.events) for sample in data.samples)
        assert np.isfinite(signal).all()
        assert signal.mean() > background.mean()


@pytest.mark.parametrize("peer", PEERS, ids=lambda c: c.name)
def test_peers_train_on_negative_weights(peer):
    pytest.importorskip(peer.package.replace("scikit-learn", "sklearn"))
    data = imitation(300, 900)
    background = data.samples[1]
    weight = np.where(np.arange(background.events.n_rows) % 6 == 0, -1.0, 1.0) * background.events.weight
    data = Dataset([data.samples[0], Sample("b", Role.BACKGROUND, background.events.with_weight(weight))])
    settings = {name: min(value, SMALL.get(name, value)) for name, value in peer.candidates(1)[0].items()}
    assert np.isfinite(peer.fit(data, settings, 1).score(background.events)).all()


def test_events_that_another_library_refuses_are_one_message():
    data = imitation(60, 60)
    holes = []
    for sample in data.samples:
        name = sample.events.features[0]
        missing = np.full(sample.events.n_rows, np.nan)
        holes.append(Sample(sample.name, sample.role, sample.events.with_column(name, missing)))
    peer = get_contestant("sklearn.linear_model.LogisticRegression")
    with pytest.raises(DataError, match="LogisticRegression cannot be trained on these events: Input X contains NaN"):
        peer.train(Dataset(holes), {}, 1)


def test_settings_of_the_papers_method_are_valid():
    from qbdt.training.settings import Settings

    for settings in get_contestant("QBDT (paper)").candidates(8):
        assert Settings(method="paper", **settings).method == "paper"


def test_names():
    assert get_contestant(OURS).ours
    assert [c.name for c in select_contestants(["AdaBoost", "scikit-learn HGB"])] == ["AdaBoost", "scikit-learn HGB"]
    with pytest.raises(ConfigError, match="no contestant CatBoost; there are: LightGBM"):
        select_contestants(["CatBoost"])


def test_what_a_result_depends_on_is_named():
    assert get_contestant("scikit-learn HGB").release.startswith("scikit-learn ")
    assert get_contestant(OURS).release.startswith("qbdt ")


def test_a_device_changes_results_of_xgboost_alone():
    pytest.importorskip("xgboost")
    names = ["XGBoost", "scikit-learn HGB", "QBDT (paper)", OURS]
    on_cpu, on_gpu = select_contestants(names), select_contestants(names, "cuda")
    assert [one.release != other.release for one, other in zip(on_cpu, on_gpu, strict=True)] == [True, *[False] * 3]
    assert [one.fit is not other.fit for one, other in zip(on_cpu, on_gpu, strict=True)] == [True, False, True, True]


def test_a_contestant_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingDependencyError, match=r"the method XGBoost needs .* pip install 'qbdt\[baselines\]'"):
        get_contestant("XGBoost")
