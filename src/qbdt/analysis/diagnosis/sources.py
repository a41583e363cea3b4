"""Each source in detail: its cost in σ_μ, the bins of the score it moves, and the features and regions it lives in.

The statistical error of a shift Δ_k knows that varied events are copies of nominal ones: what an event and its copies
add to a bin is summed before it is squared, so an event that a source does not touch adds no error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri

from qbdt.analysis.diagnosis.sensitivity import compute_template_sensitivity
from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role, Systematic
from qbdt.inference import FitSettings
from qbdt.inference.templates import TemplateSet

REGIONS = 8
"""Bins of a feature, of equal yield."""


@dataclass(frozen=True)
class FeatureEffect:
    """How one source moves one feature."""

    feature: str
    # Weighted standard deviation of Δ_k/b over regions of the feature, less what statistics make: 0 if the source
    # changes the yield only
    shape: float
    significance: float  # Of the change of shape, in standard deviations (from a χ² over the regions)
    edges: tuple[float, ...]  # Of the regions; the outer ones are open
    # shift, error: Δ_k/b in each region and its statistical error
    shift: tuple[float, ...]
    error: tuple[float, ...]

    @property
    def strongest(self) -> int:
        """Region whose shift differs most from the mean, by more than its error."""
        return int(np.argmax(np.abs(np.array(self.shift) - np.mean(self.shift)) - np.array(self.error)))

    @property
    def region(self) -> str:
        """The strongest region in words."""
        i, last = self.strongest, len(self.shift) - 1
        if i == 0:
            return f"{self.feature} < {self.edges[1]:.4g}"
        if i == last:
            return f"{self.feature} > {self.edges[i]:.4g}"
        return f"{self.edges[i]:.4g} < {self.feature} < {self.edges[i + 1]:.4g}"


@dataclass(frozen=True)
class SourceEffect:
    """One source."""

    source: str
    without: float  # σ_μ of the fit without it
    cost: float  # sqrt(σ_μ² − without²)
    total: float  # Δ_k/b over all events
    bins: tuple[float, ...]  # Δ_k/b in each bin of the fit; of the signal where it acts on signal only
    features: tuple[FeatureEffect, ...]  # What it does to each feature, strongest change of shape first


def describe_sources(dataset: Dataset, templates: TemplateSet, settings: FitSettings) -> tuple[SourceEffect, ...]:
    """Describe every source of a fit, the most costly first; templates are of scores of the same events."""
    full = compute_template_sensitivity(templates, settings.mc_stat).sigma_full
    effects = []
    for name in templates.sources:
        others = [other for other in templates.sources if other != name]
        without = compute_template_sensitivity(templates.with_sources(others), settings.mc_stat).sigma_full
        source = dataset.systematic(name)
        role = _role(dataset, source)
        features = [measure_feature(dataset, source, role, feature) for feature in dataset.features]
        features.sort(key=lambda effect: (-effect.shape, -effect.significance))
        bins, total = _bins(templates, name, role)
        cost = float(np.sqrt(max(full**2 - without**2, 0.0)))
        effects.append(SourceEffect(name, without, cost, total, bins, tuple(features)))
    return tuple(sorted(effects, key=lambda effect: -effect.cost))


def measure_feature(dataset: Dataset, source: Systematic, role: Role, feature: str) -> FeatureEffect:
    """Δ_k/b in regions of one feature, with errors and the significance of its change of shape."""
    edges = _region_edges(dataset, role, feature)
    n_regions = edges.size - 1
    nominal = np.zeros(n_regions)
    for sample in dataset.of_role(role):
        nominal += np.bincount(_region(sample.events, feature, edges), sample.events.weight, n_regions)
    changes, yields = _by_event(dataset, source, role, feature, edges)
    mean = float(changes.sum() / nominal.sum())
    centred = changes - mean * yields
    shape, covariance = centred.sum(axis=0) - mean * (nominal - yields.sum(axis=0)), centred.T @ centred
    usable = nominal > 0
    b = np.where(usable, nominal, 1.0)
    spread = float(np.sum(shape**2 / b * usable) / b.sum())
    chance = float(np.sum(np.diag(covariance) / b * usable) / b.sum())
    return FeatureEffect(
        feature,
        float(np.sqrt(max(spread - chance, 0.0))),
        _significance(shape, covariance, spread),
        tuple(edges.tolist()),
        tuple((changes.sum(axis=0) / b).tolist()),
        tuple((np.sqrt(np.square(changes).sum(axis=0)) / b).tolist()),
    )


def _role(dataset: Dataset, source: Systematic) -> Role:
    """Return the background where the source acts on it, otherwise the signal."""
    roles = {dataset.sample(process).role for process in source.processes}
    return Role.BACKGROUND if Role.BACKGROUND in roles else Role.SIGNAL


def _bins(templates: TemplateSet, source: str, role: Role) -> tuple[tuple[float, ...], float]:
    nominal = templates.total(role)
    shift = np.sum([p.linear_shift(source) for p in templates.of_role(role)], axis=0)
    return tuple((shift / np.where(nominal > 0, nominal, 1.0)).tolist()), float(shift.sum() / nominal.sum())


def _region_edges(dataset: Dataset, role: Role, feature: str) -> Floats:
    values = np.concatenate([np.asarray(s.events.column(feature), dtype=float) for s in dataset.of_role(role)])
    known = values[np.isfinite(values)]
    if not known.size:
        return np.array([0.0, 1.0])
    inner = np.unique(np.quantile(known, np.linspace(0, 1, REGIONS + 1)[1:-1]))
    low, high = float(known.min()), float(known.max())
    return np.concatenate([[low], inner[(inner > low) & (inner < high)], [high if high > low else low + 1.0]])


def _region(events: Events, feature: str, edges: Floats) -> NDArray[np.intp]:
    """Region of every row; a missing value lies in the first."""
    values = np.nan_to_num(np.asarray(events.column(feature), dtype=float), nan=edges[0])
    return np.asarray(np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2))


def _by_event(dataset: Dataset, source: Systematic, role: Role, feature: str, edges: Floats) -> tuple[Floats, Floats]:
    """Change and nominal yield that each event of the processes acted on brings to each region, (event, region)."""
    changes, yields = [], []
    for process in source.processes:
        nominal = dataset.sample(process).events
        if dataset.sample(process).role is not role:
            continue
        rows = source.shift_terms(process, nominal)
        keys = np.concatenate([events.hash_identifiers() for _, events in rows])
        if not nominal.id_names or not nominal.identifiers_differ:
            keys = np.concatenate([np.arange(events.n_rows) for _, events in rows])  # copies by row number
        _, event = np.unique(keys, return_inverse=True)
        cell = event * (edges.size - 1) + np.concatenate([_region(events, feature, edges) for _, events in rows])
        size = (int(event.max(initial=-1)) + 1, edges.size - 1)
        signed = np.concatenate([factor * events.weight for factor, events in rows])
        own = np.concatenate(
            [events.weight if i == 0 else np.zeros(events.n_rows) for i, (_, events) in enumerate(rows)]
        )
        changes.append(np.bincount(cell, signed, size[0] * size[1]).reshape(size))
        yields.append(np.bincount(cell, own, size[0] * size[1]).reshape(size))
    return np.concatenate(changes), np.concatenate(yields)


def _significance(shape: Floats, covariance: Floats, spread: float) -> float:
    """Return the standard deviations that the χ² of a change of shape corresponds to."""
    if spread < 1e-16 or shape.size < 2:  # rounding of a source that scales everything alike
        return 0.0
    chi2 = float(shape @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ shape)
    z = -float(ndtri(chdtrc(shape.size - 1, chi2)))
    return z if np.isfinite(z) else float(np.sqrt(chi2))  # beyond 38 standard deviations probabilities underflow
