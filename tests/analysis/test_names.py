"""Names that are made of others: no two regions, sources, factors or models become one."""

import pytest
import yaml

from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.eras import separate_models
from qbdt.errors import ConfigError

ANALYSIS = """\
features: [x]
eras: {"2017": {}, "2018": {}}
samples:
  s: {role: signal, files: "s_{era}.parquet"}
  c: {role: background, files: "c_{era}.parquet"}
  b_c: {role: background, files: "b_{era}.parquet"}
  data: {role: data, files: "data_{era}.parquet"}
  qcd:
    role: background
    from_data: {samples: data, subtract: c, selection: iso, ratio: {numerator: a, denominator: b}}
"""
NORM = "kind: norm, processes: c, size: 0.1"
REGIONS = "regions: {{A: {0}, B: {0}, C: {0}, D: {0}}}\n".format("{selection: x > 1, observable: yield}")


def systematics(*lines):
    return ANALYSIS + "systematics:\n" + "".join(f"  {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            systematics("ts: {kind: norm, processes: '*', size: 0.1, decorrelate: [region, process]}")
            + "regions: {a: {selection: x > 1}, a_b: {selection: x < 1, observable: yield}}",
            "systematics.ts: in region a_b and process c, where it is decorrelated, and ts in region a and process b_c "
            "would both be called ts_a_b_c: rename one",
        ),
        (
            systematics(f"ts: {{{NORM}, decorrelate: region}}", "ts_cr: {kind: norm, processes: b_c, size: 0.1}")
            + "regions: {sr: {selection: x > 1}, cr: {selection: x < 1, observable: yield}}",
            "systematics.ts: in region cr, where it is decorrelated, and source ts_cr would both be called ts_cr",
        ),
        (
            systematics(f"ts: {{{NORM}, decorrelate: process}}", "ts_c: {kind: norm, processes: b_c, size: 0.1}"),
            "systematics.ts: in process c, where it is decorrelated, and source ts_c would both be called ts_c",
        ),
        (
            systematics(f"ts: {{{NORM}, decorrelate: process}}", "ts_qcd: {kind: norm, processes: c, size: 0.1}"),
            "systematics.ts: in process qcd, where it is decorrelated, and source ts_qcd would both be called ts_qcd",
        ),
        (
            systematics("ts: {kind: norm, processes: '*', size: 1, decorrelate: [region, process], correlated: false}")
            + "regions: {a: {selection: x > 1}, a_b: {selection: x < 1, observable: yield}}",
            "systematics.ts#2017: in region a_b and process c, where it is decorrelated, and ts#2017 in region a and "
            "process b_c would both be called ts#2017_a_b_c: rename one",
        ),
        (
            systematics(f"a: {{{NORM}, correlated: false}}", f"'a#2017': {{{NORM}}}"),
            "systematics.a#2017: a is divided into components, which are called a#2017 and so on; choose another name",
        ),
        (
            systematics("pdf: {kind: replicas, weights: w, processes: c}", f"'pdf#1': {{{NORM}}}").replace(
                'eras: {"2017": {}, "2018": {}}\n', ""
            ),
            "systematics.pdf#1: pdf is divided into components, which are called pdf#1 and so on; choose another name",
        ),
        (
            systematics(f"qcd_ratio: {{{NORM}}}"),
            "systematics.qcd_ratio: samples.qcd.from_data.ratio makes a source qcd_ratio, the statistical error of its "
            "ratio; choose another name",
        ),
        (systematics(f"'qcd_ratio#2018': {{{NORM}}}"), "samples.qcd.from_data.ratio makes a source qcd_ratio"),
        (
            ANALYSIS + REGIONS + "fit: {abcd: {c: [A, B, C, D]}, parameters: {transfer_c: [s]}}\n",
            "fit: transfer_c is a strength and a factor of abcd, of c: rename one",
        ),
        (
            ANALYSIS + REGIONS + "fit: {abcd: {c: [A, B, C, D]}, poi: side_c}\n",
            "fit: side_c is a strength and a factor of abcd, of c: rename one",
        ),
        (
            ANALYSIS + REGIONS + "fit: {abcd: {c: [A, B, C, D]}, free: {norm_c: [b_c]}}\n",
            "fit: norm_c is a free normalisation and a factor of abcd, of c: rename one",
        ),
        (ANALYSIS + "fit: {poi: norm_c, free: c}\n", "fit: norm_c is a strength and a free normalisation: rename one"),
        (
            ANALYSIS + "training: {by_era: true}\nregions: {s: {selection: x > 1}, s_2017: {selection: x < 1, "
            "observable: yield}}\n",
            "training.by_era: region s of era 2017 and region s_2017 would both be called s_2017: rename one",
        ),
        (
            ANALYSIS.replace('"2018"', '"b_2017"') + "training: {by_era: true}\nregions: {s: {selection: x > 1}, "
            "s_b: {selection: x < 1}}\n",
            "training.by_era: region s of era b_2017 and region s_b of era 2017 would both be called s_b_2017: rename",
        ),
    ],
)
def test_two_things_with_one_name(text, message):
    with pytest.raises(ConfigError) as error:
        parse_analysis(text, "a.yaml")
    assert message in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        systematics(f"a: {{{NORM}}}", f"'a#2017': {{{NORM}}}"),  # as in a folder of scored events
        systematics(f"ts: {{{NORM}, decorrelate: process}}", "ts_b_c: {kind: norm, processes: c, size: 0.1}"),
        systematics(f"ts: {{{NORM}, decorrelate: process, correlated: false}}", f"ts_c: {{{NORM}}}"),
        systematics(f"c_ratio: {{{NORM}}}", f"a: {{{NORM}, correlated: false}}"),
        ANALYSIS + REGIONS + "fit: {abcd: {c: [A, B, C, D]}, parameters: {transfer: [s]}, free: b_c}\n",
        ANALYSIS + "training: {by_era: true}\nregions: {s: {selection: x > 1}, s_2017: {selection: x < 1}}\n",
    ],
)
def test_names_that_are_different(text):
    assert list(parse_analysis(text).systematics) == list(yaml.safe_load(text).get("systematics", {}))


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        (("era", None), ["era_2017", "era_2018", "era_2017_2", "era_2018_2"]),
        (("one", "one"), ["one_2017", "one_2018", "one_2017", "one_2018"]),
        ((None, "one"), ["era_2017", "era_2018", "one_2017", "one_2018"]),
    ],
)
def test_models_of_eras(models, expected):
    """The model without a name is called era, unless another one is; eras never share a model."""
    given = [f"model: {name}" if name else "label: t" for name in models]
    text = ANALYSIS + f"training: {{by_era: true}}\nregions: {{s: {{{given[0]}}}, t: {{{given[1]}}}}}\n"
    regions = separate_models(parse_analysis(text)).regions
    assert list(regions) == ["s_2017", "s_2018", "t_2017", "t_2018"]
    assert [region.model for region in regions.values()] == expected


def test_sources_that_are_neither_correlated_between_eras_nor_regions():
    """Each era has its own, and each of these is split; an era in which it does not act has none."""
    text = systematics(
        f"both: {{{NORM}, decorrelate: region, correlated: false}}",
        f"one: {{{NORM}, decorrelate: [region, process], correlated: false, eras: ['2018']}}",
        f"same: {{{NORM}, decorrelate: process}}",
        f"whole: {{{NORM}, correlated: false}}",
    )
    assert parse_analysis(text).split_sources == {
        "both#2017": ["region"],
        "both#2018": ["region"],
        "one#2018": ["region", "process"],
        "same": ["process"],
    }
