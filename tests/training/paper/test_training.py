"""The boosting as a whole: against a plain twin, and bit for bit under everything that must not matter."""

import traceback
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.systematic import Systematic
from qbdt.errors import ConfigError, DataError
from qbdt.estimator import QBDTClassifier
from qbdt.threads import Workers
from qbdt.training.methods import train
from qbdt.training.monitor import Monitor
from qbdt.training.paper.boosted_rows import prepare_events
from qbdt.training.partitions.events import place_events
from qbdt.training.settings import Settings
from qbdt.trees.kernels import add_rows
from qbdt.trees.rows import binned_rows
from tests.training.paper.naive import NaiveQBDT

NAMES = ("a", "b", "c")


def table(rng, n, shift=0.0, missing=0.0):
    X = rng.normal(shift, 1.0, (n, len(NAMES)))
    X[rng.random(X.shape) < missing] = np.nan
    return X


def events(X, weight):
    return Events(dict(zip(NAMES, np.asarray(X).T, strict=True)), weight)


def problem(seed=0, n=400, missing=0.0, spread=0.0, negative=False):
    """Return signal, two backgrounds, and sources of all kinds, one- and two-sided."""
    rng = np.random.default_rng(seed)

    def weights(size):
        w = 10.0 ** rng.uniform(-spread, spread, size)
        return np.where(rng.random(size) < 0.1, -w, w) if negative else w

    signal = Sample("signal", Role.SIGNAL, events(table(rng, n, 0.7, missing), weights(n)))
    b1, b2 = (table(rng, n, 0.0, missing), weights(n)), (table(rng, n, -0.3, missing), weights(n))
    backgrounds = [Sample(f"b{i}", Role.BACKGROUND, events(*b)) for i, b in enumerate((b1, b2))]
    sources = [
        Systematic.shape("scale", {"b0": events(b1[0] * 1.05, b1[1])}, {"b0": events(b1[0] / 1.05, b1[1])}),
        Systematic.shape("one", {name: events(b[0] + 0.05, b[1]) for name, b in (("b0", b1), ("b1", b2))}),
        Systematic.weight("tilt", {"b1": b2[1] * (1 + 0.1 * np.nan_to_num(b2[0][:, 0]))}),
        Systematic.norm("xs", 0.1, processes=["b1"]),
    ]
    return Dataset([signal, *backgrounds], sources)


def reordered(dataset, seed):
    rng = np.random.default_rng(seed)
    orders = {sample.name: rng.permutation(sample.events.n_rows) for sample in dataset.samples}
    samples = [Sample(s.name, s.role, s.events[orders[s.name]]) for s in dataset.samples]
    choose = lambda e: rng.permutation(e.n_rows)  # noqa: E731
    sources = [s.map(lambda process, change: change.select(orders[process], choose)) for s in dataset.systematics]
    return Dataset(samples, sources)


def scaled(dataset, factor):
    def heavier(e):
        return e.with_weight(e.weight * factor)

    samples = [Sample(s.name, s.role, heavier(s.events)) for s in dataset.samples]
    sources = []
    for s in dataset.systematics:
        if s.kind == "norm":
            sources.append(s)
            continue
        sides = {d: {p: c.apply(dataset.sample(p).events) for p, c in e.items()} for d, e in s.directions}
        if s.kind == "weight":
            sides = {d: {p: e.weight * factor for p, e in side.items()} for d, side in sides.items()}
            sources.append(Systematic.weight(s.name, sides["up"], sides.get("down")))
        else:
            sides = {d: {p: heavier(e) for p, e in side.items()} for d, side in sides.items()}
            sources.append(Systematic.shape(s.name, sides["up"], sides.get("down")))
    return Dataset(samples, sources)


def trees_of(dataset, n_threads=1, **options):
    return train(
        dataset, Settings(**{"method": "paper", "n_trees": 4, "max_bins": 32, **options}), n_threads=n_threads
    ).ensemble.trees


