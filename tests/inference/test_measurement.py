"""Measurements of several regions and parameters: what they refuse, and that fits of them agree with pyhf."""

from dataclasses import replace

import numpy as np
import pyhf
import pytest
from scipy.stats import norm

from qbdt.data import Role
from qbdt.errors import FitError
from qbdt.inference.analytic_likelihood import AnalyticLikelihood
from qbdt.inference.fit import fit_measurement, fit_templates
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.measurement import Measurement
from qbdt.inference.settings import FitSettings
from qbdt.inference.templates.template_set import Note, ProcessTemplates, Shift, TemplateSet
from qbdt.inference.workspace import describe_measurement
from tests.inference.models import pyhf_errors, smooth_templates

QUICK = FitSettings(scan=False)
ROLES = {"ggH": Role.SIGNAL, "VBF": Role.SIGNAL, "ttbar": Role.BACKGROUND, "W": Role.BACKGROUND}
CODES = {"normsys": {"interpcode": "code4"}, "histosys": {"interpcode": "code4p"}}


def region(sources=("jes", "xs"), data=None, **events):
    """Templates of the given yields; jes is an asymmetric tilt of all, xs a normalisation of W of +60 −30 %."""
    processes = []
    for name, yields in events.items():
        nominal = np.array(yields, dtype=float)
        tilt = np.linspace(-0.04, 0.06, len(nominal)) if len(nominal) > 1 else np.array([0.03])
        shifts = {"jes": Shift(nominal * (1 + tilt), nominal * (1 - 0.6 * tilt))}
        if name == "W":
            shifts["xs"] = Shift(nominal * 1.6, nominal * 0.7, factors=(0.7, 1.6))
        kept = {source: shift for source, shift in shifts.items() if source in sources}
        processes.append(ProcessTemplates(name, ROLES[name], nominal, 0.05 * nominal, kept))
    n_bins = len(next(iter(events.values())))
    return TemplateSet("score", np.arange(n_bins + 1.0), tuple(processes), tuple(sources), data)


def regions():
    return {
        "signal": region(ggH=[4, 12, 20], VBF=[9, 3, 2], ttbar=[90, 40, 15], W=[200, 60, 12]),
        "control": region(ggH=[0.5, 0.1], VBF=[0.2, 0.2], ttbar=[900, 300], W=[50, 80]),
    }


def measurement(**more):
    return Measurement(regions(), {"mu_ggH": ["ggH"], "mu_VBF": ["VBF"]}, free=["ttbar"], **more)


def pyhf_model(spec, number=0):
    pyhf.set_backend("numpy", pyhf.optimize.minuit_optimizer(tolerance=1e-3))
    workspace = pyhf.Workspace(spec)
    model = workspace.model(measurement_name=spec["measurements"][number]["name"], modifier_settings=CODES)
    return model, workspace.data(model)


def test_two_strengths_and_a_free_normalisation_agree_with_pyhf():
    result = fit_measurement(measurement(), QUICK)
    for number, strength in enumerate(result.expected.strengths):
        model, data = pyhf_model(result.workspace, number)
        p0 = float(pyhf.infer.hypotest(0.0, data, model, test_stat="q0"))
        assert strength.z == pytest.approx(norm.isf(p0), abs=1e-3)
    fitted = pyhf.infer.mle.fit(data, model)
    errors = dict(zip(model.config.par_names, pyhf_errors(model, data, fitted), strict=True))
    for parameter in result.expected.parameters:
        assert parameter.value == pytest.approx(fitted[model.config.par_names.index(parameter.name)], abs=1e-3)
        assert parameter.error == pytest.approx(errors[parameter.name], rel=1e-3)
    assert result.expected.parameter("norm_ttbar").kind == "free"


