import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from qbdt.data import Dataset, Kind, Role, Sample, Systematic
from qbdt.data.events import Events
from qbdt.data.folds import HashFolds, ModuloFolds
from qbdt.errors import DataError


def sample(name: str, role: str, n: int, seed: int) -> Sample:
    random = np.random.default_rng(seed)
    columns = {"a": random.normal(size=n), "b": random.normal(size=n)}
    return Sample(name, Role(role), Events(columns, random.uniform(0.5, 1.5, n), {"event": random.integers(0, 99, n)}))


def make(n: int = 20, seed: int = 0, k: int = 3) -> Dataset:
    signal, ttbar, w_jets = (sample(p, r, n + i, seed + i) for i, (p, r) in enumerate(PROCESSES.items()))
    systematics = [
        Systematic.shape("tes", {"ttbar": sample("tes", "background", n + 5, seed + 8).events}),
        Systematic.weight("sf", {"ttbar": ttbar.events.weight * 1.1, "higgs": signal.events.weight * 0.9}),
        Systematic.norm("xs", 0.2, processes=["wjets", "ttbar"]),
    ]
    return Dataset([signal, ttbar, w_jets], systematics, ModuloFolds(k, "event"))


PROCESSES = {"higgs": "signal", "ttbar": "background", "wjets": "background"}


def yields(dataset: Dataset) -> dict[str, float]:
    found = {s.name: s.events.total for s in dataset.samples}
    for source in dataset.systematics:
        for direction, _ in source.directions:
            found |= {
                f"{source.name} {direction} {p}": e.total for p, e in dataset.varied(source.name, direction).items()
            }
    return found


@given(n=st.integers(3, 30), seed=st.integers(0, 20), k=st.integers(2, 4), hashed=st.booleans())
def test_folds_add_up_to_the_whole(n, seed, k, hashed):
    data = make(n, seed, k)
    if hashed:
        data = data.with_folds(HashFolds(k, ("event",)))
    total = yields(data)
    parts = [data.fold(i) for i in range(k)]
    summed = {key: sum(yields(part)[key] for part in parts) for key in total}
    assert summed == pytest.approx(total, rel=1e-12)  # sums in another order
    joined = Dataset.concatenate(parts)
    assert yields(joined) == pytest.approx(total, rel=1e-12)
    for i in range(k):
        complement = yields(data.without_fold(i))
        assert {key: complement[key] + yields(parts[i])[key] for key in total} == pytest.approx(total, rel=1e-12)


@given(seed=st.integers(0, 20))
def test_slicing_is_consistent_over_variations(seed):
    data = make(30, seed)
    cut = data.select(lambda events: events.column("a") > 0)
    assert (cut.sample("ttbar").events.column("a") > 0).all()
    assert (cut.varied("tes", "up")["ttbar"].column("a") > 0).all()
    kept = data.sample("higgs").events.column("a") > 0
    np.testing.assert_array_equal(cut.varied("sf", "up")["higgs"].weight, data.varied("sf", "up")["higgs"].weight[kept])


def test_norm_moves_the_yield_by_its_size():
    data = make()
    up, down = (data.varied("xs", d)["wjets"].total / data.sample("wjets").events.total for d in ("up", "down"))
    assert (up, down) == pytest.approx((1.2, 0.8), rel=1e-12)
    assert data.systematic("xs").two_sided
    assert not data.systematic("tes").two_sided


def test_joining_leaves_parts_without_a_source_nominal():
    data = make()
    other = make(seed=50).with_systematics([])
    joined = Dataset.concatenate([data, other])
    nominal = other.sample("ttbar").events.total
    for name in ("tes", "sf", "xs"):
        expected = data.varied(name, "up")["ttbar"].total + nominal
        assert joined.varied(name, "up")["ttbar"].total == pytest.approx(expected, rel=1e-12)


def test_transform_reaches_every_variation_and_keeps_weights():
    data = make()
    scored = data.transform(lambda events: {"score": events.column("a") + events.column("b")})
    assert scored.features == ("score",)
    varied = data.varied("tes", "up")["ttbar"]
    expected = varied.column("a") + varied.column("b")
    np.testing.assert_array_equal(scored.varied("tes", "up")["ttbar"].column("score"), expected)
    assert yields(scored) == yields(data)
    assert yields(scored.fold(0)) == yields(data.fold(0))


def test_features_can_be_narrowed_and_reordered_without_copies():
    data = make().with_features(["b", "a"])
    assert data.features == ("b", "a")
    assert data.varied("tes", "up")["ttbar"].features == ("b", "a")
    with pytest.raises(DataError, match="no feature c"):
        make().with_features(["c"])
    with pytest.raises(DataError, match="feature a is given twice"):
        make().with_features(["a", "a"])


def broken(**changes):
    data = make()
    samples = changes.get("samples", data.samples)
    return lambda: Dataset(samples, changes.get("systematics", ()), None).require_usable()


