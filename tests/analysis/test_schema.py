"""An analysis file is either understood or refused with file and line."""

import json

import jsonschema
import pytest
import yaml
from matplotlib.mathtext import MathTextParser

from qbdt.analysis.analysis_file import parse_analysis, read_analysis
from qbdt.analysis.examples import example_names, example_text
from qbdt.analysis.schema import Analysis
from qbdt.errors import ConfigError
from qbdt.inference.histfactory import write_xml
from qbdt.inference.workspace import build_workspace
from tests.inference.models import smooth_templates

GOOD = """\
features: [pt]
samples:
  higgs: {role: signal, files: h.root}
  ttbar: {role: background, files: [t1.root, "t2*.root"]}
systematics:
  tes:
    kind: shape
    up: {files: up.root}
  sf: {kind: weight, up: nominal * 1.1}
  xs: {kind: norm, processes: ttbar, size: 0.06}
folds: {columns: event, k: 5}
"""


def test_good():
    analysis = parse_analysis(GOOD)
    assert analysis.samples["ttbar"].files == ["t1.root", "t2*.root"]
    assert analysis.systematics["xs"].processes == ["ttbar"]
    assert analysis.training.model_dump()["n_leaves"] is None


def test_labels_of_figures():
    text = GOOD.replace("h.root}", "h.root, label: $H$, color: red}")
    text = text.replace("kind: shape", "kind: shape\n    label: scale")
    text += "variables: {pt: {label: $p_T$, unit: GeV}}\nfigures: {experiment: EXP, energy: 13}\n"
    analysis = parse_analysis(text)
    labels = analysis.figure_labels()
    assert (labels.process("higgs"), labels.process("ttbar")) == ("$H$", "ttbar")
    assert (labels.variable("pt"), labels.source("tes")) == ("$p_T$ (GeV)", "scale")
    assert (labels.colours["higgs"], labels.experiment, labels.conditions) == ("red", "EXP", "13 TeV")
    alone = labels.fill_colours(["ttbar"], [])["ttbar"]
    assert labels.fill_colours(["new", "ttbar"], ["higgs"])["ttbar"] == alone  # whatever else is there
    assert analysis.describe_training() == parse_analysis(GOOD).describe_training()
    assert analysis.describe_results() != parse_analysis(GOOD).describe_results()


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("{", "}"),
        (r"\sqrt{", "}"),
        (r"\sqrt[3]{", "}"),
        ("a^{", "}"),
        (r"\left(", r"\right)"),
        (r"\frac{a}{", "}"),
        (r"\frac{", "}{a}"),
        (r"\mathrm{", "}"),
        (r"\overset{a}{", "}"),
        (r"\hat ", ""),
        (r"\bar{\hat\hat\hat ", "}"),
        (r"\left(a^{\sqrt{", r"}}\right)"),
    ],
)
def test_nested_formulas_of_labels(opening, closing):
    """What is accepted is drawn with half of Python's stack in use; what is nested deeper is refused at once."""

    def label(times):
        return f"${opening * times}b{closing * times}$"

    def refuse(text):
        try:
            parse_analysis(f"{GOOD}variables: {{pt: {{label: '{text}'}}}}\n")
        except ConfigError as error:
            return str(error)
        return ""

    def draw(text, frames):
        return MathTextParser("path").parse(text) if frames == 0 else draw(text, frames - 1)

    times = next(n for n in range(1, 100) if refuse(label(n)))
    assert "cannot be drawn: its formula is nested more than 10 deep" in refuse(label(times))
    assert 3 <= times < 50
    draw(label(times - 1), 350)
    with pytest.raises(ConfigError, match=r"my.yaml:12: variables.pt.label: .* nested more than 10 deep"):
        parse_analysis(f"{GOOD}variables: {{pt: {{label: '{label(1000)}'}}}}\n", "my.yaml")


