"""From a scored dataset to a `TemplateSet`: nominal events and every variation through the same binning.

A scored dataset is a `Dataset` whose one feature is the score. Under- and overflow go to the first and last bin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, FoldRule, Kind, Role, Sample, Systematic, Variation
from qbdt.errors import DataError, FitError
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet

__all__ = ["Binning", "collect_scores", "fill", "read_score"]


@dataclass(frozen=True)
class Binning:
    """Bin edges of the score: one set for all events, or one per fold.

    Edges that are chosen by looking at events must not be applied to the same events. With folds, the edges for the
    events of one fold are chosen on the other folds; bins of the same number are then added, and the variable that is
    histogrammed is the number of the bin.

    Attributes
    ----------
    edges
        One ascending tuple of n + 1 edges, or one for each fold in turn.
    folds
        The rule by which events find their edges; None where there is one set.
    """

    edges: tuple[tuple[float, ...], ...]
    folds: FoldRule | None = None

    def __post_init__(self) -> None:
        for edges in self.edges:
            if len(edges) < 2 or not np.all(np.diff(edges) > 0):
                raise FitError(f"bin edges {list(edges)}: at least two ascending numbers are needed")
        if len({len(edges) for edges in self.edges}) > 1:
            raise FitError("every fold needs the same number of bins")
        if (self.folds.k if self.folds else 1) != len(self.edges):
            raise FitError(f"{len(self.edges)} sets of edges: one, or one for each fold, is needed")

    @classmethod
    def of(cls, edges: ArrayLike) -> Binning:
        """Make a binning with one set of edges for all events."""
        return cls((tuple(float(edge) for edge in np.asarray(edges, dtype=float)),))

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges[0]) - 1

    @property
    def axis(self) -> Floats:
        """Edges to draw: those of the score, or bin numbers where each fold has its own."""
        return np.array(self.edges[0]) if self.folds is None else np.arange(self.n_bins + 1, dtype=float)

    def index(self, events: Events, what: str) -> NDArray[np.intp]:
        """Bin number of each event; `what` names the events in messages."""
        score = read_score(events, what)
        if self.folds is None:
            return _bin_of(score, self.edges[0])
        fold = self.folds.assign(events)
        numbers = np.empty(len(score), dtype=np.intp)
        for number, edges in enumerate(self.edges):
            numbers[fold == number] = _bin_of(score[fold == number], edges)
        return numbers


def read_score(events: Events, what: str) -> Floats:
    """Score column of events, checked."""
    if len(events.features) != 1:
        names = ", ".join(events.features)
        raise DataError(f"{what} has the columns {names}: a scored dataset has one, use Dataset.with_features")
    score = np.asarray(events.column(events.features[0]), dtype=np.float64)
    bad = int((~np.isfinite(score)).sum())
    if bad:
        raise DataError(f"{what}: the score of {bad} of {len(score)} events is NaN or infinite")
    return score


def collect_scores(scored: Dataset, role: Role) -> tuple[Floats, Floats]:
    """Nominal scores and weights of all events of one role."""
    samples = scored.of_role(role)
    if not any(sample.events.n_rows for sample in samples):
        raise FitError(f"no {role} events: more events, or fewer folds, are needed")
    scores = np.concatenate([read_score(sample.events, f"sample {sample.name}") for sample in samples])
    return scores, np.concatenate([sample.events.weight for sample in samples])


def fill(scored: Dataset, binning: Binning, variable: str = "score") -> TemplateSet:
    """Histogram a scored dataset: nominal, Σw² and the shifts of all sources.

    A one-sided source is reflected: down = 2 · nominal − up. Norm sources keep their factors, so that they stay
    normalisations in the workspace.

    Parameters
    ----------
    scored
        Dataset with one feature, the score; larger is more signal-like.
    binning
        Edges.
    variable
        Title of the axis.

    Examples
    --------
    >>> from qbdt import Dataset, Events, Sample, Systematic
    >>> signal = Sample("higgs", "signal", Events({"score": [0.9, 0.7]}, [1.0, 1.0]))
    >>> background = Sample("ttbar", "background", Events({"score": [0.1, 0.2, 0.8]}, [10.0, 10.0, 5.0]))
    >>> scored = Dataset([signal, background], [Systematic.norm("xs", 0.1, processes=["ttbar"])])
    >>> templates = fill(scored, Binning.of([0, 0.5, 1]))
    >>> templates.background, templates.process("ttbar").shifts["xs"].up
    (array([20.,  5.]), array([22. ,  5.5]))
    """
    processes = tuple(_process(scored, sample, binning) for sample in scored.samples if sample.role is not Role.DATA)
    recorded = scored.of_role(Role.DATA)
    data = None
    if recorded:
        data = np.sum([_histogram(s.events, binning, f"sample {s.name}")[0] for s in recorded], axis=0)
    return TemplateSet(variable, binning.axis, processes, tuple(s.name for s in scored.systematics), data)


def _process(scored: Dataset, sample: Sample, binning: Binning) -> ProcessTemplates:
    nominal, variance = _histogram(sample.events, binning, f"sample {sample.name}")
    shifts = {
        source.name: _shift(source, sample, nominal, binning)
        for source in scored.systematics
        if sample.name in source.processes
    }
    return ProcessTemplates(sample.name, sample.role, nominal, variance, shifts)


def _shift(source: Systematic, sample: Sample, nominal: Floats, binning: Binning) -> Shift:
    sides: dict[str, Floats] = {}
    changes = {direction: effect[sample.name] for direction, effect in source.directions}
    for direction, change in changes.items():
        what = f"systematic {source.name}, {direction} variation of {sample.name}"
        sides[direction] = _histogram(change.apply(sample.events), binning, what)[0]
    if "down" not in sides:
        return Shift(sides["up"], 2 * nominal - sides["up"], mirrored=True)
    return Shift(sides["up"], sides["down"], factors=_factors(source, changes))


def _factors(source: Systematic, changes: Mapping[str, Variation]) -> tuple[float, float] | None:
    """Return the factors of a source that scales the whole process; None for anything that can change a shape."""
    if source.kind is not Kind.NORM:
        return None
    down, up = changes["down"].relative_size, changes["up"].relative_size
    return None if down is None or up is None else (1.0 + down, 1.0 + up)


def _histogram(events: Events, binning: Binning, what: str) -> tuple[Floats, Floats]:
    index = binning.index(events, what)
    values = np.bincount(index, weights=events.weight, minlength=binning.n_bins)
    squares = np.bincount(index, weights=np.square(events.weight), minlength=binning.n_bins)
    return values.astype(np.float64), squares.astype(np.float64)


def _bin_of(score: Floats, edges: tuple[float, ...]) -> NDArray[np.intp]:
    return np.clip(np.searchsorted(np.array(edges), score, side="right") - 1, 0, len(edges) - 2)
