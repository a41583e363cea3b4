"""Cross-training: no event is ever scored by a model that trained on it or on a shifted copy of it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qbdt.training.methods
import qbdt.training.paper.boosting
from qbdt import CrossTrainedClassifier, Dataset, Events, FitSettings, QBDTClassifier, Sample, Systematic, fit_scores
from qbdt.data import Role
from qbdt.data.folds import HashFolds, ModuloFolds, SplitFolds
from qbdt.data.samples import BUILTIN
from qbdt.errors import ConfigError, DataError, ModelFileError, OutputError
from qbdt.models.cross_training import cross_train, train_into
from qbdt.models.model_file import read_cross_trained, write_model
from qbdt.training.ensembles import FoldedEnsemble
from qbdt.training.inputs import describe_events
from qbdt.training.model import CrossTrainedModel, End, TrainedModel
from qbdt.training.settings import Settings
from qbdt.trees.binning import Binning
from qbdt.trees.ensemble import Ensemble


@dataclass(frozen=True, eq=False)
class Memory:
    """In place of a model: remembers the identifiers of all rows it was trained on, and scores 1 what it has seen."""

    features: tuple[str, ...]
    trees: tuple[()]
    seen: frozenset[tuple[int, ...]]

    def score(self, events, n_threads=None):
        return np.array([row in self.seen for row in identities(events)], dtype=float)


def identities(events):
    return list(zip(*(np.asarray(events.identifier(name)).tolist() for name in events.id_names), strict=True))


def all_events(dataset):
    """All rows that a training on this dataset reads: nominal ones and those of every variation."""
    yield from (sample.events for sample in dataset.samples)
    for source in dataset.systematics:
        for direction, _ in source.directions:
            yield from dataset.varied(source.name, direction).values()


def memorise(dataset, settings, **_):
    seen = frozenset(row for events in all_events(dataset) for row in identities(events))
    binning = Binning(dataset.features, ())
    model: Any = Memory(dataset.features, (), seen)
    return TrainedModel(model, binning, settings, (), End(), describe_events(dataset))


@pytest.fixture
def memory(monkeypatch):
    monkeypatch.setattr("qbdt.models.cross_training.train", memorise)


def seen_events(dataset):
    """How many nominal or varied events are scored by a model that has seen their identifiers."""
    models = cross_train(dataset, Settings(method="paper")).ensemble
    scored = dataset.transform(lambda events: {"seen": models.score(events)})
    return sum(int(events.column("seen").sum()) for events in all_events(scored))


class RowFolds(ModuloFolds):
    """A wrong rule: by the row's place in its file, which a selection after a shift changes."""

    def assign(self, events):
        return np.arange(events.n_rows) % self.k


def test_no_event_of_the_example_is_scored_by_a_model_that_saw_it(memory):
    """The bundled example has events that a shift moves into or out of the selection."""
    dataset = BUILTIN["tautaugamma"](k=3).with_systematics(["tes", "met", "tauid"])
    nominal = {row for sample in dataset.samples for row in identities(sample.events)}
    varied = {row for events in all_events(dataset) for row in identities(events)}
    assert len(varied - nominal) > 100, "the example has lost its migrations: this test shows nothing"
    assert seen_events(dataset) == 0
    wrong = dataset.with_folds(RowFolds(3, "event_number"))
    assert seen_events(wrong) > 100, "the test does not notice a wrong rule"


ids = st.integers(-(2**62), 2**62)


