"""The profiled training as a whole: what must not matter to a bit, what must hold on average, and how it is stopped."""

import threading
import time
import traceback
from typing import Any

import numpy as np
import pytest

from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.folds import HashFolds
from qbdt.data.systematic import Systematic
from qbdt.errors import ConfigError, DataError
from qbdt.estimator import QBDTClassifier
from qbdt.models.model_file import read_model, write_model
from qbdt.threads import Workers
from qbdt.training.kernels.growth import grow_pair_tree
from qbdt.training.monitor import Monitor
from qbdt.training.partitions.survey import Survey
from qbdt.training.profile.folds_at_once import fit_at_once
from qbdt.training.profile.inner_folds import N_FOLDS, InnerFolds, count_rows
from qbdt.training.profile.method import train_profiled
from qbdt.training.profile.ratio import FittedRatio, choose_size
from qbdt.training.profile.turns import TREES_PER_TURN, Cancelled, Turns
from qbdt.training.settings import Settings
from qbdt.trees.ensemble import Ensemble

SETTINGS = Settings(method="profile", n_trees=12, n_leaves=4)


def problem(seed=0, n=1500, with_ids=True, negative=False):
    """Return a signal and a background in x and y; x is shifted, weights tilt in y, the yield is known to 10 %."""
    rng = np.random.default_rng(seed)
    ids = np.arange(n)

    def events(x, y, weight):
        return Events({"x": x, "y": y}, weight, {"event": ids} if with_ids else None)

    flip = np.where(rng.random(n) < 0.1, -1.0, 1.25) if negative else np.ones(n)
    s = events(rng.normal(0.8, 1, n), rng.normal(0.8, 1, n), np.full(n, 40.0 / n))
    x, y = rng.normal(0, 1.2, n), rng.normal(0, 1.2, n)
    x[:20] = np.nan
    w = flip * 800.0 / n
    sources = [
        Systematic.shape("scale", {"b": events(x + 0.2, y, w)}, {"b": events(x - 0.2, y, w)}),
        Systematic.shape("one", {"b": events(x, y * 1.1, w)}),
        Systematic.weight("tilt", {"b": w * (1 + 0.2 * np.tanh(y)), "s": s.weight * 1.1}),
        Systematic.norm("xs", 0.1, processes=["b"]),
    ]
    return Dataset([Sample("s", Role.SIGNAL, s), Sample("b", Role.BACKGROUND, events(x, y, w))], sources)


def trained_on(dataset: Dataset, settings: Settings = SETTINGS, **options: Any) -> Any:
    """Train; untyped, since every test knows that the model is a profiled one with an expectation."""
    return train_profiled(dataset, settings, **options)


def divided(dataset, fold):
    folds = InnerFolds.of(Survey(dataset, {0: count_rows(dataset, SETTINGS)}, (), None))
    return folds.split(0, dataset, fold, Workers(1))


def scores(training, dataset):
    return np.concatenate([training.ensemble.score(sample.events, 1) for sample in dataset.samples])


def reordered(dataset, seed=1):
    rng = np.random.default_rng(seed)
    orders = {sample.name: rng.permutation(sample.events.n_rows) for sample in dataset.samples}
    samples = [Sample(s.name, s.role, s.events[orders[s.name]]) for s in dataset.samples]
    sources = [
        s.map(lambda process, change: change.select(orders[process], lambda e: rng.permutation(e.n_rows)))
        for s in dataset.systematics
    ]
    return Dataset(samples, sources, dataset.folds)


@pytest.fixture(scope="module")
def dataset():
    return problem()


@pytest.fixture(scope="module")
def trained(dataset):
    return trained_on(dataset, SETTINGS, n_threads=1)


def assert_same(one, other):
    for mine, theirs in ((one.ensemble.ratio, other.ensemble.ratio), (one.ensemble.shift, other.ensemble.shift)):
        assert mine.trees == theirs.trees
    assert one.ensemble.coefficients == other.ensemble.coefficients
    assert one.expectation == other.expectation


