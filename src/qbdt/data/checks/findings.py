"""Faults of input files that can be seen in the events: wrong units, exchanged labels, mixed-up variations, copies.

Flows in: a `Dataset`. Flows out: `Finding`s, each one sentence that says what looks wrong and what to check. A finding
is a question to the user, never an error: the thresholds are set so that sound analyses give none.
docs/faults.md lists what is found, and what only the user can see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from qbdt.data.checks.distributions import typical_size
from qbdt.data.checks.varied_events import check_varied_events
from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.identity import hash_columns
from qbdt.data.sample import Role, Sample
from qbdt.tables import Table

UNIT_FACTOR = 30.0
"""Typical sizes of one feature in two processes that differ by more than this are no physics."""

BLOCKS = 64
"""Pieces of a sample, in the order of its files, that are compared with each other."""

LEAST_ROWS = 25
"""Rows of a piece, at least."""

REPEATED = 0.01
"""Share of rows that are copies of others, from which on it is worth a question."""

NEGATIVE = 0.02
"""Share of negative weights from which on they are worth a word: they cost 8 % of the effective events."""

SPIKE_ROWS = 500
SPIKE_ENTRIES = 0.02
SPIKE_SHARE = 0.05
"""A sample of at least so many rows with fewer effective entries than this share of them, and one weight with more than
this share of the sample: samples of several slices of a phase space have few effective entries, but no such weight."""

PLACEHOLDER = 0.005
"""Share of rows with one far-off value, from which on it may stand for a missing one."""


@dataclass(frozen=True)
class Finding:
    """Something that looks wrong."""

    check: str  # What was looked at: "units", "roles", "weights", "copies", "variation", "placeholder", "feature"
    where: str  # The sample, source or feature
    message: str  # What was found and what it may mean

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"

    def to_dict(self) -> dict[str, str]:
        """Return plain data."""
        return asdict(self)


def find_faults(dataset: Dataset) -> tuple[Finding, ...]:
    """Find probable faults of the input.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> gev, mev = rng.exponential(40, 500), 1000 * rng.exponential(40, 500)
    >>> signal = Sample("higgs", Role.SIGNAL, Events({"pt": gev}, np.full(500, 0.01)))
    >>> background = Sample("ttbar", Role.BACKGROUND, Events({"pt": mev}, np.full(500, 0.1)))
    >>> [found.check for found in find_faults(Dataset([signal, background]))]
    ['units']
    """
    with np.errstate(all="ignore"):  # of values near the largest double
        found = [finding for check in CHECKS for finding in check(dataset)]
        varied = [Finding("variation", where, message) for where, message in check_varied_events(dataset)]
    return (*found, *varied)


def make_findings_table(findings: tuple[Finding, ...]) -> Table:
    """Findings for people; no rows where there are none."""
    return Table("To be checked", ("where", "what"), tuple((found.where, found.message) for found in findings))


def _list_simulated(dataset: Dataset) -> list[Sample]:
    return [sample for sample in dataset.samples if sample.role is not Role.DATA]


def _check_roles(dataset: Dataset) -> Iterator[Finding]:
    signal, background = dataset.total(Role.SIGNAL), dataset.total(Role.BACKGROUND)
    if dataset.of_role(Role.SIGNAL) and dataset.of_role(Role.BACKGROUND) and signal > background:
        message = f"the expected signal ({signal:,.4g}) exceeds the expected background ({background:,.4g}): "
        message += "are the labels exchanged, or the weights not scaled to true yields?"
        yield Finding("roles", "signal", message)


def _check_weights(dataset: Dataset) -> Iterator[Finding]:
    """Weights that are all 1, most often because cross section and luminosity are missing, and many negative ones."""
    plain = [s.name for s in _list_simulated(dataset) if s.events.n_rows > 1 and np.all(np.abs(s.events.weight) == 1.0)]
    for name in plain:
        message = "all weights are 1: is the yield really the number of simulated rows? (cross section, luminosity)"
        yield Finding("weights", name, message)
    for sample in _list_simulated(dataset):
        share = float(np.mean(sample.events.weight < 0)) if sample.events.n_rows else 0.0
        if share > NEGATIVE:
            message = f"{share:.0%} of the weights are negative: {sample.events.n_rows:,} events count as "
            message += f"{sample.events.effective_entries:,.0f} in templates; training smooths their weights"
            yield Finding("weights", sample.name, message)
        yield from _check_spikes(sample)


def _check_spikes(sample: Sample) -> Iterator[Finding]:
    """Few events that hold most of a sample: what they look like decides a training and a template."""
    weight, n_rows = np.abs(sample.events.weight), sample.events.n_rows
    if n_rows < SPIKE_ROWS or not weight.any():
        return
    entries = float(weight.sum() ** 2 / np.square(weight).sum())
    largest = float(weight.max() / weight.sum())
    if entries < SPIKE_ENTRIES * n_rows and largest > SPIKE_SHARE:
        message = (
            f"{n_rows:,} rows count as {entries:,.0f} (effective entries): the largest weight, {weight.max():.3g}, "
        )
        message += f"is {largest:.0%} of the whole sample, the median {np.median(weight):.3g}; is it right?"
        yield Finding("weights", sample.name, message)


def _check_recorded(dataset: Dataset) -> Iterator[Finding]:
    recorded = dataset.total(Role.DATA)
    expected = dataset.total(Role.SIGNAL) + dataset.total(Role.BACKGROUND)
    if recorded > 0 and expected > 0 and not 0.5 < recorded / expected < 2.0:
        message = f"{recorded:,.4g} events are recorded and {expected:,.4g} expected: are weights scaled to luminosity?"
        yield Finding("weights", "data", message)


def _check_features(dataset: Dataset) -> Iterator[Finding]:
    """Features that say nothing, and features that are missing throughout one sample."""
    for name in dataset.features:
        ranges = []
        for sample in dataset.samples:
            values = sample.events.column(name)
            known = values[np.isfinite(values)]
            if known.size:
                ranges.append((float(known.min()), float(known.max())))
            elif sample.events.n_rows:
                yield Finding("feature", name, f"missing in all {sample.events.n_rows:,} events of {sample.name}")
        low, high = min((r[0] for r in ranges), default=0.0), max((r[1] for r in ranges), default=0.0)
        if ranges and low == high:
            yield Finding("feature", name, f"always {low:g}: it cannot help; is it filled?")


def _check_placeholders(dataset: Dataset) -> Iterator[Finding]:
    """One value, far outside of all others, in many rows: −999 that was not declared."""
    for name in dataset.features:
        for sample in dataset.samples:
            values = sample.events.column(name)
            value = _far_off(values[np.isfinite(values)])
            if value is not None:
                share = float(np.mean(values == value))
                message = f"{share:.1%} of {sample.name} have the value {value:g}, far from all others: "
                yield Finding("placeholder", name, message + "if it means missing, declare it under `missing`")
                break


def _far_off(values: NDArray[np.floating]) -> float | None:
    for value in (values.min(initial=np.inf), values.max(initial=-np.inf)):
        others = values[values != value]
        here = values.size - others.size
        if not others.size or here < max(PLACEHOLDER * values.size, 5) or here > 0.95 * values.size:
            continue
        low, high = float(others.min()), float(others.max())
        gap = low - float(value) if value < low else float(value) - high
        if gap > 3 * (high - low) and high > low:
            return float(value)
    return None


def _check_units(dataset: Dataset) -> Iterator[Finding]:
    """Processes in which a feature is larger or smaller by a factor that no physics gives."""
    for name in dataset.features:
        sizes = {s.name: typical_size(s.events.column(name)) for s in dataset.samples}
        sizes = {process: size for process, size in sizes.items() if np.isfinite(size)}
        if len(sizes) < 2:
            continue
        middle = float(np.exp(np.median(np.log(list(sizes.values())))))
        odd = [p for p, size in sizes.items() if _apart(size, middle)] if len(sizes) > 2 else []
        if not odd and _apart(max(sizes.values()), min(sizes.values())):
            odd = [max(sizes, key=lambda process: sizes[process])]
        for process in odd:
            others = {other: size for other, size in sizes.items() if other not in odd} or sizes
            other = min(others, key=lambda p: abs(np.log(others[p] / middle)))
            message = f"typical size {sizes[process]:.3g} in {process}, {sizes[other]:.3g} in {other}: another unit?"
            yield Finding("units", name, message)


def _check_pieces(dataset: Dataset) -> Iterator[Finding]:
    """Stretches of rows in one sample whose values are larger or smaller by a large factor: one file of several."""
    for sample in dataset.samples:
        n_pieces = min(BLOCKS, sample.events.n_rows // LEAST_ROWS)
        if n_pieces < 2:
            continue
        cuts = np.linspace(0, sample.events.n_rows, n_pieces + 1).astype(int)
        for name in dataset.features:
            column = sample.events.column(name)
            sizes = np.array([typical_size(column[a:b]) for a, b in pairwise(cuts)])
            middle = float(np.nanmedian(sizes)) if np.isfinite(sizes).any() else float("nan")
            odd = np.flatnonzero([_apart(size, middle) for size in sizes])
            if odd.size:
                rows = f"rows {cuts[odd[0]]:,} to {cuts[odd[-1] + 1]:,} of {sample.name}"
                message = f"{rows} have a typical size of {np.median(sizes[odd]):.3g}, the others {middle:.3g}: "
                yield Finding("units", name, message + "another unit in one of the files?")


def _apart(size: float, other: float) -> bool:
    return bool(abs(np.log(size / other)) > np.log(UNIT_FACTOR)) if size > 0 and other > 0 else False


def _check_copies(dataset: Dataset) -> Iterator[Finding]:
    """Rows that occur twice, in one sample or in two."""
    keys = {sample.name: _hash_rows(sample.events) for sample in _list_simulated(dataset)}
    kept = {name: found for name, found in keys.items() if found is not None}
    for name, rows in kept.items():
        n_copies = rows.size - np.unique(rows).size
        if n_copies > REPEATED * rows.size:
            message = f"{n_copies:,} of {rows.size:,} rows are copies of others: is a file there twice?"
            yield Finding("copies", name, message)
    for first, second in combinations(kept, 2):
        n_common = int(np.isin(kept[first], kept[second]).sum())
        if n_common > REPEATED * min(kept[first].size, kept[second].size):
            message = f"{n_common:,} rows are also in {second}: is one file used for two processes?"
            yield Finding("copies", first, message)


def _hash_rows(events: Events) -> NDArray[np.uint64] | None:
    """Hash of all features of each row; None where they are too coarse to tell a copy from a coincidence."""
    columns = [np.asarray(events.column(name), dtype=np.float64) for name in events.features]
    fine = [c for c in columns if c.size and np.unique(c[:10_000]).size > 0.2 * min(c.size, 10_000)]
    if len(fine) < 2 or events.n_rows < 2 * LEAST_ROWS:
        return None
    return hash_columns([np.where(c == 0, 0.0, c).view(np.int64) for c in columns])


CHECKS = (
    _check_roles,
    _check_weights,
    _check_recorded,
    _check_features,
    _check_placeholders,
    _check_units,
    _check_pieces,
    _check_copies,
)