@st.composite
def divided(draw):
    """Draw a small dataset whose shifted copies have lost and gained rows and are in another order, and a rule."""
    k = draw(st.integers(2, 5))
    rule = draw(
        st.sampled_from(
            [
                ModuloFolds(k, "event"),
                HashFolds(k, ("run", "event"), draw(ids)),
                HashFolds(k, ("event",)),
                SplitFolds(k, "part"),
            ]
        )
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    events = np.unique(np.array(draw(st.lists(ids, min_size=1, max_size=20))))

    def rows(some):
        run = some // 3
        columns = {"event": some, "run": run, "part": (some ^ run) % k}
        return Events({"x": rng.normal(size=len(some))}, np.ones(len(some)), columns)

    def copy():
        return rows(rng.permutation(events)[: rng.integers(len(events) + 1)])

    samples = [Sample("s", Role.SIGNAL, copy()), Sample("b", Role.BACKGROUND, copy()), Sample("d", Role.DATA, copy())]
    sources = [
        Systematic.shape("one", {"b": copy()}),
        Systematic.shape("two", {"s": copy(), "b": copy()}, {"s": copy(), "b": copy()}),
    ]
    return Dataset(samples, sources, rule)


@settings(max_examples=60)
@given(divided())
def test_no_event_is_scored_by_a_model_that_saw_it_whatever_the_rule(dataset):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qbdt.models.cross_training.train", memorise)
        assert seen_events(dataset) == 0
        models = cross_train(dataset, Settings(method="paper")).ensemble
    memories: Any = models.members
    for events in all_events(dataset):
        seen = [set(identities(events)) & model.seen for model in memories]
        assert set().union(*seen) == set(identities(events)), "an event that no model was trained on"


def small(k=3, n=300):
    return BUILTIN["inferno"](n=n, seed=2, k=k)


SETTINGS = Settings(method="paper", n_trees=12, n_leaves=4, max_bins=32)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "m.qbdt"
    return path, train_into(path, small(), SETTINGS, n_threads=1)


def test_each_model_is_what_training_without_its_fold_gives(whole):
    _, crossed = whole
    assert isinstance(crossed, CrossTrainedModel)
    for fold, training in enumerate(crossed.trainings):
        alone = qbdt.training.paper.boosting.train_paper(small().without_fold(fold), SETTINGS, n_threads=1)
        assert training.ensemble.trees == alone.ensemble.trees


@pytest.mark.parametrize(("fold", "trees"), [(0, 11), (1, 0), (2, 10)])
def test_an_interrupted_cross_training_goes_on_to_the_same_file(whole, tmp_path, monkeypatch, fold, trees):
    path, calls = tmp_path / "m.qbdt", []
    plain = qbdt.training.paper.boosting.train_paper

    def interrupted(part, settings, *, checkpoint, **options):
        calls.append(part)

        def stop(training):
            checkpoint(training)
            if len(calls) == fold + 1 and len(training.ensemble.trees) >= max(trees, 1):
                raise KeyboardInterrupt

        return plain(part, settings, checkpoint=stop, **options)

    monkeypatch.setattr("qbdt.models.cross_training.train", interrupted)
    partial = train_into(path, small(), SETTINGS, n_threads=1)
    assert isinstance(partial, CrossTrainedModel)
    assert not partial.complete
    assert len(partial.trainings) == fold + 1
    left = read_cross_trained(path)[0]
    assert not left.complete
    with pytest.raises(DataError, match=f"fold {fold} of 3 is trained in part only"):
        _ = left.ensemble
    monkeypatch.setattr("qbdt.models.cross_training.train", plain)
    said: list[str] = []
    assert train_into(path, small(), SETTINGS, resume=True, n_threads=1, say=said.append).complete
    assert path.read_bytes() == whole[0].read_bytes()
    assert said[:fold] == [f"train fold{i}: there already" for i in range(fold)]
    assert said[fold].startswith(f"train fold{fold}, going on after")


def test_a_killed_training_leaves_a_file_to_go_on_from(whole, tmp_path, monkeypatch):
    path, plain = tmp_path / "m.qbdt", qbdt.training.paper.boosting.train_paper

    def killed(part, settings, *, checkpoint, **options):
        def stop(training):
            checkpoint(training)
            if len(training.ensemble.trees) == 11:
                raise SystemError

        return plain(part, settings, checkpoint=stop, **options)

    monkeypatch.setattr("qbdt.models.cross_training.train", killed)
    with pytest.raises(SystemError):
        train_into(path, small(), SETTINGS, n_threads=1)
    left = read_cross_trained(path)[0]
    assert (len(left.trainings[0].ensemble.trees), left.complete) == (10, False)
    monkeypatch.setattr("qbdt.models.cross_training.train", plain)
    train_into(path, small(), SETTINGS, resume=True, n_threads=1)
    assert path.read_bytes() == whole[0].read_bytes()


def test_what_cannot_be_resumed(whole, tmp_path):
    path, crossed = whole
    with pytest.raises(DataError, match="divided events by ModuloFolds"):
        train_into(path, small(k=4), SETTINGS, resume=True)
    with pytest.raises(DataError, match="on other events"):
        train_into(path, small(n=301), SETTINGS, resume=True)
    with pytest.raises(DataError, match="it holds a cross-trained one, and this is a single"):
        train_into(path, small().with_folds(None), SETTINGS, resume=True)
    with pytest.raises(OutputError, match="force=True overwrites"):
        train_into(path, small(), SETTINGS, force=False)
    with pytest.raises(DataError, match="no fold rule"):
        cross_train(small().with_folds(None), SETTINGS)
    assert read_cross_trained(path)[0].complete
    assert crossed.complete


def test_average_and_missing_identifiers(whole):
    _, crossed = whole
    events = small().sample("signal").events
    models = crossed.ensemble
    mean = (models.members[0].score(events) + models.members[1].score(events) + models.members[2].score(events)) / 3
    assert np.array_equal(models.average(events), mean)
    bare = Events({name: events.column(name) for name in events.features}, events.weight)
    assert np.array_equal(models.average(bare), mean)
    with pytest.raises(DataError, match="no identifier column event_number, so which model did not see them"):
        models.score(bare)
    with pytest.raises(DataError, match="1 models for 2 folds"):
        FoldedEnsemble((Ensemble(("x",), ()),), ModuloFolds(2, "event"))


def flat(seed=1, n=400):
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0], n // 2)
    return {
        "m": rng.normal(y, 1.0),
        "pt": rng.normal(-y, 1.0),
        "run": np.arange(n) // 9,
        "event": np.arange(n) + 2**60,
    }, y