def test_shifts_stop_when_held_out_events_have_nothing_more_to_gain(dataset, monkeypatch):
    def grown(patience):
        seen: list[Any] = []
        monkeypatch.setattr("qbdt.training.profile.shifts.PATIENCE", patience)
        found = trained_on(dataset, SETTINGS, n_threads=1, monitor=Monitor(callbacks=(seen.append,)))
        return len(seen), [fold["shift"] for fold in found.data["parts"]]

    (few, hasty), (many, patient) = grown(1), grown(SETTINGS.n_trees)
    assert few < many
    for kept in (hasty, patient):
        assert max(kept) < SETTINGS.n_trees
    assert len(set(patient)) == 1  # all folds have the same number


@pytest.mark.parametrize(
    ("sigmas", "grown", "kept"),
    [
        ((3.0, 2.0, 4.0, 5.0, 6.0), 6, 2),
        ((1.0, 2.0, 3.0, 4.0), 4, 1),
        (tuple(range(17, 0, -1)), 24, 24),
        ((2.0,) * 17, 24, 24),
        ((1.0, *(1.05,) * 8), 12, 1),
        ((*(2.0,) * 10, 1.0, *(1.05,) * 3), 20, 15),
    ],
)
def test_the_ratio_stops_after_three_looks_without_gain(dataset, monkeypatch, sigmas, grown, kept):
    seen: list[Any] = []
    answers = iter(sigmas * N_FOLDS)
    monkeypatch.setattr("qbdt.training.profile.ratio.LOOKS", len(sigmas))  # each fold ends by itself
    monkeypatch.setattr("qbdt.training.profile.ratio.unprofiled_sigma", lambda store: next(answers))
    settings = Settings(method="profile", n_trees=24, n_leaves=4)
    found = trained_on(dataset.with_systematics([]), settings, monitor=Monitor(callbacks=(seen.append,)))
    assert len(seen) == N_FOLDS * grown
    assert [fold["ratio"] for fold in found.data["parts"]] == [kept] * N_FOLDS


def folds_of(*sigmas):
    """Folds with these σ_μ after 10, 20, … trees."""
    return [FittedRatio((), {10 * (i + 1): sigma for i, sigma in enumerate(own)}) for own in sigmas]


def test_as_many_trees_as_are_not_worse_beyond_an_error():
    assert choose_size(folds_of((1.0, 1.1, 1.2))) == 10  # one fold knows no error
    assert choose_size(folds_of((1.0, 1.1, 1.2), (1.0, 1.1, 1.2))) == 10  # no spread: no error
    assert choose_size(folds_of((1.0, 1.02, 1.3), (1.05, 1.0, 1.31))) == 20
    assert choose_size(folds_of((1.0, 1.1), (1.0, 1.1, 0.5))) == 30  # the last of the first fold counts


def test_the_ratio_is_the_mean_of_its_sums(dataset):
    seen: list[Any] = []
    settings = Settings(method="profile", n_trees=3, n_leaves=4)
    found = trained_on(dataset.with_systematics([]), settings, monitor=Monitor(callbacks=(seen.append,)))
    events, trees = dataset.sample("b").events, [report.tree for report in seen]
    expected, first = np.zeros(events.n_rows), 0
    for fold in found.data["parts"]:
        own = trees[first : first + fold["ratio"]]
        outputs = [Ensemble(found.ensemble.features, (tree,)).score(events) for tree in own]
        expected += np.cumsum(outputs, axis=0).mean(axis=0) / N_FOLDS
        first += settings.n_trees
    assert found.ensemble.ratio.score(events) == pytest.approx(expected)


@pytest.mark.parametrize("n_threads", [2, 4])
def test_threads_change_nothing(dataset, trained, n_threads):
    assert_same(trained, trained_on(dataset, SETTINGS, n_threads=n_threads))


def test_folds_at_once_go_on_after_an_interruption(dataset, trained):
    class Interrupted(Exception):
        pass

    def stop(training):
        kept.append(training)
        if len(kept) == 7:
            raise Interrupted

    kept: list[Any] = []
    with pytest.raises(Interrupted):
        trained_on(dataset, SETTINGS, n_threads=2, checkpoint=stop)
    assert_same(trained, trained_on(dataset, SETTINGS, n_threads=2, resume=kept[-1]))


