"""Cells of several scores between folds: a common scale, the floor on events, and how cells are numbered alike."""

from __future__ import annotations

import numpy as np

from qbdt import Dataset, Events, ModuloFolds, Sample
from qbdt.data import Role
from qbdt.inference.templates.box_joining import Boxes, join_to_few
from qbdt.inference.templates.cells import CellTarget, FoldedCells, _match_cells, choose_cells
from qbdt.inference.templates.score_grid import make_fold_grids
from qbdt.inference.templates.score_histograms import fill

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
