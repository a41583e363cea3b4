"""Nested cross-training: no event judges a model that saw it, and none chooses the settings it is scored with."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.folds import HashFolds
from qbdt.data.systematic import Systematic
from qbdt.errors import FitError
from qbdt.studies.comparison.contestants import Contestant
from qbdt.studies.comparison.nested_training import (
    Cache,
    Division,
    choose_settings,
    cross_train_tuned,
    judge_settings,
    rescale_scores,
)
from qbdt.studies.trainers import Trained
from tests.studies.comparison.contestants import Witness
from tests.studies.paper.events import imitation


def divided(inner=5, outer=5, seed=1, data=None):
    return Division(imitation(300, 900) if data is None else data, ("event_number",), inner, outer, seed)


@pytest.mark.parametrize(("n_inner", "outer", "models"), [(5, 5, 10), (6, 2, 6)])
def test_every_event_is_scored_by_a_model_that_did_not_see_it(tmp_path, n_inner, outer, models):
    witness = Witness()
    division = divided(n_inner, outer)
    training = cross_train_tuned(witness.contestant(), division, 2, Cache(tmp_path))
    assert len(witness.trainings) == 2 * models + outer  # a model without inner folds i and j serves both outer folds
    assert len(training.settings) == outer
    assert training.scored.folds == division.rule
    for sample in training.scored.samples:
        assert np.isfinite(sample.events.column("score")).all()


def test_scores_are_those_of_each_folds_model_in_order(tmp_path):
    division = divided()
    training = cross_train_tuned(Witness().contestant(), division, 1, Cache(tmp_path))
    varied = training.scored.varied("tes", "up")["background"]
    for number in range(5):
        scorer = Witness().fit(division.training_events(number), {"feature": 0}, 1).score
        own = scorer(division.data.with_folds(division.rule).fold(number).varied("tes", "up")["background"])
        found = varied.column("score")[division.rule.assign(varied) == number]
        assert np.all(np.diff(found[np.argsort(own)]) >= 0)


@given(st.floats(0.1, 10), st.floats(-5, 5), st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_folds_own_scale_of_scores_does_not_matter(factor, offset, curved):
    rng = np.random.default_rng(3)
    ids = {"event_number": np.arange(400)}
    rule = HashFolds(2, ("event_number",), 1)
    score, varied = rng.normal(size=400), rng.normal(size=400)

    def dataset(change):
        def events(x):
            own = rule.assign(Events({"score": x}, np.ones(400), ids)) == 0
            return Events({"score": np.where(own, change(x), x)}, np.ones(400), ids)

        samples = [Sample("s", Role.SIGNAL, events(score + 1)), Sample("b", Role.BACKGROUND, events(score))]
        return Dataset(samples, [Systematic.shape("k", up={"b": events(np.clip(varied, -1, 1))})], rule)

    def change(x):
        return factor * (np.arctan(x) if curved else x) + offset

    plain, other = rescale_scores(dataset(lambda x: x)), rescale_scores(dataset(change))
    for one, two in zip(plain.samples, other.samples, strict=True):
        np.testing.assert_allclose(one.events.column("score"), two.events.column("score"), atol=1e-12)
    moved = [data.varied("k", "up")["b"].column("score") for data in (plain, other)]
    # Between two nominal scores the map is a straight line: a bent scale moves what lies between by less than a step.
    np.testing.assert_allclose(moved[0], moved[1], atol=1 / 200)


def test_events_of_a_fold_do_not_choose_its_settings(tmp_path):
    data = imitation(300, 900)
    spoiled = spoil(data, divided(data=data).rule, number=2)
    judged: list[dict[int, list[dict[str, float]]]] = []
    for events in (data, spoiled):
        cache = Cache(tmp_path / str(len(judged)))
        division = divided(data=events)
        choose_settings(Witness().contestant(), division, division.make_key(), 3, cache)
        judged.append(judgements(cache))
    for feature in range(3):
        own, other = ([judged[i][feature][fold] for i in (0, 1)] for fold in (2, 1))
        assert own[0] == own[1]
        assert other[0] != other[1]


def refuse_settings(refuse):
    """Return a contestant of two settings; those for which `refuse` says so end in an error, or in scores of 0."""

    def fit(data, settings, seed):
        if not refuse(data, settings):
            return Witness().fit(data, settings, seed)
        if settings["feature"] == 0:
            raise ValueError("too few events in a leaf")
        return Trained(lambda events: np.zeros(events.n_rows))

    return Contestant("peer", fit, ({"feature": 0}, {"feature": 1}))


@pytest.mark.parametrize("poor", [0, 1])
def test_settings_that_give_no_fit_are_not_chosen(tmp_path, poor):
    contestant = refuse_settings(lambda data, settings: settings["feature"] == poor)
    division, cache = divided(), Cache(tmp_path)
    for _ in range(2):  # the second time from its files
        assert choose_settings(contestant, division, division.make_key(), 2, cache) == [{"feature": 1 - poor}] * 5


def test_a_method_without_settings_that_give_a_fit_is_named(tmp_path):
    contestant, division = refuse_settings(lambda data, settings: True), divided()
    with pytest.raises(FitError) as found:
        choose_settings(contestant, division, division.make_key(), 2, Cache(tmp_path))
    assert str(found.value) == (
        "peer: none of 2 settings gives scores that can be fitted "
        "(peer cannot be trained on these events: too few events in a leaf); compare without it"
    )


def test_a_fold_is_judged_where_others_give_no_fit(tmp_path):
    """Whether settings can be fitted must not be learned from the events of the fold either."""
    division = divided()
    number = division.data.samples[0].events.identifier("event_number")[:1]
    own = int(division.rule.assign(division.data.samples[0].events)[0])
    contestant = refuse_settings(
        lambda data, settings: any(np.isin(number, s.events.identifier("event_number")).any() for s in data.samples)
    )
    found = judge_settings(contestant, division, division.make_key(), {"feature": 0}, Cache(tmp_path))
    assert ["z_full" in fold for fold in found["folds"]] == [fold == own for fold in range(5)]


def judgements(cache):
    """What tuning saw for each setting: one result per outer fold."""
    files = [json.loads(path.read_text())["values"] for path in cache.path.glob("*.json")]
    return {file["settings"]["feature"]: file["folds"] for file in files}


def spoil(data, rule, number):
    """Turn the features of one fold upside down, nominal and varied."""

    def changed(events):
        sign = np.where(rule.assign(events) == number, -1.0, 1.0)
        columns = {name: sign * events.column(name) for name in events.features}
        return Events(columns, events.weight, {"event_number": events.identifier("event_number")})

    samples = [Sample(s.name, s.role, changed(s.events)) for s in data.samples]
    sources = [s.map(lambda _, change: change.map_events(changed)) for s in data.systematics]
    return Dataset(samples, sources, data.folds)


def flip_a_bit(content):
    changed = bytearray(content)
    changed[len(changed) // 2] ^= 1
    return bytes(changed)


def test_a_second_run_trains_nothing(tmp_path):
    first = cross_train_tuned(Witness().contestant(), divided(), 2, Cache(tmp_path))
    witness = Witness()
    second = cross_train_tuned(witness.contestant(), divided(), 2, Cache(tmp_path))
    assert witness.trainings == []
    for one, other in zip(first.scored.samples, second.scored.samples, strict=True):
        np.testing.assert_array_equal(one.events.column("score"), other.events.column("score"))


@pytest.mark.parametrize("damage", [lambda content: content[: len(content) // 2], lambda content: b"", flip_a_bit])
def test_damaged_results_are_computed_anew(tmp_path, damage):
    first = cross_train_tuned(Witness().contestant(), divided(), 2, Cache(tmp_path))
    for path in tmp_path.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    witness = Witness()
    second = cross_train_tuned(witness.contestant(), divided(), 2, Cache(tmp_path))
    assert witness.trainings
    assert second.settings == first.settings
    for one, other in zip(first.scored.samples, second.scored.samples, strict=True):
        np.testing.assert_array_equal(one.events.column("score"), other.events.column("score"))


def test_another_seed_or_other_events_are_trained_anew(tmp_path):
    cache = Cache(tmp_path)
    cross_train_tuned(Witness().contestant(), divided(), 1, cache)
    for division in (divided(seed=2), divided(data=imitation(300, 900, seed=6))):
        witness = Witness()
        cross_train_tuned(witness.contestant(), division, 1, cache)
        assert len(witness.trainings) == 5


def renumber(events):
    numbers = np.random.default_rng(7).permutation(events.identifier("event_number"))
    return Events({name: events.column(name) for name in events.features}, events.weight, {"event_number": numbers})


def test_other_numbers_of_the_same_events_are_trained_anew(tmp_path):
    """Features and weights are the same, but a fold has other events."""
    data, cache = imitation(300, 900), Cache(tmp_path)
    cross_train_tuned(Witness().contestant(), divided(data=data), 1, cache)
    samples = [Sample(s.name, s.role, renumber(s.events)) for s in data.samples]
    other = Dataset(samples, [s.map(lambda _, change: change.map_events(renumber)) for s in data.systematics])
    witness = Witness()
    found = cross_train_tuned(witness.contestant(), divided(data=other), 1, cache)
    assert len(witness.trainings) == 5
    fresh = cross_train_tuned(Witness().contestant(), divided(data=other), 1, Cache(tmp_path / "fresh"))
    for one, two in zip(found.scored.samples, fresh.scored.samples, strict=True):
        np.testing.assert_array_equal(one.events.column("score"), two.events.column("score"))


def test_names_roles_lengths_and_order_of_samples_are_in_the_key():
    events = Events({"x": np.zeros(6)}, np.ones(6), {"event_number": np.zeros(6, int)})

    def key(*samples):
        data = Dataset([Sample(name, role, events[:n]) for name, role, n in samples])
        return Division(data, ("event_number",), 5, 5, 1).make_key()["events"]

    keys = [
        key(("a", "signal", 2), ("b", "background", 3)),
        key(("a", "signal", 3), ("b", "background", 2)),
        key(("a", "background", 2), ("b", "signal", 3)),
        key(("a", "signal", 2), ("c", "background", 3)),
        key(("b", "background", 3), ("a", "signal", 2)),
    ]
    assert len(set(keys)) == len(keys)
    assert keys[0] == key(("a", "signal", 2), ("b", "background", 3))


def test_training_can_be_told_of_some_sources_only(tmp_path):
    witness = Witness()
    ours = witness.contestant(method="profile")
    training = cross_train_tuned(ours, divided(), 1, Cache(tmp_path), sources=("tes",))
    assert witness.told == [["tes"]] * 5
    assert len(training.scored.systematics) == 7
    cross_train_tuned(ours, divided(), 1, Cache(tmp_path))
    assert len(witness.trainings) == 10


def test_all_events_train_where_others_are_fitted():
    division = divided(inner=2, outer=1)
    assert division.training_events(0).total("background") == pytest.approx(division.data.total("background"))
