"""Templates: filling against a naive histogram, the three kinds of sources, scaling, merging, repairs, pruning."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbdt import Dataset, Events, Sample, Systematic
from qbdt.data import Role
from qbdt.data.folds import ModuloFolds
from qbdt.errors import DataError, FitError
from qbdt.inference.templates.repair import bound_shifts, merge_unusable_bins, prune_sources
from qbdt.inference.templates.score_bins import ScoreBins, equal_yield_edges
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.scores import scan_transform, tanh_scores
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet

EDGES = [0.0, 0.25, 0.5, 0.75, 1.0]


def scored_dataset(n=400, seed=1, data=False):
    """Signal at high, background at low scores, with one source of each kind on the background."""
    rng = np.random.default_rng(seed)
    s = Events({"score": rng.beta(4, 2, n)}, np.full(n, 0.1), {"event": np.arange(n)})
    score, weight = rng.beta(2, 4, n), rng.uniform(0.5, 1.5, n)
    b = Events({"score": score}, weight, {"event": np.arange(n)})
    shifted = Events({"score": np.clip(score + 0.02, 0, 1)}, weight, {"event": np.arange(n)})
    samples = [Sample("s", Role.SIGNAL, s), Sample("b", Role.BACKGROUND, b)]
    if data:
        samples.append(Sample("data", Role.DATA, Events({"score": rng.random(50)}, np.ones(50), {"event": range(50)})))
    sources = [
        Systematic.shape("scale", {"b": shifted}),
        Systematic.weight("tag", {"b": weight * 1.1}, {"b": weight * 0.95}),
        Systematic.norm("xs", 0.2, processes=["b", "s"]),
    ]
    return Dataset(samples, sources, ModuloFolds(2, "event"))


def test_filling_equals_numpy():
    scored = scored_dataset()
    templates = fill(scored, ScoreBins.of(EDGES))
    events = scored.sample("b").events
    values, _ = np.histogram(events.column("score"), EDGES, weights=events.weight)
    squares, _ = np.histogram(events.column("score"), EDGES, weights=events.weight**2)
    assert templates.process("b").nominal == pytest.approx(values)
    assert templates.process("b").variance == pytest.approx(squares)


def test_templates_of_parts_add_up():
    scored = scored_dataset(data=True)
    whole, binning = fill(scored, ScoreBins.of(EDGES)), ScoreBins.of(EDGES)
    odd, even = (fill(scored.fold(number), binning) for number in (0, 1))
    together = odd + even
    assert together.data is not None
    assert whole.data is not None
    assert together.data.tolist() == whole.data.tolist()
    for process in whole.processes:
        mine = together.process(process.name)
        assert mine.nominal == pytest.approx(process.nominal, rel=1e-14)  # sums in another order
        assert mine.variance == pytest.approx(process.variance, rel=1e-14)
        for name, shift in process.shifts.items():
            assert mine.shifts[name].up == pytest.approx(shift.up, rel=1e-14)
            assert mine.shifts[name].down == pytest.approx(shift.down, rel=1e-13)  # reflected: a difference
            assert mine.shifts[name].factors == shift.factors


def test_under_and_overflow_are_folded_in():
    events = Events({"score": [-9.0, 0.1, 9.0]}, [1.0, 2.0, 4.0])
    scored = Dataset([Sample("s", Role.SIGNAL, events), Sample("b", Role.BACKGROUND, events)])
    assert fill(scored, ScoreBins.of([0, 0.5, 1])).background.tolist() == [3.0, 4.0]


def test_one_sided_sources_are_reflected():
    templates = fill(scored_dataset(), ScoreBins.of(EDGES))
    b = templates.process("b")
    shift = b.shifts["scale"]
    assert shift.mirrored
    assert shift.up + shift.down == pytest.approx(2 * b.nominal)
    assert b.linear_shift("scale") == pytest.approx(shift.up - b.nominal)


def test_two_sided_and_norm_sources():
    templates = fill(scored_dataset(), ScoreBins.of(EDGES))
    b = templates.process("b")
    assert b.linear_shift("tag") == pytest.approx(0.075 * b.nominal)
    assert b.shifts["tag"].factors is None
    assert templates.process("s").shifts["xs"].factors == (0.8, 1.2)
    assert "scale" not in templates.process("s").shifts


def test_a_norm_on_part_of_a_process_is_a_shape():
    score, y = np.linspace(0, 1, 40), np.tile([1, 0], 20)
    scored = Dataset.from_arrays({"score": score}, y, systematics=[Systematic.norm("part", 0.1, where=score > 0.5)])
    templates = fill(scored, ScoreBins.of([0, 0.5, 1]))
    shift = templates.process("background").shifts["part"]
    assert shift.factors is None
    assert shift.up / templates.background == pytest.approx([1.0, 1.1])


def test_recorded_data_are_counted():
    templates = fill(scored_dataset(data=True), ScoreBins.of(EDGES))
    assert templates.data is not None
    assert templates.data.sum() == 50
    assert {p.name for p in templates.processes} == {"s", "b"}


def test_scaling_a_part_to_the_whole():
    templates = fill(scored_dataset(), ScoreBins.of(EDGES))
    twice = templates.scaled(2)
    assert twice.background == pytest.approx(2 * templates.background)
    assert twice.process("b").variance == pytest.approx(4 * templates.process("b").variance)
    assert twice.effective_background == pytest.approx(templates.effective_background)


def test_merging_adds_everything():
    templates = fill(scored_dataset(data=True), ScoreBins.of(EDGES))
    merged = templates.merged([0, 3])
    assert merged.edges.tolist() == [0.0, 0.75, 1.0]
    assert merged.signal == pytest.approx([templates.signal[:3].sum(), templates.signal[3]])
    shift = merged.process("b").shifts["scale"].up
    assert shift == pytest.approx(
        [templates.process("b").shifts["scale"].up[:3].sum(), templates.process("b").shifts["scale"].up[3]]
    )
    assert merged.data is not None
    assert merged.data.sum() == 50


def test_each_fold_can_have_its_own_edges():
    scored = scored_dataset()
    binning = ScoreBins(((0.0, 0.3, 1.0), (0.0, 0.6, 1.0)), scored.folds)
    templates = fill(scored, binning)
    parts = [fill(scored.fold(f), ScoreBins.of(binning.edges[f])) for f in (0, 1)]
    assert templates.background == pytest.approx(parts[0].background + parts[1].background)
    assert templates.edges.tolist() == [0, 1, 2]


def test_boost_histograms():
    templates = fill(scored_dataset(), ScoreBins.of(EDGES))
    nominal = templates.histogram("b")
    assert nominal.values() == pytest.approx(templates.background)
    assert nominal.variances() == pytest.approx(templates.process("b").variance)
    assert templates.histogram("b", "tag", "down").values() == pytest.approx(0.95 * templates.background)
    with pytest.raises(FitError, match="source scale does not act on process s"):
        templates.histogram("s", "scale")


def test_plain_data_round_trip():
    templates = fill(scored_dataset(data=True), ScoreBins.of(EDGES))
    assert TemplateSet.from_dict(templates.to_dict()).to_dict() == templates.to_dict()


def test_scores_that_are_missing_are_refused():
    events = Events({"score": [0.1, np.nan]}, [1.0, 1.0])
    scored = Dataset([Sample("s", Role.SIGNAL, events), Sample("b", Role.BACKGROUND, events)])
    with pytest.raises(DataError, match="sample s: the score of 1 of 2 events is NaN or infinite"):
        fill(scored, ScoreBins.of([0, 1]))


def test_more_than_a_score_is_refused():
    events = Events({"score": [0.1], "pt": [1.0]}, [1.0])
    scored = Dataset([Sample("s", Role.SIGNAL, events), Sample("b", Role.BACKGROUND, events)])
    with pytest.raises(DataError, match="has the columns score, pt"):
        fill(scored, ScoreBins.of([0, 1]))


@pytest.mark.parametrize("edges", [[1.0], [0.0, 0.0], [1.0, 0.0]])
def test_bad_edges(edges):
    with pytest.raises(FitError, match="at least two ascending numbers"):
        ScoreBins.of(edges)


def simple(signal, background, variance, **shifts):
    b = np.asarray(background, float)
    made = {n: Shift(np.asarray(up, float), 2 * b - up, mirrored=True) for n, up in shifts.items()}
    processes = (
        ProcessTemplates("s", Role.SIGNAL, np.asarray(signal, float), np.zeros(len(b))),
        ProcessTemplates("b", Role.BACKGROUND, b, np.asarray(variance, float), made),
    )
    return TemplateSet("score", np.arange(len(b) + 1.0), processes, tuple(made))


def test_empty_and_negative_bins_are_merged_towards_the_background():
    templates = simple([1, 2, 3, 4], [50, 20, -1, 0], [50, 20, 2, 0])
    merged = merge_unusable_bins(templates)
    assert merged.signal.tolist() == [1, 9]
    assert [str(n) for n in merged.notes] == [
        "bin 4 (3 to 4): no background; merged with bin 3",
        "bin 3 (2 to 4): negative background -1; merged with bin 2",
    ]


def test_the_first_bin_is_merged_upwards():
    assert merge_unusable_bins(simple([1, 2], [0, 5], [0, 5])).signal.tolist() == [3]


def test_a_floor_on_simulated_events():
    merged = merge_unusable_bins(simple([1, 1, 1], [100, 9, 4], [100, 9, 4]), min_entries=5)
    assert merged.background.tolist() == [100, 13]
    assert "4 effective simulated background events, fewer than 5" in merged.notes[0].message


def test_no_background_anywhere():
    with pytest.raises(FitError, match="all bins together: no background"):
        merge_unusable_bins(simple([1, 2], [0, 0], [0, 0]))


@given(st.lists(st.integers(-50, 500).map(lambda n: n / 10), min_size=1, max_size=8), st.just(0.0) | st.floats(0.1, 20))
def test_merging_keeps_the_yields(background, floor):
    templates = simple(np.ones(len(background)), background, np.abs(background))
    if sum(background) <= 0 or sum(background) ** 2 < floor * sum(map(abs, background)) * 1.0001:
        return
    merged = merge_unusable_bins(templates, floor)
    assert merged.background.sum() == pytest.approx(sum(background))
    assert merged.signal.sum() == pytest.approx(len(background))
    assert np.all(merged.background > 0)
    assert np.all(merged.effective_background >= floor)


def test_reflections_are_bounded_and_reported():
    templates = bound_shifts(simple([1, 1], [10, 10], [1, 1], big=[12, 35]))
    shift = templates.process("b").shifts["big"]
    assert shift.down == pytest.approx([8, 0.01])
    assert str(templates.notes[0]) == "source big: bounded from below on b in bin 2: its reflection would be negative"
    assert templates.process("b").linear_shift("big") == pytest.approx([2, 25])


def test_a_process_that_is_negative_in_a_bin_is_one_note_and_not_one_for_each_source():
    templates = bound_shifts(simple([1, 1], [10, -1], [1, 1], small=[10.5, -1.1], large=[12, -1.3]))
    assert [str(note) for note in templates.notes] == ["process b: negative in bin 2: no source makes it more so"]
    assert templates.process("b").shifts["large"].up == pytest.approx([12, -1])


def test_pruning_lists_what_goes():
    templates = prune_sources(
        simple([1, 1], [100, 100], [1, 1], small=[100.1, 100], large=[103, 100], none=[100, 100]), 0.005
    )
    assert templates.sources == ("large",)
    assert [str(n) for n in templates.notes] == [
        "source small: dropped from b: moves no bin by more than 0.001",
        "source none: dropped from b: moves no bin by more than 0",
    ]


def test_without_a_threshold_only_dead_sources_go():
    templates = prune_sources(simple([1, 1], [100, 100], [1, 1], small=[100.1, 100], none=[100, 100]), 0.0)
    assert templates.sources == ("small",)


@pytest.mark.parametrize("role", ["signal", "background"])
def test_equal_yield_bins(role):
    scored = scored_dataset(2000)
    templates = fill(scored, ScoreBins.of(equal_yield_edges(scored, 5, role)))
    share = templates.total(Role(role)) / templates.total(Role(role)).sum()
    assert share == pytest.approx(np.full(5, 0.2), abs=2e-3)  # one event is 1/2000 of the yield


def test_ties_give_fewer_bins():
    events = Events({"score": np.repeat([0.0, 1.0], 50)}, np.ones(100))
    scored = Dataset([Sample("s", Role.SIGNAL, events), Sample("b", Role.BACKGROUND, events)])
    assert len(equal_yield_edges(scored, 10, "signal")) <= 3


def test_all_scores_equal():
    events = Events({"score": np.zeros(5)}, np.ones(5))
    scored = Dataset([Sample("s", Role.SIGNAL, events), Sample("b", Role.BACKGROUND, events)])
    with pytest.raises(FitError, match="all scores are 0"):
        equal_yield_edges(scored, 3, "signal")


def test_scan_of_the_transform_takes_the_largest_allowed_q():
    rng = np.random.default_rng(4)
    s = Sample("s", Role.SIGNAL, Events({"score": rng.normal(2, 1, 3000)}, np.full(3000, 0.01)))
    b = Sample("b", Role.BACKGROUND, Events({"score": rng.normal(-1, 1.2, 3000)}, np.ones(3000)))
    scan = scan_transform(Dataset([s, b]))
    assert len(scan.constants) == 30
    assert (scan.constants[0], scan.constants[-1]) == (0.05, 1.5)
    allowed = scan.q[scan.allowed]
    assert scan.q[scan.constants == scan.best][0] == allowed.max()
    assert not scan.allowed[0]  # tanh(0.05·y) never reaches the last bin


def test_tanh_acts_on_variations_too():
    scored = tanh_scores(scored_dataset(), 0.5)
    varied = scored.varied("scale", "up")["b"]
    original = scored_dataset().varied("scale", "up")["b"]
    assert varied.column("score") == pytest.approx(np.tanh(0.5 * original.column("score")))


def test_sources_can_be_chosen():
    templates = fill(scored_dataset(), ScoreBins.of(np.linspace(0, 1, 5)))
    assert templates.with_sources(["tag"]).sources == ("tag",)
    with pytest.raises(FitError, match="no source nope"):
        templates.with_sources(["nope"])


def test_unknown_process():
    with pytest.raises(FitError, match="no process x"):
        simple([1], [1], [1]).process("x")


def test_templates_need_signal_and_background():
    templates = simple([1], [1], [1])
    with pytest.raises(FitError, match="no background process"):
        replace(templates, processes=templates.of_role(Role.SIGNAL))