HIGGS, TTBAR, WJETS = make().samples
EMPTY = Events({"a": [], "b": []}, [])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (broken(samples=[]), "at least one sample"),
        (broken(samples=[HIGGS, HIGGS]), "sample higgs is given twice"),
        (broken(samples=[TTBAR]), "no signal sample"),
        (broken(samples=[HIGGS]), "no background sample"),
        (broken(samples=[HIGGS, Sample("x", Role.BACKGROUND, EMPTY)]), "sample x has no events"),
        (
            broken(samples=[HIGGS, Sample("x", Role.BACKGROUND, TTBAR.events.with_weight(np.zeros(21)))]),
            "sample x: all 21 weights are zero",
        ),
        (
            broken(samples=[HIGGS, Sample("x", Role.BACKGROUND, TTBAR.events.with_weight(np.full(21, -1.0)))]),
            "sample x has a total weight of -21",
        ),
        (
            broken(samples=[HIGGS, Sample("x", Role.BACKGROUND, Events({"a": [1.0]}, [1.0]))]),
            "sample x has other features than sample higgs: it lacks b",
        ),
        (
            broken(systematics=[Systematic.shape("tes", {"ttbar": Events({"a": [1.0]}, [1.0])})]),
            "systematic tes, up variation of ttbar has other features than sample higgs: it lacks b",
        ),
        (broken(systematics=[Systematic.shape("tes", {"ttbar": EMPTY})]), "tes, up variation of ttbar has no events"),
        (broken(systematics=[Systematic.weight("sf", {"ttbar": [1.0]})]), "ttbar has 1 rows, nominal has 21"),
        (broken(systematics=[Systematic.norm("xs", 0.1, processes=["ttbr"])]), "no sample ttbr; did you mean ttbar"),
        (
            broken(systematics=[Systematic.norm("xs", 0.1, processes=["ttbar"])] * 2),
            "systematic xs is given twice",
        ),
        (broken(systematics=[Systematic.weight("sf", [1.0])]), "systematic sf is given over one table"),
        (lambda: Systematic.norm("xs", 0.1, processes=[]), "systematic xs acts on no process"),
        (lambda: Systematic.norm("xs", 0.0, processes=["a"]), r"size=0\.0"),
        (lambda: Systematic.norm("xs", np.nan, processes=["a"]), "size=nan"),
        (lambda: Systematic.norm("xs", 0.1, processes="ttbar"), "a list of names is needed"),
        (lambda: Systematic.weight("sf", {"a": [1.0]}, {"b": [1.0]}), "up acts on a, down on b"),
        (lambda: Systematic.weight("sf", {"a": [np.nan]}), "the weight of row 0 is nan"),
        (lambda: Systematic.norm("", 0.1, processes=["a"]), "needs a name"),
        (lambda: make().varied("tes", "down"), "tes has no 'down' variation, only up"),
        (lambda: make().systematic("tess"), "no systematic tess; did you mean tes"),
        (lambda: make().fold(3), "fold 3: the rule has folds 0 … 2"),
        (lambda: make().with_folds(None).fold(0), "no fold rule"),
    ],
)
def test_what_cannot_be_used_is_told(build, message):
    with pytest.raises(DataError, match=message):
        build()


def test_recorded_data_is_never_varied_and_may_be_empty():
    data = Sample("data", Role.DATA, EMPTY)
    assert Dataset([HIGGS, TTBAR, data]).require_usable().of_role("data") == (data,)
    with pytest.raises(DataError, match="data is recorded data"):
        Dataset([HIGGS, TTBAR, data], [Systematic.norm("lumi", 0.1, processes=["data"])])


def test_summary_counts_what_is_there():
    data = make()
    summary = data.summary()
    ttbar = summary.samples[1]
    assert (ttbar.name, ttbar.rows, ttbar.total) == ("ttbar", 21, pytest.approx(data.sample("ttbar").events.total))
    assert sum(ttbar.fold_rows) == 21
    tes = summary.sources[0]
    assert (tes.name, tes.kind, tes.process, tes.down, tes.rows_up) == ("tes", "shape", "ttbar", None, 25)
    text = str(summary)
    assert "+20.00%" in text
    assert "-20.00%" in text
    assert summary.to_dict()["samples"][1]["rows"] == 21


def test_missing_values_are_listed():
    events = Events({"a": [1.0, np.nan], "b": [0.0, 1.0]}, [1, 1])
    summary = Dataset([HIGGS, Sample("x", Role.BACKGROUND, events)]).summary()
    assert summary.samples[1].missing == {"a": 1, "b": 0}
    assert "50.00%" in str(summary)


def test_kinds_are_words():
    assert [str(source.kind) for source in make().systematics] == ["shape", "weight", "norm"]
    assert Kind("norm") is Kind.NORM
