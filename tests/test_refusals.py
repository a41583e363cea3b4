"""Input in memory that once gave wrong results or tracebacks: masked arrays, extreme weights, odd partitions."""

import numpy as np
import pytest

from qbdt import Dataset, Events, QBDTClassifier, Sample, Systematic, fit_scores
from qbdt.data import Role
from qbdt.data.readers import read_events
from qbdt.errors import ConfigError, DataError, FitError
from qbdt.training import Settings, train
from qbdt.training.partitions import PartitionedEvents

METHODS = ["paper", "profile"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], 200)
    return rng.normal(y[:, None], 1, (400, 2)), y


def classifier(**settings):
    return QBDTClassifier(**{"method": "paper", "n_trees": 3, "n_leaves": 3, "n_threads": 1, **settings})


def test_masked_features_are_missing_in_every_kind_of_table(table):
    X, y = table
    hidden = np.where(np.arange(800).reshape(400, 2) % 5 == 0, 1e6, X)
    masked = np.ma.array(hidden, mask=hidden == 1e6)
    missing = np.where(hidden == 1e6, np.nan, X)
    wanted = classifier().fit(missing, y).decision_function(missing)
    assert np.array_equal(classifier().fit(masked, y).decision_function(masked), wanted)
    columns = {"x0": masked[:, 0], "x1": masked[:, 1]}
    assert np.array_equal(classifier().fit(columns, y).decision_function(columns), wanted)
    assert np.isnan(Dataset.from_arrays(masked, y).samples[0].events.column("x0")[0])
    with pytest.raises(DataError, match="NaN"):
        read_events({"a": masked[:, 0]}, ["a"])
    assert np.isnan(read_events({"a": masked[:, 0]}, ["a"], missing=[np.nan]).column("a")).any()


def test_names_with_half_of_a_character_are_refused_before_training(table):
    X, y = table
    with pytest.raises(DataError, match=r"column 'pt.ud800': half of a character in its name"):
        classifier().fit({"pt\ud800": X[:, 0]}, y)
    with pytest.raises(DataError, match=r"column 'n.ud800'"):
        Events({"x": [1.0]}, [1.0], {"n\ud800": [1]})
    with pytest.raises(DataError, match=r"y has the labels 'b', 's.ud800': labels are"):
        classifier().fit(X, np.where(y == 1, "s\ud800", "b"))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            np.array(["2020-01-01", "2021-01-01"], "datetime64[D]"),
            r"y has the labels datetime.date\(2020, 1, 1\), .*: la",
        ),
        (np.array([3, 4], "timedelta64[s]"), r"y has the labels datetime.timedelta\(seconds=3\), .*: labels are"),
        (np.array([b"b", b"s"]), "y: .* bytes"),
    ],
)
def test_labels_that_no_file_can_hold_are_refused(table, labels, message):
    X, y = table
    with pytest.raises(DataError, match=message):
        classifier().fit(X, labels[y])


def test_masked_weights_labels_and_identifiers_are_refused(table):
    X, y = table
    masked = np.ma.array(np.ones(400), mask=np.arange(400) == 3)
    with pytest.raises(DataError, match="sample_weight is masked"):
        classifier().fit(X, y, masked)
    with pytest.raises(DataError, match="y is masked"):
        classifier().fit(X, np.ma.array(y, mask=np.arange(400) == 3))
    with pytest.raises(DataError, match="systematic a: weight is masked"):
        classifier().fit(X, y, systematics=[Systematic.weight("a", masked)])
    with pytest.raises(DataError, match="weight is masked"):
        classifier().fit(X, y, systematics=[Systematic.shape("a", (X, y, masked))])
    with pytest.raises(DataError, match="validation: y is masked"):
        classifier().fit(X, y, validation=(X, np.ma.array(y, mask=np.arange(400) == 3)))
    with pytest.raises(DataError, match="identifier event is masked"):
        Events({"x": [1.0]}, [1.0], {"event": np.ma.array([1], mask=True)})
    with pytest.raises(DataError, match="weight"):
        read_events({"a": X[:, 0], "w": masked}, ["a"], weight="w")


def mask_numpy(values, missing):
    return np.ma.array(values, mask=missing)


def mask_awkward(values, missing):
    awkward = pytest.importorskip("awkward")
    return awkward.mask(awkward.Array(values.tolist()), ~missing)


def mask_arrow(values, missing):
    return pytest.importorskip("pyarrow").array(values.tolist(), mask=missing)


