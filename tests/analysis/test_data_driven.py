"""Backgrounds from data: events of another selection with a weight, simulation subtracted, and ABCD."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from qbdt.analysis.analysis_file import parse_analysis, read_analysis
from qbdt.analysis.fit_folder import fit_scored
from qbdt.analysis.loader import load, load_eras, load_partitions, load_regions
from qbdt.analysis.region_fit import fit_regions
from qbdt.analysis.scored_files import write_scored
from qbdt.errors import ConfigError, DataError

ANALYSIS = """\
features: [x]
weight: w
selection: iso < 0.2 and os
samples:
  higgs: {role: signal, files: higgs.parquet}
  ttbar: {role: background, files: ttbar.parquet, scale: 0.5}
  data: {role: data, files: data.parquet}
  fakes:
    role: background
    from_data: {samples: data, subtract: ttbar, selection: iso > 0.2 and os, weight: ff}
systematics:
  scale: {kind: shape, processes: [higgs, ttbar], up: {columns: {x: x * 1.1}}, down: {columns: {x: x * 0.9}}}
  factor: {kind: weight, processes: fakes, up: nominal * 1.2, down: nominal * 0.8}
  ttbar_xs: {kind: norm, processes: ttbar, size: 0.1}
  lumi: {kind: norm, processes: "*", size: 0.02}
folds: {columns: event, k: 2}
"""
ABCD = (
    "from_data: {samples: data, subtract: ttbar, selection: iso > 0.2 and os, "
    "ratio: {numerator: iso < 0.2 and not os, denominator: iso > 0.2 and not os}}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fakes")
    random = np.random.default_rng(5)
    for name, n, isolated in (("higgs", 300, 0.9), ("ttbar", 500, 0.8), ("data", 4000, 0.3)):
        columns = {
            "x": random.normal(5, 1, n),
            "w": np.full(n, 0.4),
            "ff": random.uniform(0.1, 0.3, n),
            "iso": np.where(random.random(n) < isolated, 0.1, 0.5),
            "os": random.random(n) < 0.6,
            "event": np.arange(n),
        }
        members = np.stack([np.ones(n), 1 + columns["ff"], 1 + 0.02 * columns["x"] * columns["os"]], axis=1)
        table = pa.table({**columns, "pdf": pa.array(members.tolist())})
        pa.parquet.write_table(table, folder / f"{name}.parquet")
    return folder


def columns_of(folder, name):
    table = pa.parquet.read_table(folder / f"{name}.parquet")
    return {column: table[column].to_numpy() for column in table.column_names if column != "pdf"}


def from_data(text):
    start = text.index("    from_data:")
    return text[: start + 4], text[start:].split("\n", 1)[1]


def with_abcd():
    before, after = from_data(ANALYSIS)
    return parse_analysis(f"{before}{ABCD}\n{after}")


def test_data_of_another_selection_less_simulation(folder):
    data = load(parse_analysis(ANALYSIS), folder)
    recorded, ttbar = columns_of(folder, "data"), columns_of(folder, "ttbar")
    taken, subtracted = ((c["iso"] > 0.2) & c["os"] for c in (recorded, ttbar))
    expected = np.concatenate([recorded["ff"][taken], -0.5 * 0.4 * ttbar["ff"][subtracted]])
    fakes = data.sample("fakes").events
    np.testing.assert_allclose(fakes.weight, expected, rtol=1e-12)
    assert data.sample("data").events.n_rows == np.sum((recorded["iso"] < 0.2) & recorded["os"])


def test_sources_of_what_is_subtracted_move_the_background(folder):
    data = load(parse_analysis(ANALYSIS), folder)
    fakes = data.sample("fakes").events
    n_data = int(np.sum(fakes.weight > 0))
    ratio = data.varied("ttbar_xs", "up")["fakes"].weight / fakes.weight
    np.testing.assert_allclose(ratio, np.repeat([1.0, 1.1], [n_data, fakes.n_rows - n_data]), rtol=1e-12)
    np.testing.assert_allclose(data.varied("factor", "down")["fakes"].weight, 0.8 * fakes.weight, rtol=1e-12)
    moved = data.varied("scale", "up")["fakes"]
    np.testing.assert_allclose(moved.column("x")[:n_data], fakes.column("x")[:n_data], rtol=1e-12)
    np.testing.assert_allclose(moved.column("x")[n_data:], 1.1 * fakes.column("x")[n_data:], rtol=1e-6)
    assert data.systematic("factor").processes == ("fakes",)
    lumi = data.varied("lumi", "up")["fakes"].weight / fakes.weight  # only through what is subtracted
    np.testing.assert_allclose(lumi, np.repeat([1.0, 1.02], [n_data, fakes.n_rows - n_data]), rtol=1e-12)


def test_abcd(folder):
    data = load(with_abcd(), folder)
    recorded, ttbar = columns_of(folder, "data"), columns_of(folder, "ttbar")

    def count(isolated, opposite):
        total, variance = 0.0, 0.0
        for c, weight in ((recorded, 1.0), (ttbar, -0.2)):
            chosen = ((c["iso"] < 0.2) == isolated) & (c["os"] == opposite)
            total, variance = total + weight * chosen.sum(), variance + weight**2 * chosen.sum()
        return total, variance

    b, c, d = count(False, True), count(True, False), count(False, False)
    assert data.sample("fakes").events.total == pytest.approx(b[0] * c[0] / d[0], rel=1e-12)
    error = data.varied("fakes_ratio", "up")["fakes"].total / data.sample("fakes").events.total - 1
    assert error == pytest.approx(np.sqrt(c[1] / c[0] ** 2 + d[1] / d[0] ** 2), rel=1e-9)


MOVED = """\
  tag: {kind: weight, processes: ttbar, up: nominal * (1 + ff)}
  iso: {kind: shape, processes: ttbar, up: {columns: {iso: iso + 0.4 * (x > 6)}}, down: {columns: {iso: iso * 0.99}}}