def test_the_order_of_rows_changes_nothing_where_events_have_identifiers(dataset, trained):
    assert_same(trained, trained_on(reordered(dataset), SETTINGS))


def test_the_kernel_that_grows_trees_is_called_directly_in_memory(monkeypatch):
    """From the job of a fold to the kernel there are at most five Python frames: no messages to oneself."""
    depths = []

    def count_frames(*arguments):
        names = [frame.name for frame in traceback.extract_stack()][:-1]
        depths.append(len(names) - names.index("do"))
        return grow_pair_tree(*arguments)

    monkeypatch.setattr("qbdt.training.profile.pair_rows.grow_pair_tree", count_frames)
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], 500)
    x = rng.normal(y[:, None], 1.0, (1000, 2))
    source = Systematic.norm("xs", 0.1, where=y == 0)
    QBDTClassifier(method="profile", n_trees=1, n_threads=1).fit(x, y, systematics=[source])
    assert max(depths) == 5


def test_rows_and_features_can_be_drawn():
    settings = Settings(method="profile", n_trees=4, n_leaves=4, row_fraction=0.5, feature_fraction=0.5, random_state=3)
    one, other = (trained_on(problem(2), settings, n_threads=n) for n in (1, 2))
    assert_same(one, other)


def test_systematics_are_won_back(trained):
    found = trained.expectation
    assert found.sigma_stat < found.sigma_full < 0.95 * found.unprofiled
    assert [source.name for source in found.sources] == ["scale", "one", "tilt", "xs"]
    assert all(source.profiled_cost < source.cost for source in found.sources if source.cost > 0.3)


def test_without_sources_it_is_a_classifier(dataset):
    found = trained_on(dataset.with_systematics([]), SETTINGS)
    assert not found.ensemble.shift.trees
    assert found.expectation.sigma_stat == found.expectation.sigma_full == found.expectation.unprofiled
    s, b = (found.ensemble.score(sample.events) for sample in dataset.samples)
    assert np.median(s) > np.median(b)


def test_sources_of_noise_cost_nothing(dataset, trained):
    rng = np.random.default_rng(8)
    b = dataset.sample("b").events
    noise = [
        Systematic.weight(f"noise{i}", {"b": b.weight * (1 + 0.05 * rng.choice([-1.0, 1.0], b.n_rows))})
        for i in range(8)
    ]
    more = trained_on(Dataset(dataset.samples, [*dataset.systematics, *noise]), SETTINGS)
    assert more.expectation.sigma_full < 1.03 * trained.expectation.sigma_full  # eight more fits to noise


def test_negative_weights_are_trained_on():
    found = trained_on(problem(4, negative=True), SETTINGS)
    assert np.isfinite(scores(found, problem(4))).all()
    assert found.expectation.sigma_full <= found.expectation.unprofiled


def test_importances_are_in_information(trained):
    found, recovered = trained.expectation, trained.ensemble.shift.gains().sum()
    assert trained.ensemble.ratio.gains().sum() == pytest.approx(found.sigma_stat**-2)
    assert recovered == pytest.approx(found.sigma_full**-2 - found.unprofiled**-2)


def test_shifted_copies_are_in_the_part_of_their_event(dataset):
    seen = []
    for fold in range(N_FOLDS):
        trained, held = divided(dataset, fold)
        kept = {int(i) for i in held.sample("b").events.identifier("event")}
        for source in ("scale", "one"):
            varied = held.varied(source, "up")["b"]
            assert {int(i) for i in varied.identifier("event")} == kept
        assert not kept & {int(i) for i in trained.sample("b").events.identifier("event")}
        seen.append(kept)
    assert set().union(*seen) == set(range(1500))


def test_parts_are_independent_of_folds_by_the_same_hash(dataset):
    folds = HashFolds(3, ("event",))
    held = divided(dataset.with_folds(folds), 0)[1].sample("b").events
    counts = np.bincount(folds.assign(held), minlength=3)
    assert counts.min() > 0.25 * counts.sum()