@pytest.mark.parametrize("mask", [mask_numpy, mask_awkward, mask_arrow])
def test_missing_values_of_rows_are_refused_in_every_kind_of_array(table, mask):
    X, y = table
    missing = np.arange(400) == 3
    masked = {
        "sample_weight": {"sample_weight": mask(np.ones(400), missing)},
        "event_id": {"event_id": mask(np.arange(400), missing)},
        "process": {"process": mask(np.where(y == 1, "s", "b"), missing)},
        "where": {"systematics": [Systematic.norm("a", 0.1, where=mask(y == 0, missing))]},
        "a: y": {"systematics": [Systematic.shape("a", (X, mask(y, missing), np.ones(400)))]},
    }
    with pytest.raises(DataError, match="y is masked"):
        classifier().fit(X, mask(y, missing))
    for what, options in masked.items():
        with pytest.raises(DataError, match=f"{what} is masked: every row needs a value"):
            classifier().fit(X, y, **options)
    there = {name: mask(values, np.zeros(400, bool)) for name, values in (("y", y), ("sample_weight", np.ones(400)))}
    assert (
        classifier().fit(X, **there).decision_function(X).tolist()
        == classifier().fit(X, y).decision_function(X).tolist()
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e-300, 1e300, 1e306])
def test_weights_beyond_what_squares_can_hold(table, method, weight):
    with pytest.raises(DataError, match="need 1e-100 to 1e\\+100"):
        classifier(method=method).fit(*table, np.full(400, weight), systematics=[Systematic.norm("a", 0.1)])


def test_columns_of_other_packages_end_in_one_message(table):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    X, y = table
    with pytest.raises(DataError, match="two columns are named a"):
        classifier().fit(pandas.DataFrame(X, columns=["a", "a"]), y)
    words = pyarrow.array(np.where(X[:, 0] > 0, "u", "v").tolist(), pyarrow.string_view())
    for codes in (pyarrow.uint8(), pyarrow.uint32()):  # as polars gives its categories
        coded = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1] * 200, codes), words[:2])
        with pytest.raises(DataError, match="column a has type object: features must be numbers"):
            classifier().fit(pyarrow.table({"a": coded, "b": X[:, 1]}), y)
        with pytest.raises(DataError, match="a has type string_view: numbers are needed"):
            read_events(pyarrow.table({"a": coded, "b": X[:, 1]}), ["a"])


def test_a_signal_that_is_nothing_beside_the_background(table):
    X, y = table
    with pytest.raises(DataError, match=r"the signal expects .* events, too few beside the background"):
        classifier(method="profile").fit(X, y, np.where(y == 1, 1e-90, 1e90))


def test_other_arguments_end_in_one_message(table):
    X, y = table
    with pytest.raises(DataError, match="y contains NaN or infinity"):
        classifier().fit(X, np.where(y == 1, np.inf, 0.0))
    with pytest.raises(DataError, match="a list of sources is needed"):
        classifier().fit(X, y, systematics=Systematic.norm("a", 0.1))
    for seed in (2**70, 10**400, np.inf):
        with pytest.raises(ConfigError, match="random_state"):
            classifier(random_state=seed).fit(X, y)


def partition(role="background", source="a", n=100, features=("x",)):
    rng = np.random.default_rng(1)

    def events(centre):
        return Events({name: rng.normal(centre, 1, n) for name in features}, np.ones(n), {"event": np.arange(n)})

    chosen = {"s": (Role.SIGNAL, 1), "b": (Role.BACKGROUND, -1), "c": (Role(role), 0)}
    samples = [Sample(name, own, events(centre)) for name, (own, centre) in chosen.items()]
    return Dataset(samples, [Systematic.norm(source, 0.1, processes=["b"])])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"role": "signal"}, "partition 1 of the events has other samples than partition 0"),
        ({"source": "z"}, "partition 1 of the events has other sources"),
        ({"features": ("y",)}, "partition 1 of the events has other features"),
    ],
)
def test_partitions_that_disagree_are_refused(method, change, message):
    events = PartitionedEvents([partition, lambda: partition(**change)])
    with pytest.raises(DataError, match=message):
        train(events, Settings(method=method, n_trees=2), n_threads=1)


@pytest.mark.parametrize("method", METHODS)
def test_partitions_that_change_between_two_readings_are_refused(method):
    sizes = iter([100, 90, 90, 90])
    events = PartitionedEvents([partition, lambda: partition(n=next(sizes))])
    with pytest.raises(DataError, match=r"partition 1 of the events had .* 100 rows when it was first read and has"):
        train(events, Settings(method=method, n_trees=2), n_threads=1)


def shuffled(dataset, seed):
    rng = np.random.default_rng(seed)
    return dataset.select(lambda events: rng.permutation(events.n_rows))


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_rows_changes_nothing_where_events_have_identifiers(method):
    """What docs/faq.md says: not without identifiers in the profiled method, and not with row_fraction."""
    data, settings = partition(n=400), Settings(method=method, n_trees=3, n_leaves=3)
    first, second = (train(shuffled(data, seed), settings, n_threads=1).ensemble for seed in (1, 2))
    assert first.trees == second.trees


def test_yields_that_no_fit_can_hold(table):
    X, y = table
    with pytest.raises(FitError, match=r"expect 4e\+12 events: a fit holds up to 1e\+11"):
        fit_scores("x", {"x": X[:, 0]}, y, np.full(400, 1e10))
    with pytest.raises(DataError, match=r"the signal samples expect 2e\+12 events: a fit holds up to 1e\+11; are"):
        Dataset.from_arrays(X, y, np.full(400, 1e10)).require_fittable()