@pytest.mark.parametrize(
    "label",
    [
        r"$\sqrt{\left(\frac{\hat{p}_{T}^{\mathrm{miss}}}{\sqrt{\sum_{i} E_{T,i}}}\right)^{2}}$",
        r"$" + r"\alpha\beta\gamma\delta\epsilon\zeta\eta\theta" * 2 + "$",
        r"\$ and {braces} $m_{\tau\tau}$",
    ],
)
def test_formulas_that_people_write(label):
    assert parse_analysis(f"{GOOD}variables: {{pt: {{label: '{label}'}}}}\n").variables["pt"].label == label


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("h.root}", "h.root, color: reddish}", "'reddish' is no colour"),
        ("h.root}", "h.root, label: $H}", "'$H' cannot be drawn"),
        ("folds:", "variables: {mass: {unit: GeV}}\nfolds:", "variables: no feature mass; there are: pt"),
        ("features:", "feature:", "my.yaml:1: feature: unknown key; did you mean features?"),
        ("role: signal", "rolle: signal", "my.yaml:3: samples.higgs.rolle: unknown key; did you mean role?"),
        ("role: signal", "role: sigal", "my.yaml:3: samples.higgs.role: input should be 'signal'"),
        ("files: h.root", "files: {a: 1}", "my.yaml:3: samples.higgs.files: a list is needed"),
        (", files: h.root", "", "my.yaml:3: samples.higgs: files is missing"),
        (
            "up: {files: up.root}",
            "up: {fils: up.root}",
            "my.yaml:8: systematics.tes.up.fils: unknown key; did you mean files",
        ),
        ("up: {files: up.root}", "up: {}", "my.yaml:8: systematics.tes.up: a shape variation needs at least one of"),
        ("kind: shape", "kind: shap", "my.yaml:6: systematics.tes: kind 'shap': must be weight, shape, norm,"),
        ("kind: shape", "down: {tree: x}", "my.yaml:6: systematics.tes: kind is missing: weight, shape, norm,"),
        ("size: 0.06", "size: big", "my.yaml:10: systematics.xs.size: size='big': a number is needed"),
        ("size: 0.06", "size: 0", "my.yaml:10: systematics.xs.size: size=0: a relative size above −1, not 0"),
        ("size: 0.06", "size: [-1.2, 0.3]", "systematics.xs.size: size=(-1.2, 0.3): two relative changes above −1"),
        ("size: 0.06", "size: {ttbar: 0.1}", "systematics.xs: processes is missing, or size: {process: size}; one of"),
        ("processes: ttbar, size: 0.06", "size: 0.1", "systematics.xs: processes is missing, or size: {process: size}"),
        ("processes: ttbar, size: 0.06", "size: {}", "systematics.xs: size: at least one process is needed"),
        ("size: 0.06", "size: [-0.1, 0.2], lognormal: true", "systematics.xs: lognormal: a pair [down, up] says"),
        ("up: nominal * 1.1", "up: 1.1, norm: {a: 1.5}", "systematics.sf: norm.a: 1.5: one number below 1 is needed"),
        ("up: nominal * 1.1", "up: nominal * ", "my.yaml:9: systematics.sf.up: 'nominal *': invalid syntax"),
        ("k: 5", "k: 1", "my.yaml:11: folds.k: input should be greater than or equal to 2, not 1"),
        ("columns: event", "columns: [event, run]", "my.yaml:11: folds: by: modulo takes one column, not 2"),
        ("  xs:", "  sf:", "my.yaml:10: sf is given twice under systematics (first in line 9)"),
        ("features: [pt]", "features: [pt, pt]", "features: pt is given twice"),
        ("features: [pt]", "features: []", "features: at least one is needed"),
        ("features: [pt]", "features: [pt", "my.yaml:2: not valid YAML"),
        ("features: [pt]", "dataset: {name: inferno}", "dataset comes with its own samples"),
        (
            "features: [pt]",
            "features: [pt]\nmissing: true",
            "my.yaml:2: missing: numbers are needed, not true or false",
        ),
        ("k: 5", "k: yes", "my.yaml:11: folds: k: a number is needed, not true"),
        ("k: 5", "k: 5, salt: 3", "my.yaml:11: folds: salt goes with by: hash"),
        ("  higgs:", "  yes:", "my.yaml:3: the name yes is read as bool; put it in quotes"),
        ("  higgs:", "  125:", "my.yaml:3: the name 125 is read as int; put it in quotes"),
        ("  higgs:", "  ? [a]\n  :", "my.yaml:3: the name of this entry is read as seq; put it in quotes"),
        ("  higgs:", "  ? {a: 1}\n  :", "my.yaml:3: the name of this entry is read as map; put it in quotes"),
        ("k: 5", "k: 010", "my.yaml:11: not valid YAML: 010 is read as 8; write that, or put the text in quotes"),
        ("k: 5", "k: 1:30", "my.yaml:11: not valid YAML: 1:30 is read as 90; write that, or put the text in quotes"),
        ("0.06", "1:30.5", "my.yaml:10: not valid YAML: 1:30.5 is read as 90.5; write that, or put the text in quotes"),
        ("k: 5", f"k: {'9' * 5000}", "my.yaml:11: not valid YAML: a number of 5000 digits"),
        ("features: [pt]", "features: [pt]\nname: 2024-13-01", "my.yaml: not valid YAML"),
        ("features: [pt]", "features: [pt]\nname: \x00", "my.yaml"),
        ("features: [pt]", "features: [pt]\n? [a, b]\n: 1", "my.yaml:2: the name"),
        ("files: h.root", "files: {process}/h.root", "quote text that begins with {"),
        ("features: [pt]", "features: [pt]\ntraining: {systematics: [foo]}", "training.systematics: no source foo"),
        ("features: [pt]", "features: [pt]\nfit: {systematics: [tes, foo]}", "fit.systematics: no source foo"),
        (
            "features: [pt]",
            "features: [pt]\ntraining: {binning: {pz: [1, 0, 1]}}",
            "features and bins do not match: pt, pz",
        ),
        ("features: [pt]", "features: [pt]\ntraining: {binning: {pt: [5, 2, 1]}}", "are no bins"),
        (
            "features: [pt]",
            "features: [pt, year]\ncategorical: [yaer]",
            "categorical: no feature yaer; there are: pt, year",
        ),
        (
            "features: [pt]",
            "features: [pt]\ntraining: {monotonic_constraints: {pz: 1}}",
            "training.monotonic_constraints: no feature pz",
        ),
        (
            "features: [pt]",
            "features: [pt]\ntraining: {monotonic_constraints: {pt: 2}}",
            "my.yaml:2: training.monotonic_constraints.pt: input should be -1, 0 or 1",
        ),
        (
            "features: [pt]",
            "features: [pt]\ncategorical: pt\ntraining: {monotonic_constraints: {pt: 1}}",
            "training.monotonic_constraints: pt is categorical: its values have no order",
        ),
        (
            "features: [pt]",
            "features: [pt]\ncategorical: pt\ntraining: {binning: {pt: [5, 0, 1]}}",
            "features and bins do not match: pt",
        ),
        ("role: signal", "role: signal, scale: .nan", "my.yaml:3: samples.higgs.scale"),
        ("features: [pt]", "features: !!python/object/apply:os.getcwd []", "my.yaml:1: not valid YAML"),
        (
            "features: [pt]",
            "features: [pt]\ntraining: {n_leaves: 1}",
            "my.yaml:2: training.n_leaves: input should be greater",
        ),
        (
            "features: [pt]",
            "features: [pt]\nselection: pt >> 3",
            "my.yaml:2: selection: 'pt >> 3': 'pt >> 3' is not allowed",
        ),
    ],
)
def test_every_fault_has_file_line_and_key(old, new, message):
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        parse_analysis(GOOD.replace(old, new, 1), "my.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value).strip()


def test_a_section_without_content_counts_as_not_given():
    analysis = parse_analysis(GOOD.partition("systematics:")[0] + "systematics:\n  # nothing yet\ntraining:\nweight:\n")
    assert analysis.systematics == {}
    assert analysis.weight == "1"


def test_all_faults_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        parse_analysis(GOOD.replace("features", "feature").replace("role: signal", "role: x"), "my.yaml")
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert all(line.startswith("my.yaml:") for line in lines)


def test_unreadable_files(tmp_path):
    with pytest.raises(ConfigError, match=r"no\.yaml: No such file"):
        read_analysis(tmp_path / "no.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(ConfigError, match=r"binary\.yaml: not a text file"):
        read_analysis(tmp_path / "binary.yaml")
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(ConfigError, match=r"empty\.yaml: an analysis file is a mapping"):
        read_analysis(tmp_path / "empty.yaml")
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(ConfigError, match=r"list\.yaml: an analysis file is a mapping"):
        read_analysis(tmp_path / "list.yaml")


@pytest.mark.parametrize("name", example_names())
def test_examples_are_valid_and_match_the_json_schema(name):
    text = example_text(name)
    parse_analysis(text, f"{name}.yaml")
    schema = json.loads(json.dumps(Analysis.describe()))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["samples"]["description"]
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(text))


def test_aliases_that_stand_for_more_than_anybody_writes():
    lists = zip("abcdefgh", "bcdefghi", strict=True)
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"{one}: &{one} [{', '.join([f'*{other}'] * 9)}]\n" for other, one in lists)
    with pytest.raises(ConfigError, match="entries with all aliases; at most 100000 are read"):
        parse_analysis(bomb)
    with pytest.raises(ConfigError, match="an alias stands for itself"):
        parse_analysis("features: &a [*a]")
    with pytest.raises(ConfigError, match="at most 500000 are read"):
        parse_analysis("#" * 10**6)


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a b", "x" * 300])
def test_the_name_of_a_measurement_is_no_path(name, tmp_path):
    settings = parse_analysis(f"dataset: {{name: inferno}}\nfit: {{measurement: {name!r}}}").fit
    spec = build_workspace(smooth_templates(4, 1), measurement=settings.measurement)
    assert write_xml(spec, tmp_path / "xml", settings.measurement).parent == tmp_path / "xml"
    assert [path.name for path in tmp_path.iterdir()] == ["xml"]