def test_the_scikit_learn_face_trains_as_the_dataset_does():
    """Sources of every kind, identifiers beyond what a float holds, variations with other rows."""
    table, y = flat()
    weight = np.random.default_rng(2).uniform(0.5, 2, len(y))
    moved = np.random.default_rng(3).permutation(len(y))[:380]
    shifted = {name: values[moved] for name, values in table.items()} | {"m": table["m"][moved] + 0.1}
    where = table["pt"] > 0
    sources = [
        Systematic.shape("s", (shifted, y[moved], weight[moved])),
        Systematic.weight("w", weight * 1.1, weight * 0.8),
        Systematic.norm("n", 0.1, where),
    ]
    rule = HashFolds(3, ("run", "event"))
    estimator = QBDTClassifier(method="paper", n_trees=3, n_leaves=4, n_threads=1)
    model = CrossTrainedClassifier(estimator, rule).fit(table, y, weight, sources)
    fold = rule.assign(Events({}, weight, {"run": table["run"], "event": table["event"]}))
    scores = model.decision_function(table)
    for number in range(3):
        keep, own = fold != number, fold[moved] != number
        part = {name: table[name][keep] for name in ("m", "pt")}
        part_sources = [
            Systematic.shape("s", ({n: shifted[n][own] for n in ("m", "pt")}, y[moved][own], weight[moved][own])),
            Systematic.weight("w", weight[keep] * 1.1, weight[keep] * 0.8),
            Systematic.norm("n", 0.1, where[keep]),
        ]
        alone = QBDTClassifier(method="paper", n_trees=3, n_leaves=4, n_threads=1).fit(
            part, y[keep], weight[keep], part_sources
        )
        assert model.training_.trainings[number].ensemble.trees == alone.trees_
        mine = {name: table[name][~keep] for name in ("m", "pt")}
        assert np.array_equal(scores[~keep], alone.decision_function(mine))