folds:"""


@pytest.mark.parametrize(
    ("source", "direction", "weight", "migrates"),
    [
        ("ttbar_xs", "up", lambda c: 1.1, False),
        ("ttbar_xs", "down", lambda c: 0.9, False),
        ("lumi", "up", lambda c: 1.02, False),
        ("tag", "up", lambda c: 1 + c["ff"], False),
        ("iso", "up", lambda c: 1.0, True),
        ("iso", "down", lambda c: 1.0, False),
        ("scale", "up", lambda c: 1.0, False),
    ],
)
def test_sources_of_what_is_subtracted_move_all_of_abcd(folder, source, direction, weight, migrates):
    """Under every source the background is B · C/D of the yields under it; C and D stayed nominal."""
    before, after = from_data(ANALYSIS.replace("folds:", MOVED))
    data = load(parse_analysis(f"{before}{ABCD}\n{after}"), folder)
    recorded, ttbar = columns_of(folder, "data"), columns_of(folder, "ttbar")
    varied = {**ttbar, "iso": ttbar["iso"] + 0.4 * (ttbar["x"] > 6) * migrates}

    def count(isolated, opposite):
        chosen, subtracted = (((c["iso"] < 0.2) == isolated) & (c["os"] == opposite) for c in (recorded, varied))
        return chosen.sum() - 0.2 * np.sum(weight(varied) * subtracted)

    expected = count(False, True) * count(True, False) / count(False, False)
    assert data.varied(source, direction)["fakes"].total == pytest.approx(expected, rel=1e-12)
    assert data.systematic(source).two_sided == (source != "tag")


def test_families_and_eras_of_what_is_subtracted_move_all_of_abcd(folder):
    """Against three backgrounds, from B, C and D, in each era; components are those of all events."""
    before, after = from_data(
        ANALYSIS.replace("folds:", "  pdf: {kind: hessian, weights: pdf, processes: ttbar}\nfolds:")
    )
    cuts = {"b": "iso > 0.2 and os", "c": "iso < 0.2 and not os", "d": "iso > 0.2 and not os"}
    alone = "".join(
        f"  {name}: {{role: background, from_data: {{samples: data, subtract: ttbar, selection: {cut}}}}}\n"
        for name, cut in cuts.items()
    )
    text = f'eras: {{"16": {{}}, "17": {{}}}}\n{before}{ABCD}\n{alone}{after}'
    text = text.replace("weight: w\n", "weight: w * (era_number + 1)\n")
    for era, data in load_eras(parse_analysis(text.replace("0.1}", "0.1, correlated: false}")), folder).items():
        for source in (f"ttbar_xs#{era}", "pdf#1", "pdf#2"):
            for direction in ("up", "down"):
                b, c, d = (data.varied(source, direction)[name].total for name in "bcd")
                found = data.varied(source, direction)["fakes"].total
                assert found == pytest.approx(b * c / d, rel=1e-12), (era, source, direction)
                assert abs(found / data.sample("fakes").events.total - b / data.sample("b").events.total) > 1e-4


def test_sizes_of_a_background_and_of_what_is_subtracted(folder):
    """One-sided sources with a size for what is subtracted; two different sizes for one thing."""
    old = "ttbar_xs: {kind: norm, processes: ttbar, size: 0.1}"
    joined = "ttbar_xs: {kind: weight, processes: higgs, up: nominal * 1.1, norm: {ttbar: 0.1}}"
    data = load(parse_analysis(ANALYSIS.replace(old, joined)), folder)
    source, fakes = data.systematic("ttbar_xs"), data.sample("fakes").events
    assert (source.two_sided, set(source.processes)) == (False, {"higgs", "ttbar", "fakes"})
    ratio = source.up["fakes"].apply(fakes).weight / fakes.weight
    assert set(np.round(ratio, 9)) == {1.0, 1.1}
    twice = "ttbar_xs: {kind: norm, size: {ttbar: 0.1, fakes: 0.3}}"
    with pytest.raises(DataError, match=r"systematics.ttbar_xs: ttbar has two sizes, 0.1 and 0.3: that of fakes moves"):
        load(parse_analysis(ANALYSIS.replace(old, twice)), folder)


def test_partitions_have_the_ratio_of_all_events(folder):
    whole, parts = load(with_abcd(), folder), [part() for part in load_partitions(with_abcd(), folder, 2)]
    total = sum(part.sample("fakes").events.total for part in parts)
    assert total == pytest.approx(whole.sample("fakes").events.total, rel=1e-12)


TIED = """\
regions:
  a: {selection: iso < 0.2 and os, bins: 4}
  b: {selection: iso > 0.2 and os, observable: yield}
  c: {selection: iso < 0.2 and not os, observable: yield}
  d: {selection: iso > 0.2 and not os, observable: yield}