UNUSABLE = ["lumi", "staterror_a", "a b", "../x", "aé", "x" * 101]


@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.parametrize("key", ["poi: {}", "channel: {}", "parameters: {{{}: higgs}}", "free: {{{}: ttbar}}"])
def test_names_that_a_workspace_cannot_have_are_refused(key, name):
    with pytest.raises(ConfigError, match=key.partition(":")[0]):
        parse_analysis(f"dataset: {{name: inferno}}\nfit: {{{key.format(repr(name))}}}")


@pytest.mark.parametrize("name", UNUSABLE)
def test_regions_that_a_workspace_cannot_have_are_refused(name):
    with pytest.raises(ConfigError, match="regions"):
        parse_analysis(GOOD + f"\nregions: {{{name!r}: {{selection: 'x > 1'}}}}")


@pytest.mark.parametrize("name", UNUSABLE)
def test_strengths_that_a_workspace_cannot_have_are_refused(name):
    with pytest.raises(ConfigError, match=r"my.yaml:\d+: training.strengths"):
        parse_analysis(GOOD + f"\ntraining:\n  strengths: {{{name!r}: [higgs]}}\n", "my.yaml")


@pytest.mark.parametrize(
    "given", ["strengths: {mu: [higgs]}", "free: [ttbar]", "at: {tes: 1}", "with: x.json", "of_interest: [tes]"]
)
def test_settings_that_do_not_go_together_are_refused_when_the_file_is_read(given):
    with pytest.raises(ConfigError, match=r"my.yaml:\d+: training.* method.*paper.* knows no fit"):
        parse_analysis(GOOD + f"\ntraining:\n  method: paper\n  {given}\n", "my.yaml")


