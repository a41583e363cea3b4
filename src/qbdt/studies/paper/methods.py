"""The methods that are compared: a name, what it stands for in the paper, and how it is trained.

To add one, add a line to `METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

from qbdt.data import Dataset
from qbdt.errors import ConfigError
from qbdt.studies.paper.measures import Constant
from qbdt.studies.paper.numbers import SOURCES
from qbdt.studies.peers import Scorer, adaptive, gradient, lightgbm, with_few_cuts, xgboost
from qbdt.training import Settings, TrainedModel, train

__all__ = ["BINNING", "METHODS", "PROFILED", "Method", "Trained", "named"]

PROFILED = "QBDT, profiled"
"""Name of the method that goes beyond the paper."""

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
class Trained:
    """A trained method: what gives scores, and the QBDT training where it is one."""

    score: Scorer
    training: TrainedModel | None = None


@dataclass(frozen=True)
class Method:
    """One way to train.

    Attributes
    ----------
    name
        As tables print it.
    about
        Library and settings, for the report.
    fit
        Trains on a dataset: (dataset, trees, seed) to `Trained`.
    trees
        Number of trees for each tree of QBDT0: 10 for the paper's GradBDT, 2 for QBDT7.
    stands_for
        Column of the paper's tables that it reproduces.
    c
        Constant of tanh(c·y) on the published split, or "scan"; None for scores that are binned as they are, in
        optimised bins.
    in_halves
        Whether it takes part in the study over random halves.
    needs
        Optional package that it needs.
    """

    name: str
    about: str
    fit: Callable[[Dataset, int, int], Trained] = field(repr=False)
    trees: int = 1
    stands_for: str | None = None
    c: Constant = "scan"
    in_halves: bool = True
    needs: str | None = None

    @property
    def available(self) -> bool:
        """Whether the package that it needs is installed."""
        return self.needs is None or find_spec(self.needs) is not None

    @property
    def key(self) -> str:
        """Name of its files."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.name.lower()).replace("--", "-")


def _library(fit: Callable[[Dataset, int, int], Scorer]) -> Callable[[Dataset, int, int], Trained]:
    return lambda data, n_trees, seed: Trained(fit(data, n_trees, seed))


def _qbdt(data: Dataset, n_trees: int, seed: int, *, n_sources: int, **options: Any) -> Trained:
    known = [name for name in SOURCES if name in {source.name for source in data.systematics}]
    settings = Settings(n_trees=n_trees, n_leaves=7, binning=BINNING, random_state=seed, **options)
    training = train(data.with_systematics(known[:n_sources]), settings, n_threads=1)
    return Trained(lambda events: training.ensemble.score(events, 1), training)


def _profiled(data: Dataset, n_trees: int, seed: int) -> Trained:
    settings = Settings(method="profile", n_trees=n_trees, random_state=seed)
    training = train(data, settings, n_threads=1)
    return Trained(lambda events: training.ensemble.score(events, 1), training)


def _paper(n_sources: int, growth: str) -> Method:
    published = growth == "published"
    about = f"qbdt, {n_sources} sources in training, 7 leaves, growth rule {growth!r}"
    return Method(
        f"QBDT{n_sources}" if published else f"QBDT{n_sources}, 7 leaves",
        about,
        partial(_qbdt, n_sources=n_sources, growth=growth),
        trees=2 if n_sources == 7 else 1,
        stands_for=f"QBDT{n_sources}" if published else None,
        c=0.25 if published else "scan",
    )


METHODS: tuple[Method, ...] = (
    Method(
        "GradBDT",
        "scikit-learn HistGradientBoostingClassifier, learning rate 0.1, depth 3",
        _library(gradient),
        10,
        "GradBDT",
    ),
    Method(
        "GradBDT, 20 cuts",
        "the same, each variable cut at 20 equally spaced places (TMVA's nCuts)",
        _library(with_few_cuts),
        10,
    ),
    Method(
        "AdaBDT", "scikit-learn AdaBoostClassifier, learning rate 0.1, depth 3", _library(adaptive), 10, in_halves=False
    ),
    Method(
        "LightGBM",
        "LightGBM, tuned by early stopping on half of the training events",
        _library(lightgbm),
        10,
        needs="lightgbm",
    ),
    Method(
        "XGBoost",
        "XGBoost, tuned by early stopping on half of the training events",
        _library(xgboost),
        10,
        needs="xgboost",
    ),
    Method(
        PROFILED,
        "qbdt, profiled method with all sources at its defaults; its own optimised bins",
        _profiled,
        trees=5,
        c=None,
    ),
    *(_paper(n, "published") for n in (0, 1, 3, 7)),
    *(_paper(n, "leaves") for n in (0, 1, 3, 7)),
)


def named(name: str) -> Method:
    """Return one method."""
    for method in METHODS:
        if method.name == name:
            return method
    raise ConfigError(f"no method {name}; there are: {', '.join(m.name for m in METHODS)}")