fit: {transform: none, binning: equal_background, scan: false, blind: false}
training: {method: paper}
"""


def tied_text(four="a, b, c, d"):
    before, after = from_data(ANALYSIS.replace("selection: iso < 0.2 and os\n", ""))
    return f"{before}from_data: {{samples: data, subtract: ttbar, abcd: [{four}]}}\n{after}{TIED}"


def test_abcd_as_four_regions_with_one_relation(folder, tmp_path):
    analysis = parse_analysis(tied_text())
    events = load_regions(analysis, folder)
    yields = {name: events.select(name).sample("fakes").events.total for name in "abcd"}
    recorded, ttbar = (events.select("b").sample(name).events.total for name in ("data", "ttbar"))
    assert yields["b"] == pytest.approx(recorded - ttbar)
    assert yields["a"] == pytest.approx(yields["b"] * yields["c"] / yields["d"], rel=1e-12)
    assert "fakes_ratio" not in [source.name for source in events.whole.systematics]
    scored = events.transform(lambda each: {"score": each.column("x")})
    result = fit_regions(scored, analysis)
    assert result.observed is not None
    after = {name: result.observed.region(name).postfit["fakes"].sum() for name in "abcd"}
    assert after["a"] * after["d"] == pytest.approx(
        after["b"] * after["c"], rel=0.05
    )  # sources that act together move it
    assert result.observed.parameter("transfer_fakes").error > 0.02
    written = write_scored(scored, tmp_path / "scored", analysis)
    again = fit_scored(read_analysis(written), written.parent)
    assert again.expected.sigma_mu == pytest.approx(result.expected.sigma_mu, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (tied_text("a, b, c, e"), "abcd of fakes: no region e; there are: a, b, c, d"),
        (tied_text("a, b, c, c"), "abcd of fakes: four different regions, each with a selection"),
        (tied_text().replace("abcd:", "selection: os, abcd:"), "selection is missing, or abcd"),
    ],
)
def test_bad_relations(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_analysis(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("subtract: ttbar", "subtract: tbar", r"samples.fakes.from_data.subtract: no sample tbar in files"),
        ("subtract: ttbar", "subtract: data", r"samples.fakes.from_data.subtract: no sample data in files"),
        ("{samples: data", "{samples: fakes", r"samples.fakes.from_data.samples: no sample fakes in files"),
        (
            "    role: background\n    from",
            "    role: signal\n    from",
            "from_data: role signal: a background is",
        ),
        ("    role: background\n    from", "    role: background\n    files: a\n    from", "from_data and files"),
    ],
)
def test_bad_backgrounds_from_data(old, new, message):
    assert old in ANALYSIS
    with pytest.raises(ConfigError, match=message):
        parse_analysis(ANALYSIS.replace(old, new))


def test_nothing_left_to_divide_by(folder):
    before, after = from_data(ANALYSIS)
    empty = ABCD.replace("denominator: iso > 0.2 and not os", "denominator: iso > 9")
    with pytest.raises(DataError, match=r"samples.fakes.from_data.ratio.denominator: 0 events are left after subtr"):
        load(parse_analysis(f"{before}{empty}\n{after}"), folder)
    moved = after.replace("size: 0.1", "size: 60.0")
    message = r"ratio.numerator: -\d+ events are left after subtraction with ttbar_xs up: a positive number is needed"
    with pytest.raises(DataError, match=message):
        load(parse_analysis(f"{before}{ABCD}\n{moved}"), folder)


SUBTRACTED = """\
  tag_factor: {kind: weight, processes: ttbar, up: nominal * 1.3, down: nominal * 0.8}
  tag_whole: {kind: weight, processes: ttbar, up: w * 1.3, down: w * 0.8}
  tag_part: {kind: weight, processes: ttbar, up: nominal + 0.3 * w, down: nominal - 0.2 * w}
  tag_shape: {kind: shape, processes: ttbar, up: {weight: w * 1.3}, down: {weight: nominal * 0.8}}