@pytest.mark.parametrize("mc_stat", [False, True])
@pytest.mark.parametrize("n_sources", [0, 1, 3])
def test_trees_equal_the_plain_twin(n_sources, mc_stat):
    rng = np.random.default_rng(7)
    s, b = (table(rng, 150, 0.6), rng.uniform(0.5, 1.5, 150)), (table(rng, 200), rng.uniform(0.5, 1.5, 200))
    varied = [((b[0] + 0.2, b[1]), None), ((b[0] * 1.1, b[1]), (b[0] * 0.9, b[1])), ((b[0], b[1] * 1.2), None)][
        :n_sources
    ]
    bins = [(12, -2.0, 2.0)] * 3
    edges = [-2.0 + 4.0 * np.arange(1, 11) / 12] * 3
    sources = [
        Systematic.shape(f"v{i}", {"b": events(*up)}, None if down is None else {"b": events(*down)})
        for i, (up, down) in enumerate(varied)
    ]
    dataset = Dataset([Sample("s", Role.SIGNAL, events(*s)), Sample("b", Role.BACKGROUND, events(*b))], sources)
    twin = NaiveQBDT(s, b, varied, edges, 5, mc_stat)
    for tree in trees_of(dataset, n_leaves=5, binning=bins, mc_stat=mc_stat):
        cuts, leaves, weight = twin.tree()
        inner = tree.nodes[~tree.is_leaf]
        assert sorted(zip(inner["feature"], inner["threshold"], strict=True)) == sorted(cuts)
        assert tree.weight == pytest.approx(weight, rel=1e-8 if mc_stat else 1e-9)
        for field, key in (("s", "s"), ("b", "b"), ("sigma2", "v"), ("q", "q")):
            expected = sorted(leaf[key] for leaf in leaves)
            # Squared weights are rounded at 2^-30 of the largest, and leaves may hold small ones only.
            precision = 1e-6 if mc_stat and field in ("sigma2", "q") else 1e-9
            assert sorted(tree.nodes[tree.is_leaf][field]) == pytest.approx(expected, rel=precision, abs=1e-15)


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 1000),
    missing=st.sampled_from([0.0, 0.1]),
    spread=st.sampled_from([0.0, 6.0]),
    negative=st.booleans(),
    exponent=st.integers(-200, 200),
)
def test_order_scale_and_threads_leave_every_bit(seed, missing, spread, negative, exponent):
    dataset = problem(seed, 200, missing, spread, negative)
    try:
        dataset.require_usable()
    except DataError:
        return
    options = {"mc_stat": bool(seed % 2), "min_leaf_entries": float(seed % 3)}
    expected = trees_of(dataset, **options)
    assert trees_of(reordered(dataset, seed), **options) == expected
    assert trees_of(scaled(dataset, 2.0**exponent), **options) == expected
    for tree in expected:
        assert np.all(tree.nodes["b"] > 0)


@pytest.mark.parametrize("options", [{}, {"mc_stat": True, "row_fraction": 0.5, "feature_fraction": 0.7}])
def test_threads_leave_every_bit(monkeypatch, options):
    dataset = problem(3, 500, 0.05)
    expected = trees_of(dataset, 1, **options)
    monkeypatch.setattr("qbdt.threads.share_ranges.__defaults__", (64,))  # so that small data are really shared
    monkeypatch.setattr("qbdt.trees.rows.binned_rows.LIGHT_ROWS_PER_SHARE", 32)
    ways: list[str] = []

    def watch(name):
        kernel = getattr(binned_rows, name)

        def run(*given):
            ways.append(name)
            return kernel(*given)

        monkeypatch.setattr(binned_rows, name, run)

    watch("divide_in_place")
    watch("divide_rows")
    for n_threads in (2, 4):
        assert trees_of(dataset, n_threads, **options) == expected
    assert len(set(ways)) == 2  # whole ranges and cut ones


def test_features_may_be_permuted():
    dataset = problem(5)
    expected = trees_of(dataset)
    order = ("c", "a", "b")
    for tree, other in zip(expected, trees_of(dataset.with_features(order)), strict=True):
        names = [NAMES[i] if i >= 0 else "" for i in tree.nodes["feature"]]
        assert names == [order[i] if i >= 0 else "" for i in other.nodes["feature"]]
        for field in set(tree.nodes.dtype.names) - {"feature"}:
            assert np.array_equal(tree.nodes[field], other.nodes[field])


def test_ties_go_to_the_first_feature():
    dataset = problem(6).with_systematics([])
    columns = {"first": "a", "second": "a"}
    doubled = Dataset(
        [
            Sample(s.name, s.role, Events({k: s.events.column(v) for k, v in columns.items()}, s.events.weight))
            for s in dataset.samples
        ]
    )
    assert all(np.all(tree.nodes["feature"] <= 0) for tree in trees_of(doubled))


def test_pieces_of_a_process_are_the_same_as_the_whole():
    dataset = problem(8).with_systematics([])
    halves = []
    for sample in dataset.samples:
        half = sample.events.n_rows // 2
        halves += [
            Sample(f"{sample.name}{i}", sample.role, part)
            for i, part in enumerate((sample.events[:half], sample.events[half:]))
        ]
    assert trees_of(Dataset(halves)) == trees_of(dataset)