@pytest.mark.parametrize("mc_model", ["process", "process_poisson"])
def test_factors_per_process_and_bin_agree_with_pyhf(mc_model):
    """Full Barlow–Beeston, with an empty bin, on data that are not the expected ones."""
    templates = smooth_templates(3, 1, mc_events=3.0)
    major, minor = templates.process("major"), templates.process("minor")
    minor = replace(minor, nominal=minor.nominal * [1, 1, 0], variance=minor.variance * [1, 1, 0])
    processes = (templates.process("signal"), major, minor)
    templates = replace(templates, processes=processes, data=np.round(templates.asimov * [1.05, 0.9, 1.1]))
    result = fit_templates(templates, FitSettings(scan=False, mc_model=mc_model))
    model, data = pyhf_model(result.workspace)
    p0 = float(pyhf.infer.hypotest(0.0, data, model, test_stat="q0"))
    observed = result.observed
    assert observed is not None
    assert observed.z == pytest.approx(norm.isf(p0), abs=1e-3)
    fitted = pyhf.infer.mle.fit(data, model)
    free = np.flatnonzero(~np.array(model.config.suggested_fixed()))
    errors = pyhf_errors(model, data, fitted, free)
    for place, i in enumerate(free):
        parameter = observed.parameter(model.config.par_names[i])
        assert parameter.value == pytest.approx(fitted[i], abs=1e-3)
        assert parameter.error == pytest.approx(errors[place], rel=1e-3)
    assert observed.parameter("staterror_signal_region_minor[2]").error == 0  # there is nothing to scale
    analytic = AnalyticLikelihood(result.workspace)
    point = np.where(analytic.constant, analytic.start, analytic.start + 0.1)
    assert analytic.twice_nll(point) == pytest.approx(Likelihood(result.workspace).twice_nll(point), rel=1e-9)
    lite = fit_templates(templates, QUICK).observed
    assert lite is not None
    assert abs(observed.sigma_mu - lite.sigma_mu) > 1e-3  # it is another likelihood


def test_bins_of_a_region(tmp_path):
    result = fit_measurement(measurement(), QUICK)
    signal = result.expected.region("signal")
    assert signal.counts == pytest.approx(regions()["signal"].asimov)
    assert signal.postfit["W"] == pytest.approx(regions()["signal"].process("W").nominal, rel=1e-4)
    again = type(signal).from_dict(result.expected.to_dict())
    assert again.region("control").counts == pytest.approx(regions()["control"].asimov)
    assert again.strength("mu_VBF").sigma_mu == result.expected.strength("mu_VBF").sigma_mu
    with pytest.raises(FitError, match="no region 'other'"):
        signal.region("other")


def test_one_region_is_the_fit_of_its_templates():
    templates = smooth_templates(5, 2, norm=0.1)
    one, other = fit_templates(templates, QUICK), fit_measurement(Measurement({"signal_region": templates}), QUICK)
    assert one.expected.to_dict() == other.expected.to_dict()
    assert one.workspace == other.workspace


def test_a_control_region_measures_a_free_normalisation():
    control = fit_measurement(measurement(), QUICK).expected.strength("mu_ggH")
    alone = Measurement({"signal": regions()["signal"]}, {"mu_ggH": ["ggH"], "mu_VBF": ["VBF"]}, free=["ttbar"])
    assert control.sigma_mu < fit_measurement(alone, QUICK).expected.strength("mu_ggH").sigma_mu


def test_fixed_and_bounded_parameters():
    held = measurement(fixed={"mu_VBF": 2.0, "jes": 0.5}, bounds={"norm_ttbar": (0.5, 2.0)})
    result = fit_measurement(held, QUICK).expected
    assert [s.name for s in result.strengths] == ["mu_ggH"]
    assert result.mu == pytest.approx(1.0, abs=1e-4)  # the Asimov data are those of the held values
    assert (result.parameter("mu_VBF").value, result.parameter("jes").value) == (2.0, 0.5)
    assert result.parameter("jes").error == 0.0
    spec = describe_measurement(held)
    (entry,) = (p for p in spec["measurements"][0]["config"]["parameters"] if p["name"] == "norm_ttbar")
    assert entry["bounds"] == [[0.5, 2.0]]


def test_a_source_with_a_name_of_histfactory_may_be_fixed_and_bounded():
    named = {name: one.renamed({}, {"xs": "lumi"}) for name, one in regions().items()}
    strengths = {"mu": ["ggH", "VBF"]}
    held = fit_measurement(Measurement(named, strengths, fixed={"lumi": 0.5}), QUICK).expected
    assert (held.parameter("lumi_2").value, held.parameter("lumi_2").error) == (0.5, 0.0)
    bounded = Measurement(named, strengths, bounds={"lumi": (-2.0, 3.0)}).rename_reserved()
    assert bounded.bounds == {"lumi_2": (-2.0, 3.0)}


def test_groups_are_parts_of_the_uncertainty():
    parts = dict(fit_measurement(measurement(groups={"all": ["jes", "xs"]}), QUICK).expected.breakdown)
    assert parts["all"] == pytest.approx(parts["all sources"])
    assert parts["free parameters"] > 0


