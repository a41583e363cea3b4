"""Results do not change: models, exports, fits and scores of old files are those that were recorded, bit for bit.

Where a change is meant, `python -m tests.frozen.record` writes the new hashes; the commit says why.
"""

import json

import numpy as np
import pytest

from tests.frozen import cases
from tests.frozen.hashes import FILE, LearnedKeys, fingerprint, select_known

RECORDED = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def same_numerics():
    """Skip where this machine or its libraries round otherwise than those of the recording."""
    here, there = fingerprint(), RECORDED["fingerprint"]
    if other := [f"{key} {here[key][:8]} for {there[key][:8]}" for key in there if here[key] != there[key]]:
        pytest.skip(f"other numerics than recorded: {', '.join(other)}")


@pytest.fixture(scope="module")
def client():
    with cases.cluster() as client:
        yield client


def test_every_recorded_case_is_there():
    now = {**cases.trainings(), **cases.on_cluster(None), **cases.exports(), **cases.runs(), **cases.scores()}
    assert list(now) == list(RECORDED["cases"])


def test_keys_that_came_later_are_left_out_and_those_that_went_are_missed():
    known = LearnedKeys()
    then = {"fit": {"bins": 5, "notes": [{"what": "a"}]}}
    assert select_known(then, known) == then
    assert known == {"fit", "fit.bins", "fit.notes", "fit.notes.*.what"}
    now = {"fit": {"bins": 5, "smooth": True, "notes": [{"what": "a", "why": "b"}]}, "eras": {}}
    assert select_known(now, set(known)) == then
    assert select_known({"fit": {"notes": [{"what": "a"}]}}, set(known)) != then


@pytest.mark.usefixtures("same_numerics")
@pytest.mark.parametrize("name", cases.trainings())
def test_models(name):
    assert cases.computed(cases.trainings()[name]) == RECORDED["cases"][name]


@pytest.mark.xdist_group("dask")
@pytest.mark.usefixtures("same_numerics")
@pytest.mark.parametrize("name", cases.on_cluster(None))
def test_models_of_a_cluster(name, client):
    assert cases.computed(cases.on_cluster(client)[name]) == RECORDED["cases"][name]


@pytest.mark.usefixtures("same_numerics")
@pytest.mark.parametrize("name", cases.exports())
def test_exports(name):
    assert cases.computed(cases.exports()[name]) == RECORDED["cases"][name]


@pytest.mark.usefixtures("same_numerics")
@pytest.mark.parametrize("name", cases.runs())
def test_runs(name):
    assert cases.computed(cases.runs()[name]) == RECORDED["cases"][name]


@pytest.mark.usefixtures("same_numerics")
@pytest.mark.parametrize("name", cases.scores())
def test_scores_of_old_files(name):
    assert cases.computed(cases.scores()[name]) == RECORDED["cases"][name]


@pytest.mark.parametrize("name", cases.OLD_MODELS)
def test_old_files_are_read_on_every_machine(name):
    np.testing.assert_allclose(cases.old_scores(name)[:8], RECORDED["first scores"][name], rtol=1e-9, atol=1e-12)
