"""The methods that are compared: name, column of the paper that each stands for, and how it is trained.

To add one, add a line to `METHODS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events
from qbdt.errors import ConfigError
from qbdt.studies.paper.measurement import Constant
from qbdt.studies.paper.numbers import SOURCES
from qbdt.studies.trainers import (
    EventTable,
    Method,
    Parameters,
    Trained,
    fit_adaboost,
    fit_hist_gradient_boosting,
    fit_lightgbm,
    fit_on_table,
    fit_qbdt,
    fit_with_early_stopping,
    fit_xgboost,
    make_event_table,
)

PROFILED = "QBDT, profiled"
"""Name of the method that goes beyond the paper."""

LEARNING_RATE, DEPTH = 0.1, 3
"""The paper's settings of GradBDT and AdaBDT, with 1000 trees."""

CUTS = 20
"""TMVA's default number of cuts per variable, equally spaced between the smallest and the largest value."""

CANDIDATES = ((0.1, 4), (0.05, 8), (0.05, 16))
"""Learning rate and leaves that are tried for LightGBM and XGBoost; early stopping finds the number of trees."""

BINNING = {
    "pt_lep": (60, 20, 80),
    "pt_tau": (60, 20, 80),
    "pt_pho": (70, 10, 80),
    "pt_met": (60, 0, 60),
    "m_lephad": (60, 10, 120),
    "m_lephadpho": (75, 50, 150),
    "m_lephadmet": (80, 20, 180),
    "m_lephadphomet": (65, 70, 200),
}
"""Equal-width bins of the published program: number, low and high edge in GeV."""


@dataclass(frozen=True)
class PaperMethod(Method):
    """A method of the study."""

    about: str = ""  # Library and settings, for the report
    trees: int = 1  # Number of trees for each tree of QBDT0: 10 for the paper's GradBDT, 2 for QBDT7
    stands_for: str | None = None  # Column of the paper's tables that it reproduces
    # Constant of tanh(c·y) on the published split, or "scan"; None for scores that are binned as they are, in
    # optimised bins
    c: Constant = "scan"
    in_halves: bool = True  # Whether it takes part in the study over random halves

    def train(self, data: Dataset, n_trees: int, seed: int) -> Trained:
        """Train with its share of trees; `n_trees` is the number of QBDT0."""
        return self.fit(data, {"n_trees": self.trees * n_trees}, seed)

    @property
    def key(self) -> str:
        """Name of its files."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.name.lower()).replace("--", "-")


def _fit_gradbdt(table: EventTable, settings: Parameters, seed: int) -> Trained:
    options = {"max_iter": settings["n_trees"], "learning_rate": LEARNING_RATE, "max_depth": DEPTH}
    return fit_hist_gradient_boosting(table, options, seed)


def _fit_gradbdt_with_few_cuts(data: Dataset, settings: Parameters, seed: int) -> Trained:
    """Train GradBDT on the number of the cell between `CUTS` equally spaced cuts instead of on the value."""
    table = make_event_table(data)
    edges = [np.linspace(column.min(), column.max(), CUTS + 2)[1:-1] for column in table.X.T]

    def find_cells(values: Floats) -> Floats:
        columns = [np.searchsorted(cuts, column, side="right") for cuts, column in zip(edges, values.T, strict=True)]
        return np.stack(columns, axis=1).astype(np.float64)

    def score(events: Events) -> Floats:
        cells = find_cells(np.asarray(events.matrix(), dtype=np.float64))
        return trained.score(Events(dict(zip(events.features, cells.T, strict=True)), events.weight))

    trained = _fit_gradbdt(table._replace(X=find_cells(table.X)), settings, seed)
    return Trained(score)


def _fit_adabdt(table: EventTable, settings: Parameters, seed: int) -> Trained:
    options = {**settings, "learning_rate": LEARNING_RATE, "max_depth": DEPTH, "min_samples_leaf": 1}
    trained = fit_adaboost(table, options, seed)
    # The score lies in (−1, 1); ten times that is the scale on which the paper's scan of c in tanh(c·y) works.
    return Trained(lambda events: 10.0 * trained.score(events))


def _fit_tuned_lightgbm(table: EventTable, settings: Parameters, seed: int) -> Trained:
    candidates = [{**settings, "learning_rate": rate, "num_leaves": leaves} for rate, leaves in CANDIDATES]
    return fit_with_early_stopping(fit_lightgbm, table, candidates, "n_trees", seed)


def _fit_tuned_xgboost(table: EventTable, settings: Parameters, seed: int) -> Trained:
    candidates = [
        {
            "n_estimators": settings["n_trees"],
            "learning_rate": rate,
            "max_leaves": leaves,
            "max_depth": 0,
            "grow_policy": "lossguide",
        }
        for rate, leaves in CANDIDATES
    ]
    return fit_with_early_stopping(fit_xgboost, table, candidates, "n_estimators", seed)


def _fit_paper(data: Dataset, settings: Parameters, seed: int, *, n_sources: int, growth: str) -> Trained:
    """Train QBDTX with the first `n_sources` sources, in the published program's bins."""
    known = [name for name in SOURCES if name in {source.name for source in data.systematics}]
    options = {**settings, "method": "paper", "n_leaves": 7, "binning": BINNING, "growth": growth}
    return fit_qbdt(data.with_systematics(known[:n_sources]), options, seed)