def test_impacts_of_groups():
    groups = {"all": ["jes", "xs"], "one": ["jes"], "with a factor": ["jes", "norm_ttbar"], "itself": ["mu_ggH"]}
    strength = fit_measurement(measurement(groups=groups), QUICK).expected.strengths[0]
    impacts, parts = {i.source: i for i in strength.group_impacts}, dict(strength.breakdown)
    (alone,) = (i for i in strength.impacts if i.source == "jes")
    assert (impacts["one"].up, impacts["one"].prefit_up) == pytest.approx((abs(alone.up), abs(alone.prefit_up)))
    for group in ("all", "with a factor"):
        assert impacts[group].up == pytest.approx(parts[group]) == pytest.approx(-impacts[group].down)
    assert "itself" not in impacts  # the strength does not move itself
    refit = fit_measurement(measurement(groups=groups), FitSettings(scan=False, impacts="refit")).expected.strengths[0]
    for impact in refit.group_impacts:
        assert impact.up == pytest.approx(impacts[impact.source].up, rel=0.3)  # sources are asymmetric
        assert impact.down < 0 < impact.up
    table = next(t for t in refit.tables() if t.title == "Impacts of groups")
    assert {row[0] for row in table.rows} == {"all", "one", "with a factor"}


def abcd():
    """A signal region and three regions that measure W there by A = B · C/D, on data that are not the expected ones."""
    yields = {"a": [20, 30], "b": [400], "c": [60], "d": [500]}  # B · C/D = 48
    regions = {}
    for name, w in yields.items():
        signal = [5.0, 15.0] if name == "a" else [0.1]
        one = region(sources=("jes",), ggH=signal, ttbar=[30.0] * len(w), W=w)
        regions[name] = replace(one, data=np.round(one.asimov * 1.1))
    return Measurement(regions).tie("W", list(yields))


def test_yields_of_four_regions_are_tied():
    tied = abcd()
    assert tied.regions["a"].process("W").nominal == pytest.approx([48 * 0.4, 48 * 0.6])
    assert str(tied.notes[0]).startswith("a, W: scaled by 0.96 in a")
    every = tied.map({name: region.with_notes([Note("binning", "told once")]) for name, region in tied.regions.items()})
    assert [str(note) for note in every.notes] == ["binning: told once", *map(str, tied.notes)]
    result = fit_measurement(tied, QUICK)
    observed = result.observed
    assert observed is not None
    yields = {name: observed.region(name).postfit["W"].sum() for name in "abcd"}
    assert yields["a"] * yields["d"] == pytest.approx(yields["b"] * yields["c"], rel=0.03)  # jes moves shapes
    assert [tied.factors_of(name, "W")[0] for name in "abcd"] == ["norm_W"] * 4
    model, data = pyhf_model(result.workspace)
    p0 = float(pyhf.infer.hypotest(0.0, data, model, test_stat="q0"))
    assert observed.z == pytest.approx(norm.isf(p0), abs=1e-3)
    # without sources, free W in A is known as well as the three yields tell
    alone = fit_measurement(tied.map({n: r.with_sources([]) for n, r in tied.regions.items()}), QUICK).expected
    error = alone.parameter("transfer_W").error
    assert error == pytest.approx(np.sqrt(90.1) / 60 * np.sqrt(1 + (60 / 90.1) ** 2 * 90.1 / 500), rel=0.2)
    assert Measurement.from_dict(tied.to_dict()).to_dict() == tied.to_dict()
    with pytest.raises(FitError, match="abcd: W: no region e; there are: a, b, c, d"):
        tied.tie("W", ["a", "b", "c", "e"])
    with pytest.raises(FitError, match="process W is scaled by two parameters"):
        replace(tied, free=["W"])


def test_decorrelated_sources_have_names_of_their_own():
    split = measurement(groups={"exp": ["jes"]}).decorrelate("jes", ["region"])
    assert split.sources == ("jes_signal", "xs", "jes_control")
    assert split.groups["exp"] == ("jes_signal", "jes_control")
    both = measurement().decorrelate("xs", ["region", "process"])
    assert both.sources == ("jes", "xs_signal_W", "xs_control_W")
    assert list(both.regions["control"].process("W").shifts) == ["jes", "xs_control_W"]
    with pytest.raises(FitError, match="no source other"):
        split.decorrelate("other", ["region"])
    with pytest.raises(FitError, match=r"decorrelate=\['era'\]"):
        measurement().decorrelate("jes", ["era"])