@pytest.mark.parametrize("two_sided", [False, True])
def test_a_source_is_the_same_in_all_three_forms(two_sided):
    dataset = problem(9).with_systematics([])
    nominal = {name: dataset.sample(name).events for name in ("b0", "b1")}
    up = {name: e.weight * 1.25 for name, e in nominal.items()}
    down = {name: e.weight * 0.75 for name, e in nominal.items()} if two_sided else None
    varied = {p: nominal[p].with_weight(w) for p, w in up.items()}
    varied_down = None if down is None else {p: nominal[p].with_weight(w) for p, w in down.items()}
    forms = [
        Systematic.weight("x", up, down),
        Systematic.shape("x", varied, varied_down),
        Systematic.norm("x", 0.25, processes=["b0", "b1"]),
    ]
    results = [trees_of(Dataset(dataset.samples, [form])) for form in forms]
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert np.array_equal(one.nodes["feature"], two.nodes["feature"])
            # Columns of weight-type sources are rounded at 2^-30 of the largest, and the bound on it is not tight.
            assert np.allclose(one.nodes["sigma2"], two.nodes["sigma2"], rtol=1e-7)
            assert np.all(one.nodes["sigma2"] > 0)


def test_unchanged_variations_change_nothing():
    dataset = problem(10).with_systematics([])
    same = Systematic.shape("none", {"b0": dataset.sample("b0").events})
    trees = trees_of(Dataset(dataset.samples, [same]))
    assert all(np.all(tree.nodes["sigma2"] == 0) for tree in trees)
    for one, two in zip(trees, trees_of(dataset), strict=True):
        assert np.array_equal(one.nodes["threshold"], two.nodes["threshold"])


def test_sources_on_the_signal_are_not_used():
    dataset = problem(11).with_systematics([])
    weights = {"signal": dataset.sample("signal").events.weight * 2}
    assert trees_of(Dataset(dataset.samples, [Systematic.weight("s", weights)])) == trees_of(dataset)


def test_minimum_entries_hold_in_every_leaf():
    dataset = problem(12, spread=0.5)
    pieces = [sample.events for sample in dataset.of_role("background")]
    result = train(dataset, Settings(method="paper", n_trees=3, max_bins=64, min_leaf_entries=40.0), n_threads=1)
    for i, tree in enumerate(result.ensemble.trees):
        leaves = [result.ensemble.leaves(piece, 1)[:, i] for piece in pieces]
        for leaf in np.flatnonzero(tree.is_leaf):
            w = np.concatenate([p.weight[at == leaf] for p, at in zip(pieces, leaves, strict=True)])
            assert w.sum() ** 2 / (w**2).sum() >= 40.0 * (1 - 1e-12)


def test_depth_and_leaves_are_limits():
    deep = trees_of(problem(13), n_leaves=12)
    assert max(tree.depth for tree in deep) > 2
    assert all(tree.n_leaves == 12 for tree in deep)
    assert all(tree.depth <= 2 and tree.n_leaves <= 4 for tree in trees_of(problem(13), n_leaves=12, max_depth=2))


def test_learning_rate_multiplies_the_weight():
    dataset = problem(14)
    full, half = trees_of(dataset), trees_of(dataset, learning_rate=0.5)
    assert half[0].weight == 0.5 * full[0].weight
    assert np.array_equal(half[0].nodes, full[0].nodes)
    assert not np.array_equal(half[1].nodes, full[1].nodes)


def test_subsampling_draws_anew_and_can_be_repeated():
    dataset = problem(15)
    draw = {"row_fraction": 0.5, "feature_fraction": 0.5}
    one = trees_of(dataset, **draw)
    assert trees_of(dataset, **draw) == one
    assert trees_of(dataset, **draw, random_state=1) != one
    assert all(len(set(tree.nodes["feature"]) - {-1}) <= 2 for tree in one)  # 2 of 3 features
    assert np.allclose([tree.nodes["s"][0] for tree in one], 1.0)


def test_missing_values_learn_their_side():
    rng = np.random.default_rng(16)
    X_s, X_b = table(rng, 500, 1.0), table(rng, 500)
    X_s[rng.random(500) < 0.5, 0] = np.nan  # missing means signal here
    dataset = Dataset(
        [Sample("s", Role.SIGNAL, events(X_s, np.ones(500))), Sample("b", Role.BACKGROUND, events(X_b, np.ones(500)))]
    )
    result = train(dataset, Settings(method="paper", n_trees=5), n_threads=1)
    root = result.ensemble.trees[0].nodes[0]
    assert root["feature"] == 0
    assert not root["missing_left"]  # with the high values, where the signal is
    score = result.ensemble.score(events([[np.nan, 0, 0], [0.0, 0, 0]], np.ones(2)))
    assert score[0] > score[1]