def test_the_scikit_learn_face_saves_and_loads(tmp_path):
    table, y = flat()
    model = CrossTrainedClassifier(QBDTClassifier(method="paper", n_trees=3), ModuloFolds(2, "event")).fit(
        {**table, "run": table["m"] * 0}, np.where(y, "sig", "bkg")
    )
    model.save(tmp_path / "m.qbdt")
    back = CrossTrainedClassifier.load(tmp_path / "m.qbdt")
    assert back.folds == model.folds
    assert back.estimator is not None
    assert back.estimator.n_trees == 3
    full = {**table, "run": table["m"] * 0}
    assert np.array_equal(back.decision_function(full), model.decision_function(full))
    assert np.array_equal(back.predict(full), model.predict(full))
    assert set(back.predict(full)) == {"sig", "bkg"}
    without = {name: full[name] for name in ("pt", "m", "run")}
    assert np.array_equal(back.average_decision_function(without), back.average_decision_function(full))
    with pytest.raises(DataError, match="no identifier column event"):
        back.decision_function(without)
    with pytest.raises(ModelFileError, match=r"CrossTrainedClassifier\.load"):
        QBDTClassifier.load(tmp_path / "m.qbdt")


FIT: dict[str, Any] = {"transform": "none", "binning": "optimised", "bins": 4, "scan": False}


def test_what_the_face_refuses():
    table, y = flat()
    model = CrossTrainedClassifier(QBDTClassifier(method="paper", n_trees=2), ModuloFolds(2, "event"))
    with pytest.raises(DataError, match="X has no column event; there are: m"):
        model.fit({"m": table["m"]}, y)
    with pytest.raises(DataError, match="X has 400 rows, y has 200"):
        model.fit(table, y[::2])
    source = Systematic.shape("tes", ({"m": table["m"]}, y, np.ones(400)))
    with pytest.raises(DataError, match="systematic tes: other columns than X: absent"):
        model.fit(table, y, None, [source])
    with pytest.raises(DataError, match="fold 1 has no signal events"):
        model.fit({**table, "event": np.where(y, 0, 1)}, y)
    with pytest.raises(DataError, match="outside fold 1, sample signal has a total weight of -50"):
        model.fit({**table, "event": np.arange(400) % 2}, y, np.where(y * (np.arange(400) % 2 == 0), -0.5, 1.0))
    with pytest.raises(ConfigError, match="folds=None: a rule"):
        CrossTrainedClassifier().fit({"m": table["m"]}, y)
    with pytest.raises(DataError, match="X is a Dataset, which has labels"):
        CrossTrainedClassifier().fit(small(k=2), y)
    with pytest.raises(DataError, match="there are: none with a name"):
        model.fit(table["m"][:, None], y)


def test_a_dataset_is_trained_on_as_it_is():
    model = CrossTrainedClassifier(QBDTClassifier(method="paper", n_trees=3, n_threads=1)).fit(small(k=2))
    crossed = cross_train(small(k=2), Settings(method="paper", n_trees=3), n_threads=1)
    assert model.ensemble_.folds == small(k=2).folds
    assert [t.ensemble.trees for t in model.training_.trainings] == [t.ensemble.trees for t in crossed.trainings]
    single = QBDTClassifier(method="paper", n_trees=3, n_threads=1).fit(small(k=2))
    assert single.feature_names_in_.tolist() == list(small().features)


def test_categories_of_pandas_go_through_cross_training_and_fit(tmp_path):
    """With processes and a shape source whose categories come in another order."""
    rng = np.random.default_rng(5)
    n, y = 1200, np.repeat([1, 0], 600)
    mode = np.where(rng.uniform(size=n) < 0.3 + 0.4 * y, "ee", rng.choice(["em", "mm"], n))
    frame = pd.DataFrame({"pt": rng.normal(y, 1.0), "mode": pd.Categorical(mode, ["mm", "ee", "em"])})
    frame = frame.assign(process=np.where(y, "higgs", rng.choice(["ztautau", "ttbar"], n)), event=np.arange(n))
    up = frame.assign(pt=1.05 * frame["pt"], mode=pd.Categorical(mode, ["em", "mm", "ee"]))
    weight = np.where(y, 0.02, 0.5)
    sources: Any = [Systematic.shape("tes", (up, y, weight)), Systematic.norm("xs", 0.1, processes=["ttbar"])]
    model = CrossTrainedClassifier(QBDTClassifier(n_trees=5, n_threads=1), ModuloFolds(2, "event"))
    model.fit(frame, y, weight, sources, process="process")
    assert model.ensemble_.features == ("pt", "mode")
    assert model.training_.trainings[0].settings.categorical_features == ("mode",)
    same = frame.assign(mode=up["mode"])
    assert np.array_equal(model.decision_function(same), model.decision_function(frame))
    model.save(tmp_path / "m.qbdt")
    again = CrossTrainedClassifier.load(tmp_path / "m.qbdt")
    assert np.array_equal(again.decision_function(same), model.decision_function(frame))
    result = fit_scores(model, frame, y, weight, sources, process="process", settings=FitSettings(**FIT))
    assert [process.name for process in result.templates.processes] == ["higgs", "ttbar", "ztautau"]
    assert result.templates.variable == "bin of score"  # bins of each fold are chosen on the other


