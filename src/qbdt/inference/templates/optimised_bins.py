"""Optimised binning: edges that keep as much profiled information as possible in few bins.

From up to 200 fine bins the neighbouring pair whose merging raises σ_μ² least is merged, until few enough are left.
Joining bins i and j takes from the Fisher matrix exactly one rank-one term,

    d dᵀ,  d = sqrt(v_i v_j / (v_i + v_j)) (a_i/v_i − a_j/v_j),

with a = (s, Δ₁ … Δ_K) and v the variance of a bin, so the Sherman–Morrison formula gives the new σ_μ² for every pair at
once. Bins below the floor on effective simulated background events are merged first.

The result depends on the events it was chosen on. Never fit those: choose on others, or fold by fold.

Fold by fold, bins of the same number are added up, so edges that differ from fold to fold lose what they were chosen
for. And they do: a small fluctuation decides which of two pairs is merged first. Where events have folds the edges are
therefore the mean of those of many bootstrap replicas, which hardly differ between folds.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, FoldRule, HashFolds, Role
from qbdt.errors import FitError
from qbdt.inference.templates.score_bins import ScoreBins, equal_yield_edges
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.template_set import TemplateSet
from qbdt.statistics import information_matrix

FINE_BINS = 200
"""Most bins to start from: half of them hold equal signal, half equal background."""

FINE_ENTRIES = 800.0
"""Simulated background events, of average weight, per fine bin.