def test_nothing_to_learn_stops_at_once():
    flat = events(np.zeros((50, 3)), np.ones(50))
    result = train(
        Dataset([Sample("s", Role.SIGNAL, flat), Sample("b", Role.BACKGROUND, flat)]), Settings(method="paper")
    )
    assert result.ensemble.trees == ()
    assert result.stopped == "no split gains anything after 0 trees"


def test_separable_samples_do_not_exhaust_the_weights():
    x = np.concatenate([np.arange(100.0), np.arange(200.0, 300.0)])[:, None] * np.ones(3)
    dataset = Dataset.from_arrays(x, np.repeat([0, 1], 100))
    result = train(dataset, Settings(method="paper", n_trees=60), n_threads=1)
    assert np.all(np.isfinite(result.ensemble.weights))
    assert result.ensemble.trees


def test_resuming_equals_one_long_training():
    dataset = problem(17, missing=0.05)
    draw = {"row_fraction": 0.7, "feature_fraction": 0.7, "random_state": 3}
    options: dict[str, Any] = {"max_bins": 32, "mc_stat": True, **draw}
    whole = train(dataset, Settings(method="paper", n_trees=6, **options))
    part = train(dataset, Settings(method="paper", n_trees=2, **options))
    assert (
        train(dataset, Settings(method="paper", n_trees=6, **options), resume=part).ensemble.trees
        == whole.ensemble.trees
    )
    with pytest.raises(DataError, match="other settings"):
        train(dataset, Settings(method="paper", n_trees=6), resume=part)
    with pytest.raises(DataError, match="other events"):
        train(problem(18), Settings(method="paper", n_trees=6, **options), resume=part)


def test_interrupting_keeps_what_is_trained():
    def interrupt(report):
        if report.index == 2:
            raise KeyboardInterrupt

    result = train(problem(19), Settings(method="paper", n_trees=10), monitor=Monitor(callbacks=(interrupt,)))
    assert len(result.ensemble.trees) == 3
    assert result.stopped == "interrupted after 3 trees"


def test_callbacks_see_every_tree_and_can_stop():
    seen = []

    def stop_after_two(report):
        seen.append((report.index, report.n_trees, report.tree.weight))
        return report.index == 1

    result = train(problem(20), Settings(method="paper", n_trees=10), monitor=Monitor(callbacks=(stop_after_two,)))
    assert [index for index, _, _ in seen] == [0, 1]
    assert [weight for _, _, weight in seen] == result.ensemble.weights.tolist()


def test_early_stopping_keeps_the_best_number_of_trees():
    dataset, validation = problem(21, 150), problem(22, 150)
    monitor = Monitor(validation, patience=3)
    result = train(dataset, Settings(method="paper", n_trees=60), monitor=monitor)
    assert len(result.history) < 60
    best = int(np.argmax(result.history)) + 1
    assert len(result.ensemble.trees) == best
    assert len(result.history) == best + 3


def test_early_stopping_needs_a_sample():
    with pytest.raises(ConfigError, match="needs a validation sample"):
        Monitor(patience=3)


def test_progress_is_told():
    told: list[int] = []

    class Bar:
        def __enter__(self):
            return told.append

        def __exit__(self, *_):
            return None

    train(problem(23), Settings(method="paper", n_trees=3), progress=lambda _, total: Bar())
    assert sum(told) == 3


def test_the_histogram_kernel_is_called_directly_in_memory(monkeypatch):
    """From `fit` to the kernel there are at most eight Python frames."""
    depths = []

    def count_frames(*arguments):
        names = [frame.name for frame in traceback.extract_stack()][:-1]
        depths.append(len(names) - names.index("fit"))
        return add_rows(*arguments)

    monkeypatch.setattr("qbdt.training.paper.weighted_rows.add_rows", count_frames)
    X = np.random.default_rng(1).normal(size=(400, 2))
    QBDTClassifier("paper", n_trees=1, n_threads=1).fit(X, X[:, 0] > 0)
    assert max(depths) == 8


def test_rows_need_few_bytes():
    dataset = problem(24).with_systematics([])
    with Workers(1) as workers:
        partitions: Any = place_events(dataset, workers)
        prepare_events(partitions, Settings(method="paper"), workers)
    rows = partitions._rows
    arrays = (rows._words, rows._floats, rows._fixed, rows._rows, rows._scratch, rows._columns)
    assert sum(array.nbytes for array in arrays) / rows.layout.n_rows <= 8 + 24  # eight features fill a word
