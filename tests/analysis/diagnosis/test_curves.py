"""Learning curves: ends that are known, parts that keep copies together, and the whole diagnosis in one call."""

import json

import numpy as np
import pytest

from qbdt.analysis.diagnosis.curves import Draws, LearningCurve, compute_size_curve, compute_tree_curve, thin_events
from qbdt.analysis.diagnosis.diagnosis import Diagnosis, diagnose
from qbdt.analysis.diagnosis.figures import diagnosis_figures, learning_curves
from qbdt.analysis.diagnosis.sensitivity import compute_sensitivity
from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.folds import SplitFolds
from qbdt.errors import DataError
from qbdt.inference.settings import FitSettings
from qbdt.models.cross_training import cross_train
from qbdt.training.ensembles import FoldedEnsemble
from qbdt.training.settings import Settings
from qbdt.trees.ensemble import Ensemble


@pytest.fixture(scope="module")
def whole(dataset, models, fit):
    return compute_sensitivity(dataset.transform(lambda events: {"score": models.score(events, 1)}), fit)


def test_the_last_number_of_trees_is_the_model(dataset, models, fit, whole):
    curve = compute_tree_curve(dataset, models, fit, n_points=4, n_threads=1)
    assert curve.at == (1.0, 2.0, 4.0, 8.0)
    assert (curve.full[-1], curve.stat[-1]) == (whole.sigma_full, whole.sigma_stat)


def test_points_are_those_of_shorter_models(dataset, models, fit):
    short = FoldedEnsemble(tuple(Ensemble(m.features, m.trees[:2]) for m in models.members), models.folds)
    scored = dataset.transform(lambda events: {"score": short.score(events, 1)})
    curve = compute_tree_curve(dataset, models, fit, n_points=4, n_threads=1)
    assert curve.full[1] == compute_sensitivity(scored, fit).sigma_full


def test_parts_are_the_same_events_in_all_variations(dataset):
    part = thin_events(dataset, 0.4, seed=3)
    kept = set(part.sample("background").events.identifier("event_number").tolist())
    assert 0.3 < len(kept) / 1500 < 0.5
    for source in ("r", "rate"):
        for direction in ("up", "down"):
            varied = part.varied(source, direction)["background"]
            assert set(varied.identifier("event_number").tolist()) == kept
    assert part.total(Role.BACKGROUND) == pytest.approx(2.5 * len(kept) * 1000 / 1500)
    other = set(thin_events(dataset, 0.4, seed=4).sample("background").events.identifier("event_number").tolist())
    assert 0.3 < len(kept & other) / len(kept) < 0.5


def test_identifiers_that_do_not_tell_events_apart():
    events = Events({"x": np.zeros(10)}, np.ones(10), {"half": np.arange(10) % 2})
    data = Dataset([Sample("b", Role.BACKGROUND, events)], folds=SplitFolds(2, "half"))
    with pytest.raises(DataError, match="half do not tell events apart"):
        thin_events(data, 0.5)


def test_sizes(dataset, trainer, fit, whole):
    curve = compute_size_curve(Draws(dataset, trainer, fit, repeats=2, n_threads=1), (0.25,), whole)
    assert curve.at == (0.25, 1.0)
    assert curve.full_spread[0] > 0 == curve.full_spread[1]
    assert curve.full[1] == whole.sigma_full
    with pytest.raises(DataError, match="needs folds"):
        compute_size_curve(Draws(dataset.with_folds(None), trainer, fit))


@pytest.fixture(scope="module")
def found(dataset, models, fit):
    return diagnose(dataset, models, fit, repeats=1, n_threads=1)


def test_a_diagnosis_in_one_call(found, whole):
    assert found.strength == whole
    assert found.sizes is None
    titles = [table.title for table in found.tables()]
    assert len(titles) == 6
    assert "σ_μ against trees" in titles
    assert Diagnosis.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_the_profiled_method_has_no_curve_over_trees(dataset):
    fit = FitSettings(transform="none", binning="equal_signal", bins=4, scan=False)
    settings = Settings(method="profile", n_trees=3, n_leaves=3)
    model = cross_train(dataset, settings, n_threads=1).ensemble
    found = diagnose(dataset, model, fit, repeats=1, n_threads=1)
    assert found.trees is None
    assert not any("σ_μ against" in table.title for table in found.tables())
    assert set(diagnosis_figures(found)) == {"features", "sources"}
    assert Diagnosis.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_folds_of_other_models(dataset, models, fit):
    other = FoldedEnsemble(models.members, SplitFolds(2, "event_number"))
    with pytest.raises(DataError, match="the events are divided by"):
        diagnose(dataset, other, fit)


def test_figures(found, tmp_path):
    from qbdt.analysis.diagnosis.figures import diagnosis_figures
    from qbdt.report.style import save

    figures = diagnosis_figures(found)
    assert set(figures) == {"features", "learning", "sources"}
    for name, drawn in figures.items():
        assert save(drawn, tmp_path / f"{name}.png").stat().st_size > 5000


def test_all_points_against_the_share_of_events_are_seen():
    full, spread = (0.27, 0.24, 0.23, 0.22), (0.006, 0.01, 0.008, 0.0)
    curve = LearningCurve(
        "share of the training events", (0.125, 0.25, 0.5, 1.0), full, spread, (0.23, 0.21, 0.21, 0.2), spread
    )
    low, high = learning_curves([curve]).axes[0].get_ylim()
    assert low < 0.2 < 0.276 < high
