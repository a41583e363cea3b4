"""Faults put into sound files are named, each by its own words; sound input gives no finding."""

import numpy as np
import pytest

from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.loader import load
from qbdt.data import Dataset, Role, Sample
from qbdt.data.checks.findings import find_faults
from qbdt.data.events import Events
from qbdt.data.folds import ModuloFolds
from qbdt.data.samples.bundled import tautaugamma
from qbdt.data.samples.cms_htautau import cms_htautau
from qbdt.data.samples.inferno import inferno
from qbdt.data.samples.public_files import paper_tautaugamma
from qbdt.data.systematic import Systematic
from qbdt.errors import DataError

N = 4000
CENTRES = {"higgs": (125.0, 60.0), "ztt": (91.0, 45.0), "ttbar": (200.0, 80.0)}
YIELDS = {"higgs": 50.0, "ztt": 3000.0, "ttbar": 1500.0}


def columns(process, scale=1.0):
    """Mass, momentum and angle of a process, with its momentum scaled; the same events for every scale."""
    rng = np.random.default_rng(sum(map(ord, process)))
    mass, momentum = CENTRES[process]
    pt = 20 + rng.exponential(momentum - 20, N)
    return {
        "mass": rng.normal(mass, 0.15 * mass, N) * scale**0.5,
        "pt": pt * scale,
        "eta": rng.normal(0, 1.5, N),
        "met": rng.exponential(30, N),
    }


def events(process, scale=1.0, weight=None):
    content = columns(process, scale)
    kept = content["pt"] > 22
    weight = YIELDS[process] / N if weight is None else weight
    picked = {name: values[kept] for name, values in content.items()}
    return Events(picked, np.full(kept.sum(), weight), {"event": np.arange(N)[kept]})


def changed(base, **replacements):
    """Return the same rows with some columns, or the weight, computed anew from the old."""
    content = {name: np.array(base.column(name)) for name in base.features}
    weight = replacements.pop("weight", lambda w: w)(base.weight)
    content |= {name: change(content[name]) for name, change in replacements.items()}
    return Events(content, weight, {name: base.identifier(name) for name in base.id_names})


def dataset(nominal=None, up=None, down=None, extra=(), roles=None):
    """Three sound processes and two sources, with parts replaced."""
    found = {name: events(name) for name in CENTRES} | (nominal or {})
    ups = {name: events(name, 1.03) for name in ("higgs", "ztt")} | (up or {})
    downs = {name: events(name, 0.97) for name in ("higgs", "ztt")} | (down or {})
    chosen = {"higgs": Role.SIGNAL, "ztt": Role.BACKGROUND, "ttbar": Role.BACKGROUND} | (roles or {})
    rows = found["ttbar"].n_rows
    sources = [
        Systematic.shape("tes", ups, downs),
        Systematic.weight("sf", {"ttbar": found["ttbar"].weight * np.linspace(1.0, 1.04, rows)}),
        Systematic.norm("xs", 0.06, processes=["ttbar"]),
        *extra,
    ]
    return Dataset([Sample(name, chosen[name], e) for name, e in found.items()], sources, ModuloFolds(2, "event"))


def messages(data):
    return [str(found) for found in find_faults(data)]


@pytest.fixture(scope="module")
def sound():
    return dataset()


def test_sound_input_has_no_findings(sound):
    assert find_faults(sound) == ()
    assert [table.title for table in sound.summary().tables()] == [
        "Samples",
        "Systematic sources",
        "Feature whose mean each source moves most",
    ]


@pytest.mark.parametrize("make", [tautaugamma, lambda: inferno(5000)], ids=["bundled", "synthetic"])
def test_datasets_that_come_with_qbdt_have_none(make):
    assert find_faults(make()) == ()


@pytest.mark.shared
def test_public_files(paper_files):
    assert find_faults(paper_tautaugamma(paper_files)) == ()
    # −10 is what these files hold where b-tagging was not run: a true finding
    found = find_faults(cms_htautau(paper_files.parent / "cms_htautau"))
    assert [(f.check, f.where) for f in found] == [("placeholder", "jet1_btag")]


def test_another_unit_in_one_process():
    found = messages(dataset({"ttbar": changed(events("ttbar"), pt=lambda pt: 1000 * pt)}))
    assert found == ["pt: typical size 6.28e+04 in ttbar, 49.7 in higgs: another unit?"]


def test_sizes_beyond_what_sums_hold():
    found = messages(dataset({"ttbar": changed(events("ttbar"), met=lambda met: 1e305 * met)}))
    assert found == ["met: typical size 2.07e+306 in ttbar, 21.6 in higgs: another unit?"]


