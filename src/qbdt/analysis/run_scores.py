"""Figures of the scores of a run: ROC curves, and scores of events that the models have seen and have not seen."""

from __future__ import annotations

from dataclasses import dataclass

from qbdt.analysis.diagnosis import check_over_training
from qbdt.analysis.run_folder import RunFolder
from qbdt.analysis.run_histograms import fill_scores
from qbdt.data import Dataset, Role
from qbdt.files import choose_words
from qbdt.inference.templates import area_under_roc, roc_points
from qbdt.report import Block, Figure, Labels, Text
from qbdt.report.figures import roc_curves, train_and_test
from qbdt.training import STRENGTH

PERMUTATIONS = 199
"""Of the test of over-training."""


def draw_scores(run: RunFolder, labels: Labels) -> list[Block]:
    """Draw each score of a run: of a strength its ROC curve, and of all scores training against test events."""
    blocks: list[Block] = []
    views = _list_scores(run)
    if run.scored is not None:
        blocks += [_draw_roc(view, run.scored, labels) for view in views if view.signals]
    if run.data is not None and run.model is not None:
        blocks += [_draw_train_and_test(view, run, labels) for view in views]
    elif run.model is not None:
        blocks.append(Text("Scores of training against test events need the events: give the folder of the data."))
    return blocks


@dataclass(frozen=True)
class _ScoreView:
    """One of the scores of a model, and the signals that it is to find."""

    number: int
    title: str  # What follows "score" in captions
    ending: str  # Of the names of figures
    signals: tuple[str, ...]  # None of them where it is the score of a source, such as a mass

    def choose(self, dataset: Dataset) -> Dataset:
        """Nominal background, and the signals of this score, or all of them where it has none."""
        wanted = self.signals or tuple(sample.name for sample in dataset.of_role(Role.SIGNAL))
        samples = [sample for sample in dataset.samples if sample.role is Role.BACKGROUND or sample.name in wanted]
        return Dataset(samples, (), dataset.folds)


def _list_scores(run: RunFolder) -> list[_ScoreView]:
    events = run.scored if run.data is None else run.data
    every = () if events is None else tuple(sample.name for sample in events.of_role(Role.SIGNAL))
    first = None if run.model is None else run.model.trainings[0]
    names = [] if first is None else [one.parameter for one in first.expectations]
    strengths = (first.settings.strengths if first is not None else {}) or {STRENGTH: every}
    if len(names) < 2:
        return [_ScoreView(0, "", "", () if names and names[0] not in strengths else every)]
    return [
        _ScoreView(number, f" of {name}", f"-{word}", tuple(strengths.get(name, ())))
        for number, (name, word) in enumerate(zip(names, choose_words(names), strict=True))
    ]


def _draw_roc(view: _ScoreView, scored: Dataset, labels: Labels) -> Figure:
    own = view.choose(scored).with_features([scored.features[view.number]])
    points = roc_points(own)
    drawn = roc_curves({"this run": (points["efficiency"], points["rejection"])}, "this run", labels)
    area = f"area {area_under_roc(own):.4f}"
    found = f" of {', '.join(view.signals)} by the score{view.title}" if view.title else ""
    caption = f"ROC curve{found}, every event scored by a model that did not see it; {area}."
    return Figure(f"roc{view.ending}", drawn, caption, points)


def _draw_train_and_test(view: _ScoreView, run: RunFolder, labels: Labels) -> Figure:
    assert run.data is not None
    assert run.model is not None
    models, data = run.model.ensemble, view.choose(run.data)
    train, test = (fill_scores(data, models, seen=seen, number=view.number) for seen in (True, False))
    columns = {f"train_{name}": values for name, values in train.items()}
    columns |= {f"test_{name}": values for name, values in test.items()}
    found = check_over_training(data, models, n_permutations=PERMUTATIONS, number=view.number)
    tests = {one.role: one.p for one in found}
    caption = (
        f"Scores{view.title} of events that a model has seen and has not seen, all folds, as the share of unseen "
        "events below; p-values by permutation of folds."
    )
    title = f"rank of the score{view.title} (signal and background of equal sums)"
    return Figure(
        f"train-and-test{view.ending}", train_and_test(run.name, train, test, tests, title, labels), caption, columns
    )