def _make_paper_method(n_sources: int, growth: str) -> PaperMethod:
    published = growth == "published"
    return PaperMethod(
        f"QBDT{n_sources}" if published else f"QBDT{n_sources}, 7 leaves",
        partial(_fit_paper, n_sources=n_sources, growth=growth),
        f"qbdt, {n_sources} sources in training, 7 leaves, growth rule {growth!r}",
        trees=2 if n_sources == 7 else 1,
        stands_for=f"QBDT{n_sources}" if published else None,
        c=0.25 if published else "scan",
    )


METHODS: tuple[PaperMethod, ...] = (
    PaperMethod(
        "GradBDT",
        fit_on_table(_fit_gradbdt),
        "scikit-learn HistGradientBoostingClassifier, learning rate 0.1, depth 3",
        10,
        "GradBDT",
        package="scikit-learn",
    ),
    PaperMethod(
        "GradBDT, 20 cuts",
        _fit_gradbdt_with_few_cuts,
        "the same, each variable cut at 20 equally spaced values (TMVA's nCuts)",
        10,
        package="scikit-learn",
    ),
    PaperMethod(
        "AdaBDT",
        fit_on_table(_fit_adabdt),
        "scikit-learn AdaBoostClassifier, learning rate 0.1, depth 3",
        10,
        in_halves=False,
        package="scikit-learn",
    ),
    PaperMethod(
        "LightGBM",
        fit_on_table(_fit_tuned_lightgbm),
        "LightGBM, tuned by early stopping on half of the training events",
        10,
        package="lightgbm",
    ),
    PaperMethod(
        "XGBoost",
        fit_on_table(_fit_tuned_xgboost),
        "XGBoost, tuned by early stopping on half of the training events",
        10,
        package="xgboost",
    ),
    PaperMethod(
        PROFILED,
        lambda data, settings, seed: fit_qbdt(data, {**settings, "method": "profile"}, seed),
        "qbdt, profiled method with all sources at its defaults; its own optimised bins",
        trees=5,
        c=None,
    ),
    *(_make_paper_method(n, "published") for n in (0, 1, 3, 7)),
    *(_make_paper_method(n, "leaves") for n in (0, 1, 3, 7)),
)


def get_method(name: str) -> PaperMethod:
    """Return one method."""
    for method in METHODS:
        if method.name == name:
            return method
    raise ConfigError(f"no method {name}; there are: {', '.join(m.name for m in METHODS)}")