@pytest.mark.parametrize("setting", ["poi: lumi", "poi: 'a b'", "poi: ../x", r'measurement: "a\0b"', "channel: ../x"])
def test_names_that_a_workspace_cannot_have_are_refused_when_the_file_is_read(setting):
    with pytest.raises(ConfigError, match=setting.partition(":")[0]):
        parse_analysis(f"dataset: {{name: inferno}}\nfit: {{{setting}}}")


@pytest.mark.parametrize("name", ["", " ", r"a\0b", r"a\nb"])
@pytest.mark.parametrize("key", ["samples", "systematics", "eras"])
def test_names_that_cannot_be_printed_are_refused_when_the_file_is_read(name, key):
    old = {"samples": "  higgs:", "systematics": "  tes:", "eras": "features:"}[key]
    new = f'eras: {{"{name}": {{}}}}\nfeatures:' if key == "eras" else f'  "{name}":'
    assert old in GOOD
    with pytest.raises(ConfigError, match=rf"my.yaml.*{key}: a name that can be printed is needed"):
        parse_analysis(GOOD.replace(old, new, 1), "my.yaml")


@pytest.mark.parametrize("place", ["name: ", "training: {free: ", "fit: {poi: "])
def test_half_characters_are_refused_when_the_file_is_read(place):
    """Messages about them cannot be written: such a name of a free background was a traceback."""
    text = GOOD + f'\n{place}"a\\ud800b"' + "}" * ("{" in place)
    with pytest.raises(ConfigError, match=r"my\.yaml:\d+: 'a.*ud800b': half of a character"):
        parse_analysis(text, "my.yaml")


def test_a_model_in_the_place_of_an_analysis_is_named_as_what_it_is():
    with pytest.raises(ConfigError, match=r"^model\.qbdt: a trained model; this takes an analysis file"):
        parse_analysis('{\n"format": "qbdt model",\n"version": 3\n}', "model.qbdt")
