"""Scrambling takes a feature's knowledge of its event and nothing else, for an event and all its copies alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbdt.analysis.diagnosis.features import rank_features, scramble_feature
from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.folds import HashFolds, ModuloFolds, SplitFolds
from qbdt.data.systematic import Systematic
from qbdt.errors import DataError
from qbdt.inference.settings import FitSettings
from qbdt.training.ensembles import FoldedEnsemble


def labelled(process, ids, offset=0.0):
    """Events whose first feature says which event they are; shifted copies say so with an offset."""
    ids = np.asarray(ids)
    code = ids + 1000.0 * process
    return Events({"x": code + offset, "y": code.astype(float)}, np.ones(ids.size), {"event": ids})


def with_migrations(folds, n=300, lost=(3, 50, 111), seed=0):
    """Two processes; the variation of the background loses some events, gains others, and is in another order."""
    rng = np.random.default_rng(seed)
    kept = rng.permutation(np.setdiff1d(np.arange(n + 5), lost))
    source = Systematic.shape("tes", {"b": labelled(1, kept, 0.25)})
    weight = Systematic.weight("sf", {"b": np.full(n, 1.1)})
    samples = [
        Sample("s", Role.SIGNAL, labelled(0, np.arange(n))),
        Sample("b", Role.BACKGROUND, labelled(1, np.arange(n))),
    ]
    return Dataset(samples, [source, weight], folds)


@given(seed=st.integers(0, 2**31), k=st.integers(2, 5))
@settings(max_examples=20)
def test_values_stay_within_folds_and_all_are_kept(seed, k):
    base = with_migrations(HashFolds(k, ("event",), 3))
    mixed = scramble_feature(base, "x", seed)
    before, after = (np.concatenate([s.events.column("x") for s in d.samples]) for d in (base, mixed))
    assert np.array_equal(np.sort(before), np.sort(after))
    for sample in mixed.samples:
        old = base.sample(sample.name).events
        donors = Events({"x": sample.events.column("x")}, old.weight, {"event": sample.events.column("x") % 1000})
        assert np.array_equal(base.folds.assign(donors), base.folds.assign(old))
        assert np.array_equal(sample.events.column("y"), old.column("y"))
        assert not np.any(sample.events.column("x") == old.column("x"))


@given(seed=st.integers(0, 2**31))
@settings(max_examples=20)
def test_copies_get_the_value_of_the_same_donor(seed):
    base = with_migrations(ModuloFolds(2, "event"))
    mixed = scramble_feature(base, "x", seed)
    nominal, varied = mixed.sample("b").events, mixed.varied("tes", "up")["b"]
    donor = dict(zip(nominal.identifier("event").tolist(), nominal.column("x").tolist(), strict=True))
    same = [
        np.floor(x) == donor[event]
        for event, x in zip(varied.identifier("event").tolist(), varied.column("x").tolist(), strict=True)
        if event in donor
    ]
    # those whose donor migrated (3 lost and 5 gained, each the donor of one event) take the next one
    assert np.sum(~np.array(same)) <= 8


def test_signal_and_background_are_mixed():
    mixed = scramble_feature(with_migrations(ModuloFolds(2, "event")), "x")
    share = np.mean(mixed.sample("s").events.column("x") >= 1000)
    assert 0.35 < share < 0.65


def test_weights_of_sources_stay_with_their_events():
    base = with_migrations(ModuloFolds(2, "event"))
    mixed = scramble_feature(base, "x")
    assert np.array_equal(mixed.varied("sf", "up")["b"].weight, base.varied("sf", "up")["b"].weight)


def test_identifiers_that_name_only_the_fold():
    base = with_migrations(SplitFolds(2, "event"), lost=())
    halves = base.transform(lambda e: {"x": e.column("x"), "y": e.column("y")})
    coarse = Dataset(
        [
            Sample(s.name, s.role, Events({"x": s.events.column("x")}, s.events.weight, {"half": np.arange(300) % 2}))
            for s in halves.samples
        ],
        folds=SplitFolds(2, "half"),
    )
    first, second = (scramble_feature(coarse, "x", seed).sample("s").events.column("x") for seed in (0, 1))
    assert not np.array_equal(first, second)


def test_folds_are_needed():
    with pytest.raises(DataError, match="needs folds"):
        scramble_feature(with_migrations(ModuloFolds(2, "event")).with_folds(None), "x")


def test_ranking(dataset, models, fit):
    ranks = rank_features(dataset, models, fit, repeats=2, n_threads=1)
    assert {rank.feature for rank in ranks} == {"x0", "x1", "x2"}
    assert [rank.full for rank in ranks] == sorted((rank.full for rank in ranks), reverse=True)
    assert sum(rank.gain for rank in ranks) == pytest.approx(1.0)
    assert ranks[-1].feature == "x2"
    assert ranks[0].stat > 0.05 > abs(ranks[-1].stat)
    assert ranks == rank_features(dataset, models, fit, repeats=2, n_threads=1)


def test_a_feature_that_no_tree_uses_is_worth_nothing(dataset, trainer):
    rng = np.random.default_rng(1)

    def widened(events):
        columns = {name: events.column(name) for name in events.features}
        return {**columns, "noise": np.where(rng.random(events.n_rows) < 2, 1.0, 0.0)}

    wide = dataset.with_systematics([]).transform(widened)
    folded = FoldedEnsemble(tuple(trainer(wide.without_fold(i)) for i in range(2)), wide.folds)
    ranks = {rank.feature: rank for rank in rank_features(wide, folded, FitSettings(bins=6), repeats=1, n_threads=1)}
    assert (ranks["noise"].gain, ranks["noise"].full, ranks["noise"].full_spread) == (0.0, 0.0, 0.0)