folds:"""


def test_whole_weights_of_what_is_subtracted_have_the_factor_of_the_background(folder):
    """The same variation in four spellings; whole weights lost `from_data: {weight}`."""
    data = load(parse_analysis(ANALYSIS.replace("folds:", SUBTRACTED)), folder)
    fakes = data.sample("fakes").events
    subtracted = fakes.weight < 0
    for name in ("tag_factor", "tag_whole", "tag_part", "tag_shape"):
        for direction, factor in (("up", 1.3), ("down", 0.8)):
            expected = np.where(subtracted, factor * fakes.weight, fakes.weight)
            varied = data.varied(name, direction)["fakes"].weight
            np.testing.assert_allclose(varied, expected, rtol=1e-12, err_msg=f"{name} {direction}")


@pytest.mark.parametrize("up", ["up: ff * 1.2, down: nominal * 0.8", "up: nominal * 1.2, down: 0.1"])
def test_a_whole_weight_of_a_background_that_subtracts(up):
    """Its subtracted events would have lost their own weights; where only recorded events are taken, it is a factor."""
    text = ANALYSIS.replace("up: nominal * 1.2, down: nominal * 0.8", up)
    key = "down: 0.1" if "0.1" in up else r"up: ff \* 1.2"
    with pytest.raises(ConfigError, match=rf"systematics.factor.{key} would take the place of the weights of ttbar"):
        parse_analysis(text)
    parse_analysis(text.replace("subtract: ttbar, ", ""))
    parse_analysis(text.replace("processes: fakes, up", "processes: [fakes, ttbar], up"))


def test_the_ratio_of_each_era_has_a_statistical_error_of_its_own(folder):
    """Eras have events of their own, also in C and D: their errors are not one source."""
    before, after = from_data(ANALYSIS)
    text = f'eras: {{"16": {{}}, "17": {{}}}}\n{before}{ABCD}\n{after}'
    weighted = text.replace("weight: w\n", "weight: w * (era_number + 1)\n")
    data, alone = load(parse_analysis(weighted), folder), load(with_abcd(), folder)
    fakes, nominal = data.sample("fakes").events, alone.sample("fakes").events
    first = np.arange(fakes.n_rows) < nominal.n_rows
    assert "fakes_ratio" not in [source.name for source in data.systematics]
    sizes = []
    for era, own in (("16", first), ("17", ~first)):
        changed = data.varied(f"fakes_ratio#{era}", "up")["fakes"].weight / fakes.weight - 1
        np.testing.assert_allclose(changed[~own], 0, atol=1e-12)
        np.testing.assert_allclose(changed[own], changed[own][0], rtol=1e-9)
        sizes.append(changed[own][0])
    assert sizes[0] == pytest.approx(alone.varied("fakes_ratio", "up")["fakes"].total / nominal.total - 1, rel=1e-9)
    assert sizes[1] > sizes[0]  # twice the weight of what is subtracted