def test_without_identifiers_position_decides():
    dataset = problem(with_ids=False)
    _, held = divided(dataset, 1)
    rows = [held.varied(source, "up")["b"].n_rows for source in ("scale", "one")]
    assert rows == [held.sample("b").events.n_rows] * 2
    assert trained_on(dataset, SETTINGS).expectation.sigma_full > 0


def test_a_training_can_be_written_read_and_resumed(dataset, trained, tmp_path):
    path = tmp_path / "model.qbdt"
    write_model(path, trained)
    again = read_model(path)[0]
    assert_same(trained, again)
    assert np.array_equal(scores(trained, dataset), scores(again, dataset))
    kept: list[Any] = []
    trained_on(dataset, SETTINGS, checkpoint=kept.append)
    assert [len(one.data["parts"]) for one in kept] == [1, 2, 3, 4, 5, 5, 5, 5, 5]
    for checkpoint in (kept[1], kept[6]):  # while F is fitted, and while the shifts are
        write_model(path, checkpoint)
        assert_same(trained, trained_on(dataset, SETTINGS, resume=read_model(path)[0]))


def test_interrupting_keeps_what_is_there(dataset):
    def interrupt(report):
        if report.index == N_FOLDS * SETTINGS.n_trees + 15:  # in the second sum of the shifts
            raise KeyboardInterrupt

    found = trained_on(dataset, SETTINGS, monitor=Monitor(callbacks=(interrupt,)))
    assert found.stopped == "interrupted after 6 of 10 sums of trees"
    assert not found.complete
    assert found.ensemble.shift.trees
    early = trained_on(dataset, SETTINGS, monitor=Monitor(callbacks=(lambda report: report.index == 5,)))
    assert early.stopped == "stopped early after 0 of 10 sums of trees"
    assert len(early.ensemble.ratio.trees) == 6


def test_what_cannot_be_resumed_is_refused(dataset, trained):
    with pytest.raises(DataError, match="other settings"):
        trained_on(dataset, Settings(method="profile", n_leaves=5), resume=trained)
    with pytest.raises(DataError, match="other events"):
        trained_on(dataset.with_systematics(["xs"]), SETTINGS, resume=trained)
    with pytest.raises(ConfigError, match="no validation sample"):
        trained_on(dataset, SETTINGS, monitor=Monitor(validation=dataset))


def test_a_monotonic_map_of_the_score(trained, dataset):
    model, events = trained.ensemble, dataset.sample("b").events
    t = model.probability(model.ratio.score(events)) - model.shift.score(events)
    order = np.argsort(t, kind="stable")
    assert np.all(np.diff(model.score(events)[order]) >= 0)
    assert np.abs(model.score(events)).max() < 1
    staged = list(model.staged_scores(events))
    assert np.array_equal(staged[-1], model.score(events))
    assert model.leaves(events).shape == (events.n_rows, len(model.trees))


def test_each_tree_of_the_table_names_its_sum(trained):
    pytest.importorskip("pandas")
    assert set(trained.ensemble.to_frame()["sum"]) == {"ratio", "shift"}


def test_the_last_fold_at_work_has_all_threads():
    class Events:
        n_bytes = 1

        def fork(self, workers):
            return self

    rows: Any = Events()
    may_end = threading.Event()
    jobs = [lambda events, own: own.n_threads, lambda events, own: may_end.wait(60) and own.n_threads]
    with Workers(4) as workers:
        found = fit_at_once(rows, workers, jobs, Turns())
        first = next(found)
        may_end.set()
        assert (first, next(found)) == (1, 4)


def test_jobs_take_turns_and_one_is_at_work_at_a_time():
    turns, order = Turns(), []

    def grow(name):
        with turns.work():
            for _ in range(2 * TREES_PER_TURN):
                order.append(name)
                turns.note_tree()

    turns.allow(1)
    with turns.work():  # both begin to wait
        threads = [threading.Thread(target=grow, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        while len(turns._waiting) < len(threads):
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    joined = "".join(order)
    assert sorted(joined[::TREES_PER_TURN]) == ["a", "a", "b", "b"]
    assert all(len(set(joined[i : i + TREES_PER_TURN])) == 1 for i in range(0, len(joined), TREES_PER_TURN))
    turns.cancel()
    with pytest.raises(Cancelled):
        turns.note_tree()