With fewer, fluctuations of the shifts in so many bins pass for information about the nuisance parameters: the choice
follows the noise, and differs from fold to fold.
"""


REPLICAS = 20
"""Bootstrap replicas whose edges are averaged: their mean fluctuates by 1/√20, about a fifth, of the spread of one."""

BLOCKS = 20
"""Blocks of events that replicas are drawn of, by a hash of the columns that the folds are made of."""

SALT = 0x3C6E_F372_FE94_F82B
"""Of that hash, so that blocks cut across folds, and seed of the draws; fixed, so that edges are the same again."""


def optimise_edges(
    scored: Dataset, n_bins: int, min_entries: float = 10.0, scale: float = 1.0, others: Collection[str] = ()
) -> Floats:
    """Choose edges on a scored dataset, to be used on another one.

    Parameters
    ----------
    scored
        Events to choose on: those of the training folds, with scores of the model that scores the events to be fitted.
    n_bins, min_entries
        Largest number of bins, and smallest effective number of simulated background events in a bin of the fit.
    scale
        Events of the fit per event here, so that information and floor are those of the fit.
    others
        Backgrounds that do not count towards the floor: signals of other strengths.
    """
    half = _fine_bins(scored, n_bins) // 2
    edges = np.union1d(*(equal_yield_edges(scored, half, role) for role in (Role.SIGNAL, Role.BACKGROUND)))
    if scored.folds is not None:
        blocks = _in_blocks(scored, scored.folds, edges, scale, others)
        edges = _mean_edges(blocks, edges, n_bins, min_entries, bool(others))
    templates = _fill_scaled(scored, edges, scale)
    return templates.merged(merge_by_information(templates, n_bins, min_entries, others)).edges


def _fill_scaled(scored: Dataset, edges: Floats, scale: float) -> TemplateSet:
    """Templates of so many times the events."""
    templates = fill(scored, ScoreBins.of(edges))
    grown = [process.map(lambda values: scale * values) for process in templates.processes]
    return TemplateSet(templates.variable, templates.edges, tuple(grown), templates.sources)


def _in_blocks(scored: Dataset, folds: FoldRule, edges: Floats, scale: float, others: Collection[str]) -> Floats:
    """Contents of bins, shape (block, row, bin), in blocks that keep an event and its shifted copies together."""
    rule = HashFolds(BLOCKS, folds.columns, SALT)
    used = sorted({int(number) for sample in scored.samples for number in np.unique(rule.assign(sample.events))})
    blocks = [scored.select(lambda events, b=b: rule.assign(events) == b) for b in used]  # type: ignore[misc]
    return np.stack([_stack(_fill_scaled(block, edges, scale), others) for block in blocks])


def _mean_edges(blocks: Floats, edges: Floats, n_bins: int, min_entries: float, apart: bool) -> Floats:
    """Mean edges of replicas, each of as many blocks as there are, drawn with replacement.

    Replicas without signal have nothing to choose by. The mean is taken of positions among the fine bins, which do not
    depend on the scale of the score.
    """
    n_blocks, n_fine = len(blocks), blocks.shape[2]
    with_signal = blocks[:, 0].any(axis=1)
    random = np.random.default_rng(SALT)
    chosen = []
    for _ in range(REPLICAS):
        drawn = random.multinomial(n_blocks, np.full(n_blocks, 1.0 / n_blocks))
        if drawn[with_signal].any():
            starts = _merge(_Contents.of(np.tensordot(drawn, blocks, 1), apart), n_bins, min_entries)
            chosen.append([*starts, n_fine])
    steps = np.linspace(0.0, 1.0, int(np.median([len(places) for places in chosen])))
    places = np.mean([np.interp(steps, np.linspace(0.0, 1.0, len(own)), own) for own in chosen], axis=0)
    return np.unique(np.interp(places, np.arange(n_fine + 1), edges))


def _fine_bins(scored: Dataset, n_bins: int) -> int:
    """Bins to start from: at least twice as many as are wanted, and more where there are events for them."""
    weights = [sample.events.weight for sample in scored.of_role(Role.BACKGROUND)]
    squares = sum(float(weight @ weight) for weight in weights)
    entries = scored.total(Role.BACKGROUND) ** 2 / squares if squares > 0 else 0.0
    return int(min(FINE_BINS, max(2 * n_bins, entries / FINE_ENTRIES)))


def optimise_bins(scored: Dataset, n_bins: int, min_entries: float = 10.0, others: Collection[str] = ()) -> ScoreBins:
    """Edges for each fold of a scored dataset, chosen on the events of all other folds; as `optimise_edges`.

    The number of bins is that of the fold with the fewest.
    """
    if scored.folds is None:
        raise FitError(
            "binning optimised: edges must be chosen on other events than those fitted; "
            "give the dataset a fold rule, or other events to choose on"
        )
    while True:
        chosen = []
        for number in range(scored.folds.k):
            rest = scored.without_fold(number)
            scale = find_scale(scored, rest, f"binning optimised: the bins of fold {number}")
            chosen.append(optimise_edges(rest, n_bins, min_entries, scale, others))
        fewest = min(len(edges) for edges in chosen) - 1
        if all(len(edges) - 1 == fewest for edges in chosen):
            return ScoreBins(tuple(tuple(edges.tolist()) for edges in chosen), scored.folds)
        n_bins = fewest


def find_scale(scored: Dataset, chosen: Dataset, what: str) -> float:
    """Events of the fit for each one that `what`, bins or cells, are chosen on; refused where these have no background.

    Examples
    --------
    >>> from qbdt import Events, Sample
    >>> one, two = (Dataset([Sample("b", "background", Events({"x": np.ones(n)}, np.ones(n)))]) for n in (3, 6))
    >>> find_scale(two, one, "bins")
    2.0
    """
    known = chosen.total(Role.BACKGROUND)
    if known <= 0:
        raise FitError(
            f"{what} are chosen on other events than those fitted, and the background of these has a yield of "
            f"{known:.3g}: it must be positive. Give more simulated background events, or divide them into other "
            "folds; of one score, binning: equal_signal or uniform needs no other events"
        )
    return scored.total(Role.BACKGROUND) / known


def merge_by_information(
    templates: TemplateSet, n_bins: int, min_entries: float, others: Collection[str] = ()
) -> list[int]:
    """First fine bin of each group, after merging down to at most `n_bins` groups that meet the floor.

    Backgrounds in `others` do not count towards it.

    Examples
    --------
    >>> from qbdt.inference.templates.template_set import ProcessTemplates
    >>> s = ProcessTemplates("s", Role.SIGNAL, np.array([1.0, 1.0, 5.0, 5.0]), np.zeros(4))
    >>> b = ProcessTemplates("b", Role.BACKGROUND, np.full(4, 100.0), np.full(4, 1.0))
    >>> merge_by_information(TemplateSet("score", np.arange(5.0), (s, b)), 2, 10)
    [0, 2]
    """
    return _merge(_Contents.of(_stack(templates, others), bool(others)), n_bins, min_entries)


def _stack(templates: TemplateSet, others: Collection[str] = ()) -> Floats:
    """Signal, shift of each source at μ = 1, background and its Σw², shape (row, bin).

    With others, background and Σw² without these follow, on which the floor is then. All are sums over events, so
    merging bins adds columns, and adding blocks of events adds arrays.
    """
    model = templates.arrays()
    rows = [model.signal, *model.shifts, model.background, model.mc_variance]
    if others:
        counted = [process for process in templates.of_role(Role.BACKGROUND) if process.name not in others]
        none = np.zeros(templates.n_bins)
        rows += [sum((process.nominal for process in counted), none), sum((p.variance for p in counted), none)]
    return np.vstack(rows)


class _Contents(NamedTuple):
    """Contents of bins: `rows` as from `_stack`, and the variance v = s + b + Σw² of the expected events and of MC.

    `counted` are background and Σw² of what counts towards the floor.
    """

    rows: Floats
    variance: Floats
    counted: Floats

    @classmethod
    def of(cls, rows: Floats, apart: bool = False) -> _Contents:
        """Contents of rows, the last two of which may be those that count, apart from the model."""
        model = rows[:-2] if apart else rows
        return cls(model, model[0] + model[-2] + model[-1], rows[-2:])

    @property
    def signal_and_shifts(self) -> Floats:
        """The vectors a = (s, Δ₁ … Δ_K) of all bins."""
        return self.rows[:-2]

    def unusable(self, min_entries: float) -> NDArray[np.bool_]:
        """Whether a bin has no background, fewer than `min_entries` effective events, (Σw)²/Σw², or no variance."""
        background, squares = self.counted
        poor = (background <= 0) | (np.maximum(background, 0.0) ** 2 < min_entries * squares)
        return np.asarray(poor | (self.variance <= 0))

    def with_merged(self, pair: int) -> _Contents:
        """Return the contents with a bin and the next one joined."""
        merged = _Contents(*(np.delete(values, pair + 1, axis=-1) for values in self))
        for values, before in zip(merged, self, strict=True):
            values[..., pair] += before[..., pair + 1]
        return merged


def _merge(contents: _Contents, n_bins: int, min_entries: float) -> list[int]:
    """First fine bin of each group, see `merge_by_information`."""
    starts = list(range(contents.rows.shape[1]))
    while len(starts) > 1:
        poor = contents.unusable(min_entries)
        if len(starts) <= n_bins and not poor.any():
            break
        rise = _rise_of_variance(contents)
        if poor.any():  # bins below the floor go first, each with the neighbour that costs least
            rise = np.where(poor[:-1] | poor[1:], rise, np.inf)
        pair = int(np.argmin(rise))
        contents = contents.with_merged(pair)
        del starts[pair + 1]
    return starts


def _rise_of_variance(contents: _Contents) -> Floats:
    """Increase of σ_μ² for merging each bin with the next."""
    a = contents.signal_and_shifts
    variance = np.where(contents.variance > 0, contents.variance, 1e-9)  # unusable bins are merged whatever they cost
    covariance = np.linalg.inv(information_matrix(a[0], a[1:], variance))
    # Merging the bins i and j takes d dᵀ from the information matrix I, d as at the top of this module.
    left, right = variance[:-1], variance[1:]
    lost = np.sqrt(left * right / (left + right)) * (a[:, :-1] / left - a[:, 1:] / right)
    # Sherman–Morrison: (I − d dᵀ)⁻¹ = I⁻¹ + (I⁻¹d)(I⁻¹d)ᵀ / (1 − dᵀI⁻¹d), and σ_μ² is its first element. The columns of
    # `moved` are I⁻¹d for every pair.
    moved = covariance @ lost
    remaining = 1.0 - np.sum(lost * moved, axis=0)
    rise = moved[0] ** 2 / np.where(remaining > 0, remaining, 1.0)
    return np.where(remaining > 0, rise, np.inf)