def test_another_unit_in_one_file_of_a_process():
    def second_half(pt):
        return np.where(np.arange(pt.size) < pt.size // 2, pt, 1000 * pt)

    found = messages(dataset({"ttbar": changed(events("ttbar"), pt=second_half)}))
    assert any("of ttbar have a typical size" in text and "another unit in one of the files?" in text for text in found)


def test_another_unit_in_a_variation():
    found = messages(dataset(up={"ztt": changed(events("ztt", 1.03), mass=lambda m: m / 1000)}))
    assert "tes up, ztt: mass is typically 0.00102 × the nominal one: another unit?" in found


def test_exchanged_labels():
    found = messages(dataset(roles={"higgs": Role.BACKGROUND, "ztt": Role.SIGNAL, "ttbar": Role.SIGNAL}))
    assert len(found) == 1
    assert "exceeds the expected background" in found[0]
    assert "are the labels exchanged" in found[0]


def test_a_variation_of_another_process():
    found = messages(dataset(up={"ztt": changed(events("ttbar", 1.03), weight=lambda w: 2.7 * w)}))
    assert any(text.startswith("tes up, ztt: its events look like nominal ttbar, not like ztt") for text in found)


def test_up_and_down_exchanged_in_one_process():
    found = messages(dataset(up={"ztt": events("ztt", 0.97)}, down={"ztt": events("ztt", 1.03)}))
    assert [text.partition(":")[0] for text in found] == ["tes up", "tes down"]
    assert all("are up and down exchanged in one of them?" in text for text in found)


def test_up_and_down_exchanged_everywhere_shows_in_the_table():
    names = ("higgs", "ztt")
    exchanged = dataset(up={n: events(n, 0.97) for n in names}, down={n: events(n, 1.03) for n in names})
    rows = [row for row in exchanged.summary().sources if row.name == "tes"]
    assert all(row.moves in ("pt", "mass") and row.moves_up < 0 < row.moves_down for row in rows)


def test_one_file_for_up_and_down():
    found = messages(dataset(down={"ztt": events("ztt", 1.03)}))
    assert "tes down, ztt: the same events and weights as tes up, ztt" in found
    assert any("up and down move" in text and "the same way" in text for text in found)


def test_up_and_down_on_one_side():
    found = messages(dataset(down={"ztt": events("ztt", 1.02)}))
    assert any(text.startswith("tes, ztt: up and down move") for text in found)


def test_yields_on_one_side(sound):
    weights = sound.sample("ttbar").events.weight
    source = Systematic.weight("pdf", {"ttbar": 1.04 * weights}, {"ttbar": 1.03 * weights})
    found = messages(dataset(extra=[source]))
    assert found == ["pdf, ttbar: up and down change the yield the same way (+4.0%, +3.0%)"]


def test_one_variation_for_two_sources():
    extra = Systematic.shape("jes", {"ztt": events("ztt", 1.03)})
    assert messages(dataset(extra=[extra])) == ["jes up, ztt: the same events and weights as tes up, ztt"]


def test_a_variation_that_does_nothing():
    found = messages(dataset(up={"ztt": events("ztt")}))
    assert "tes up, ztt: the same events and weights as the nominal ones: the variation does nothing" in found


def test_weights_of_a_variation_not_scaled():
    found = messages(dataset(up={"ztt": events("ztt", 1.03, weight=1e-3)}))
    assert any("the yield changes by -100%: are its weights scaled like the nominal ones?" in text for text in found)


def test_weights_that_are_all_one():
    found = messages(dataset({"ttbar": events("ttbar", weight=1.0)}))
    assert "ttbar: all weights are 1" in found[0]
    assert "luminosity" in found[0]


def test_many_negative_weights():
    def some_negative(weight):
        return np.where(np.arange(weight.size) % 10 == 0, -weight, weight)

    found = messages(dataset({"ttbar": changed(events("ttbar"), weight=some_negative)}))
    assert any("ttbar: 10% of the weights are negative: 3,896 events count as 2,492" in text for text in found)


def test_expectation_far_from_recorded_data():
    recorded = Sample("data", Role.DATA, changed(events("ztt"), weight=np.ones_like))
    base = dataset({name: events(name, weight=YIELDS[name] / N / 1000) for name in CENTRES})
    found = find_faults(Dataset([*base.samples, recorded], base.systematics[2:], base.folds))
    assert [f.where for f in found] == ["data"]


def test_a_file_there_twice_under_two_names():
    once = events("ttbar")
    twice = Events.concatenate([once, once])
    found = messages(dataset({"ttbar": twice}))
    assert f"ttbar: {once.n_rows:,} of {twice.n_rows:,} rows are copies of others: is a file there twice?" in found


def test_one_file_for_two_processes():
    found = messages(dataset({"ttbar": changed(events("ztt"), weight=lambda w: w / 3)}))
    assert any("rows are also in ttbar: is one file used for two processes?" in text for text in found)


def test_integer_features_do_not_count_as_copies():
    rng = np.random.default_rng(5)
    samples = [
        Sample(name, role, Events({"n_jets": rng.integers(0, 6, 500)}, np.full(500, weight)))
        for name, role, weight in (("s", Role.SIGNAL, 0.1), ("b", Role.BACKGROUND, 2.0))
    ]
    assert find_faults(Dataset(samples)) == ()


def test_an_undeclared_placeholder():
    def lost(mass):
        return np.where(np.arange(mass.size) % 10 == 0, -999.0, mass)

    found = messages(dataset({"ztt": changed(events("ztt"), mass=lost)}))
    expected = "mass: 10.0% of ztt have the value -999, far from all others: if it means missing, declare it"
    assert any(text.startswith(expected) for text in found)


def test_a_feature_that_is_not_filled(sound):
    flat = {name: changed(sound.sample(name).events, met=np.zeros_like) for name in CENTRES}
    gone = {"ztt": changed(events("ztt"), eta=lambda eta: np.full_like(eta, np.nan))}
    found = [str(f) for f in find_faults(Dataset([Sample(n, sound.sample(n).role, e) for n, e in flat.items()]))]
    assert found == ["met: always 0: it cannot help; is it filled?"]
    assert any(text.startswith("eta: missing in all") for text in messages(dataset(gone)))


def test_copies_with_other_identifiers():
    up = events("ztt", 1.03)
    renumbered = Events({n: up.column(n) for n in up.features}, up.weight, {"event": np.arange(up.n_rows) + 10**6})
    found = messages(dataset(up={"ztt": renumbered}))
    assert any("only 0% of its identifiers are those of nominal events" in text for text in found)


def test_a_renamed_branch_is_named(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, process, column in (("s", "higgs", "pt"), ("b", "ztt", "pt"), ("b_up", "ztt", "pT")):
        content = {"weight": np.ones(N), column: columns(process)["pt"]}
        pq.write_table(pa.table(content), tmp_path / f"{name}.parquet")
    text = """
features: [pt]
weight: weight
samples: {s: {role: signal, files: s.parquet}, b: {role: background, files: b.parquet}}
systematics: {tes: {kind: shape, processes: b, up: {files: b_up.parquet}}}
"""
    with pytest.raises(DataError, match=r"b, tes up: .*pt.*pT"):
        load(parse_analysis(text, "a.yaml"), tmp_path)


def test_keys_are_those_of_the_event():
    nominal, shifted = events("ztt"), events("ztt", 1.03)
    ids, others = nominal.identifier("event"), shifted.identifier("event")
    common = np.isin(nominal.hash_identifiers(), shifted.hash_identifiers())
    assert np.array_equal(common, np.isin(ids, others))
    assert nominal.identifiers_differ
    coarse = Events({"x": np.zeros(100)}, np.ones(100), {"fold": np.arange(100) % 2})
    assert not coarse.identifiers_differ


def test_parts_are_the_same_events_of_copies():
    nominal, shifted = events("ztt"), events("ztt", 1.03)
    some, others = (e.thin(500, of=nominal.n_rows) for e in (nominal, shifted))
    kept, varied = set(some.identifier("event")), set(others.identifier("event"))
    both = set(nominal.identifier("event")) & set(shifted.identifier("event"))
    assert kept & both == varied & both
    assert 400 < some.n_rows < 600


def test_a_few_huge_weights_are_a_finding():
    def with_weights(weight):
        rng = np.random.default_rng(1)
        signal = Sample("higgs", Role.SIGNAL, Events({"pt": rng.exponential(40, 500)}, np.full(500, 0.01)))
        return Dataset([signal, Sample("ttbar", Role.BACKGROUND, Events({"pt": rng.exponential(40, 8000)}, weight))])

    (found,) = find_faults(with_weights(np.repeat([400.0, 0.1], [10, 7990])))
    assert found.where == "ttbar"
    assert "8,000 rows count as 14 (effective entries)" in found.message
    slices = np.repeat([10.0, 1.0, 0.001], [40, 400, 7560])  # of a phase space: no event stands out
    assert not find_faults(with_weights(slices))