PROFILE = Settings(method="profile", n_trees=4, n_leaves=4, max_bins=32)


def test_the_profiled_method_is_cross_trained_and_goes_on_after_an_interruption(tmp_path, monkeypatch):
    path, plain = tmp_path / "m.qbdt", qbdt.training.methods.train
    whole = train_into(tmp_path / "whole.qbdt", small(k=2), PROFILE, n_threads=1)
    assert isinstance(whole, CrossTrainedModel)
    calls = []

    def killed(part, settings, *, checkpoint, **options):
        def stop(training):
            checkpoint(training)
            calls.append(training.stopped)
            if len(calls) == 12:  # in the second fold
                raise SystemError

        return plain(part, settings, checkpoint=stop, **options)

    monkeypatch.setattr("qbdt.models.cross_training.train", killed)
    with pytest.raises(SystemError):
        train_into(path, small(k=2), PROFILE, n_threads=1)
    left = read_cross_trained(path)[0]
    assert [training.complete for training in left.trainings] == [True, False]
    monkeypatch.setattr("qbdt.models.cross_training.train", plain)
    again = train_into(path, small(k=2), PROFILE, resume=True, n_threads=1)
    assert again.complete
    assert path.read_bytes() == (tmp_path / "whole.qbdt").read_bytes()
    events = small(k=2).sample("signal").events
    assert np.array_equal(read_cross_trained(path)[0].ensemble.score(events), whole.ensemble.score(events))


@pytest.mark.parametrize("own", [{"free": ["background"]}, {"at": {"xs": 0.5}}, {"of_interest": ["xs"]}])
def test_what_is_fitted_beside_the_strength_is_no_other_event(tmp_path, own):
    """A free normalisation is a source that the events do not have, and a working point changes their yields."""
    settings = replace(PROFILE, n_trees=1, **own)
    dataset = small(k=2)
    dataset = Dataset(dataset.samples, [Systematic.norm("xs", 0.1, processes=["background"])], dataset.folds)
    whole = train_into(tmp_path / "whole.qbdt", dataset, settings, n_threads=1)
    assert isinstance(whole, CrossTrainedModel)
    write_model(tmp_path / "m.qbdt", CrossTrainedModel(whole.trainings[:1], whole.folds))
    said: list[str] = []
    train_into(tmp_path / "m.qbdt", dataset, settings, resume=True, n_threads=1, say=said.append)
    assert said == ["train fold0: there already", "train fold1"]
    assert (tmp_path / "m.qbdt").read_bytes() == (tmp_path / "whole.qbdt").read_bytes()


def test_writing_unfinished_models_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    """Where training takes no time beside it, only the first and those that hold another finished model are written."""
    clock, written = [0.0], []

    def write(path, training, extra=None):
        clock[0] += 100
        written.append([one.complete for one in training.trainings])

    monkeypatch.setattr("qbdt.models.cross_training.monotonic", lambda: clock[0])
    monkeypatch.setattr("qbdt.models.cross_training.write_model", write)
    train_into(tmp_path / "m.qbdt", small(k=3), PROFILE, n_threads=1)
    assert written == [[False], [True, False], [True, True, False], [True] * 3]