def test_parts_of_sources_with_one_name():
    """Of two regions and two processes, of two sources in different regions: nothing that is two becomes one."""
    processes = {"b_c": Role.BACKGROUND, "c": Role.BACKGROUND, "s": Role.SIGNAL}

    def one(**sources):
        found = [
            ProcessTemplates(
                name, role, np.ones(1), np.ones(1), {s: Shift(np.array([1.1]), np.array([0.9])) for s in own}
            )
            for name, role in processes.items()
            for own in [sources.get(name, ())]
        ]
        return TemplateSet("x", np.arange(2.0), tuple(found), tuple(dict.fromkeys(sum(sources.values(), ()))))

    both = Measurement({"a": one(b_c=("ts",), c=("ts",)), "a_b": one(b_c=("ts",), c=("ts",))})
    assert both.decorrelate("ts", ["process"]).sources == ("ts_b_c", "ts_c")
    assert both.decorrelate("ts", ["region"]).sources == ("ts_a", "ts_a_b")
    with pytest.raises(FitError, match="decorrelate: ts in a_b, c and ts in a, b_c would both be called ts_a_b_c"):
        both.decorrelate("ts", ["region", "process"])
    other = Measurement({"sr": one(c=("ts", "ts_cr")), "cr": one(b_c=("ts",))})
    with pytest.raises(FitError, match="decorrelate: ts in cr and source ts_cr would both be called ts_cr: rename one"):
        other.decorrelate("ts", ["region"])


def test_factors_with_one_name():
    """Strengths, free normalisations and factors of tied backgrounds are different parameters."""
    tied = abcd()
    more = {name: region.with_process(replace(region.process("W"), name="W+")) for name, region in tied.regions.items()}
    with pytest.raises(FitError, match="transfer_W is a strength and a factor of abcd, of W: rename one"):
        replace(tied, strengths={"transfer_W": [*tied.strengths["mu"]]}, of_interest=())
    with pytest.raises(FitError, match="norm_W is a free normalisation and a factor of abcd, of W: rename one"):
        replace(tied, regions=more, free={"norm_W": ["W+"]})
    with pytest.raises(FitError, match="norm_W is a strength and a free normalisation: rename one"):
        replace(tied, strengths={"norm_W": [*tied.strengths["mu"]]}, of_interest=(), abcd={}, free=["W"])


def test_plain_data_and_back():
    one = measurement(groups={"exp": ["jes"]}, bounds={"mu_VBF": (0, 5)})
    assert Measurement.from_dict(one.to_dict()).to_dict() == one.to_dict()
    with pytest.raises(FitError, match="no measurement can be made of this"):
        Measurement.from_dict({"regions": 3})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strengths": {"mu": ["ggH"]}}, "signal VBF is scaled by no strength"),
        ({"strengths": {"mu": ["ggH", "VBF", "W"]}}, "strengths: mu: W is no signal process"),
        ({"strengths": {"mu": "ggH"}}, "strengths: mu='ggH': a list of names"),
        ({"strengths": {"a": ["ggH", "VBF"], "b": ["VBF"]}}, "process VBF is scaled by two parameters"),
        ({"strengths": {"a b": ["ggH", "VBF"]}}, "parameter 'a b': a word"),
        ({"strengths": {"lumi": ["ggH", "VBF"]}}, "the name lumi means something else"),
        ({"free": "ttbar"}, "free='ttbar': a list of names"),
        ({"free": ["ggH"]}, "free: norm_ggH: ggH is no background process"),
        ({"free": ["Z"]}, "Z is no background process; there are: ttbar, W"),
        ({"fixed": {"tes": 0}}, "fixed: no parameter tes"),
        ({"fixed": {"mu": 1}}, "all strengths are fixed"),
        ({"fixed": {"jes": float("nan")}}, "fixed: jes=nan"),
        ({"bounds": {"mu": (2, 3)}}, "bounds: mu: 2 to 3 must contain 1"),
        ({"of_interest": ["W"]}, "of_interest: W: a strength or source that is not fixed"),
        ({"groups": {"exp": ["tes"]}}, "groups: exp: no source tes"),
        ({"groups": {"jes": ["xs"]}}, "groups: jes: the name is taken"),
        ({"regions": {}}, "at least one region"),
        ({"regions": {"1 a": region(ggH=[1], ttbar=[2])}}, "region '1 a': a word"),
    ],
)
def test_what_is_refused(change, message):
    with pytest.raises(FitError, match=message):
        Measurement(**{"regions": regions(), **change})


def test_an_empty_bin_is_named_with_its_region():
    empty = {**regions(), "control": region(ggH=[1, 1], VBF=[1, 1], ttbar=[9, 0], W=[1, 0])}
    with pytest.raises(FitError, match=r"region control, bin 2 \(1 to 2\) expects 0 background"):
        fit_measurement(Measurement(empty), QUICK)


def test_factors_that_the_regions_cannot_tell_apart():
    same = {"signal": region(sources=(), ggH=[1, 2], VBF=[1, 2], ttbar=[9, 5], W=[9, 5])}
    with pytest.raises(FitError, match="a and b change all bins alike"):
        fit_measurement(Measurement(same, {"a": ["ggH"], "b": ["VBF"]}), QUICK)
