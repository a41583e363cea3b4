"""Cells of several scores between folds: a common scale, the floor on events, and how cells are numbered alike."""

from __future__ import annotations

import numpy as np
import pytest

from qbdt import Dataset, Events, ModuloFolds, Sample
from qbdt.data import Role
from qbdt.inference.settings import FitSettings
from qbdt.inference.strengths import fit_strengths
from qbdt.inference.templates.box_joining import Boxes, join_to_few
from qbdt.inference.templates.categories import CategoryBins
from qbdt.inference.templates.cell_floor import JoinedCells, join_poor
from qbdt.inference.templates.cells import CellTarget, FoldedCells, _match_cells, choose_cells
from qbdt.inference.templates.score_bins import ScoreBins
from qbdt.inference.templates.score_grid import make_fold_grids
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.template_set import ProcessTemplates, TemplateSet

TARGET = CellTarget({"a": ("A",), "b": ("B",)})


def make_scored(factor: float = 1.0) -> Dataset:
    """Two signals and a background in two folds; the scores of the second are larger by a factor."""
    rng = np.random.default_rng(5)

    def sample(name: str, role: Role, at: tuple[float, float], total: float) -> Sample:
        number = np.arange(3000)
        scale = np.where(number % 2, factor, 1.0)
        scores = {key: rng.normal(mean, 1, 3000) * scale for key, mean in zip("xy", at, strict=True)}
        return Sample(name, role, Events(scores, np.full(3000, total / 3000), {"event": number}))

    signals = [sample("A", Role.SIGNAL, (2.0, 0.0), 60.0), sample("B", Role.SIGNAL, (0.0, 2.0), 60.0)]
    return Dataset([*signals, sample("rest", Role.BACKGROUND, (0.0, 0.0), 900.0)], (), ModuloFolds(2, "event"))


def test_boxes_do_not_depend_on_the_scale_of_a_folds_scores():
    rule = ModuloFolds(2, "event")
    found = [
        FoldedCells(tuple(make_fold_grids(scored, rule)), rule).index(scored.sample("B").events, "B")
        for scored in (make_scored(), make_scored(4.0))
    ]
    np.testing.assert_array_equal(found[0], found[1])


def test_a_fold_without_a_signal_has_the_grid_of_all_events():
    scored = make_scored()
    rule = ModuloFolds(2, "event")
    kept = [
        Sample(s.name, s.role, s.events[rule.assign(s.events) == 0] if s.name == "A" else s.events)
        for s in scored.samples
    ]
    grids = make_fold_grids(Dataset(kept, (), rule), rule)
    assert [edges.shape for grid in grids for edges in grid.edges] == [(49,)] * 4


def test_cells_keep_the_floor_of_all_events():
    scored = make_scored(4.0)
    cells = choose_cells(scored, 20, TARGET, 10.0, by_folds=True)
    model = fill(scored, cells).arrays()
    # Each fold's cells have the floor in all events, the sum of the folds' shares of them about so many
    assert np.all(model.background**2 >= 5.0 * model.mc_variance)


@pytest.mark.parametrize("binning", ["cells", "categories"])
@pytest.mark.parametrize("rounded", [False, True])
def test_a_fit_keeps_the_floor_in_all_of_its_bins(binning, rounded):
    scored = make_scored()
    if rounded:  # few values, so that boxes are large and folds differ
        scored = scored.transform(lambda events: {key: np.round(events.column(key)) for key in "xy"})
    settings = FitSettings(bins=40, binning=binning, min_entries=20.0, scan=False)
    result = fit_strengths(scored, TARGET.strengths, settings)
    (templates,) = result.measurement.regions.values()
    assert templates.effective_background.min() >= 20.0
    assert templates.background.sum() == pytest.approx(900.0)
    assert templates.n_bins > 4


def test_poor_cells_are_joined_and_said_so(monkeypatch):
    monkeypatch.setattr(CellTarget, "FLOOR", 0.2)
    settings = FitSettings(bins=40, binning="cells", min_entries=60.0, scan=False)
    (templates,) = fit_strengths(make_scored(), TARGET.strengths, settings).measurement.regions.values()
    assert templates.effective_background.min() >= 60.0
    assert "fewer than 60 effective simulated background events" in str(templates.notes[0])


def test_other_signals_do_not_count_towards_the_floor_of_a_category():
    """Background at low scores alone: where the score of a strength is large, there are only signals."""
    given = make_scored()
    rest = given.sample("rest").events
    low = Sample("rest", Role.BACKGROUND, rest[np.maximum(rest.column("x"), rest.column("y")) < 1.0])
    scored = Dataset([given.sample("A"), given.sample("B"), low], (), given.folds)
    for by_folds in (False, True):
        cells = choose_cells(scored, 20, TARGET, 15.0, by_category=True, by_folds=by_folds)
        assert fill(scored, cells).effective_background.min() >= 10.0  # chosen on the other fold each
        assert cells.n_bins > 2


def test_poor_bins_of_a_category_are_joined_with_neighbours_in_it():
    bins = CategoryBins(("x", "y"), (ScoreBins.of([0, 1, 2, 3]), ScoreBins.of([0, 1, 2])))
    zeros = np.zeros(5)
    signals = [
        ProcessTemplates("A", Role.SIGNAL, np.array([1.0, 2.0, 9.0, 9.0, 1.0]), zeros),
        ProcessTemplates("B", Role.SIGNAL, np.ones(5), zeros),
    ]
    rest = ProcessTemplates("rest", Role.BACKGROUND, np.array([90.0, 50.0, 2.0, 3.0, 50.0]), np.ones(5))
    templates = TemplateSet("cell", np.arange(6.0), (*signals, rest))
    joined = join_poor(bins, templates, TARGET, 10.0)
    assert isinstance(joined, JoinedCells)
    np.testing.assert_array_equal(joined.labels, [0, 1, 1, 2, 2])
    assert join_poor(bins, templates, TARGET, 4.0) is bins


def test_a_poor_cell_grows_where_joining_costs_more():
    # Boxes at y = 0 … 5 with ten events each but the last, which has five: below the floor it takes its neighbour.
    counts = np.array([10.0, 10.0, 10.0, 10.0, 10.0, 5.0])
    boxes = Boxes(np.arange(6.0)[None] ** 2, counts, counts, counts)
    labels = np.array([0, 0, 0, 1, 1, 2])
    np.testing.assert_array_equal(join_to_few(boxes, labels, 3, 10.0), [0, 0, 0, 1, 2, 2])


def test_a_poor_cell_is_joined_where_nobody_can_give():
    counts = np.array([10.0, 10.0, 5.0])
    boxes = Boxes(np.array([[0.0, 4.0, 5.0]]), counts, counts, counts)
    np.testing.assert_array_equal(join_to_few(boxes, np.arange(3), 3, 10.0), [0, 1, 1])


def test_cells_are_numbered_such_that_adding_up_costs_least():
    scores, ones = np.array([[0.0, 1.0, 10.0]]), np.ones(3)
    large = Boxes(scores, np.array([100.0, 100.0, 1.0]), ones, ones)
    matched = _match_cells([large, large], [np.array([0, 1, 2]), np.array([2, 0, 1])])
    np.testing.assert_array_equal(matched[1], [0, 1, 2])
