"""The expectation of a workspace and its derivatives by formula, for many points at once.

pyhf computes the expected events of one point and no derivatives. Here both come from formulas, so that scans, limits
and toys, which take thousands of fits, are quick. The tests hold it equal to pyhf. An *entry* is one bin of one
sample; the expected events of an entry are

    (nominal + Σ_k δ_k(θ_k)) × Π_j f_j(θ_j) × Π γ,

with δ of histosys (code 4p, or piecewise linear), f of normsys (code 4) and normfactor, and γ of staterror and
shapesys. The entries of a bin are added up. A source that is a parameter of interest, which is no uncertainty, changes
both by the parabola through its values down, nominal and up, also beyond ±1: with that a mass has no kink at 0, and a
coefficient whose square counts is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.errors import FitError

Index = NDArray[np.intp]

ASYMMETRIC = 0.05
"""Difference of the effects up and down, of their sum, above which a source is asymmetric."""


def list_pois(spec: Mapping[str, Any]) -> frozenset[str]:
    """Names of the parameters of interest of all measurements of a workspace."""
    return frozenset(one["config"]["poi"] for one in spec["measurements"])


@dataclass(frozen=True, eq=False)
class _Term:
    """One parameter on some entries: values and derivatives of δ or f at given parameter values, shape (points, n)."""

    parameter: int
    entries: Index
    evaluate: Callable[[Floats], tuple[Floats, Floats]]


class ExpectedEvents:
    """Expected events per bin of a workspace, and their derivatives.

    Parameters
    ----------
    spec
        pyhf workspace with the modifiers that `describe_measurement` writes.
    channels
        Names of the channels in the order of the bins.
    first_parameter
        Number of the first parameter of each modifier among all parameters, by name.
    linear
        Interpolate shapes piecewise linearly instead of with code 4p.

    Attributes
    ----------
    asymmetric
        Numbers of the parameters whose effects up and down differ.
    """

    def __init__(
        self, spec: Mapping[str, Any], channels: Sequence[str], first_parameter: Mapping[str, int], linear: bool = False
    ) -> None:
        self._first, self._linear, self._measured = first_parameter, linear, list_pois(spec)
        by_name = {channel["name"]: channel for channel in spec["channels"]}
        self.samples = tuple(dict.fromkeys(s["name"] for name in channels for s in by_name[name]["samples"]))
        self._base: Floats = np.zeros(0)
        self._shifts: list[_Term] = []
        self._factors: list[_Term] = []
        self._scales: list[tuple[Index, Index]] = []
        self.asymmetric: set[int] = set()
        bins, owners, nominal = [], [], []
        n_bins = n_entries = 0
        for name in channels:
            for sample in by_name[name]["samples"]:
                contents = np.asarray(sample["data"], dtype=np.float64)
                entries = np.arange(n_entries, n_entries + contents.size)
                for modifier in sample["modifiers"]:
                    self._add(modifier, contents, entries)
                bins.append(n_bins + np.arange(contents.size))
                owners.append(np.full(contents.size, self.samples.index(sample["name"])))
                nominal.append(contents)
                n_entries += contents.size
            n_bins += len(by_name[name]["samples"][0]["data"])
        self._base, self._bins = np.concatenate(nominal), np.concatenate(bins)
        self._owners, self.n_bins = np.concatenate(owners), n_bins
        self._order = np.argsort(self._bins, kind="stable")
        self._starts = np.searchsorted(self._bins[self._order], np.arange(n_bins))

    def _add(self, modifier: Mapping[str, Any], nominal: Floats, entries: Index) -> None:
        kind, data = modifier["type"], modifier["data"]
        first, measured = self._first[modifier["name"]], modifier["name"] in self._measured
        match kind:
            case "normfactor":
                self._factors.append(_Term(first, entries, lambda x: (x[:, None], np.ones((len(x), 1)))))
            case "normsys":
                self._note_asymmetry(first, np.log(data["hi"]), -np.log(data["lo"]))
                low, high = float(data["lo"]), float(data["hi"])
                parabola = _interpolate_parabola(np.array([high - 1]), np.array([1 - low]))
                norm = _add_one(parabola) if measured else _interpolate_norm(low, high)
                self._factors.append(_Term(first, entries, norm))
            case "histosys":
                up, down = np.asarray(data["hi_data"]) - nominal, nominal - np.asarray(data["lo_data"])
                self._note_asymmetry(first, up, down)
                smooth = _interpolate_parabola if measured else _interpolate_smoothly
                interpolate = _interpolate_linearly if self._linear else smooth
                self._shifts.append(_Term(first, entries, interpolate(up, down)))
            case "staterror" | "shapesys":
                self._scales.append((first + np.arange(entries.size), entries))
            case _:
                raise FitError(f"modifier {modifier['name']} is a {kind}, which this package does not write")

    def _note_asymmetry(self, parameter: int, up: Floats, down: Floats) -> None:
        """Remember parameters with different effects up and down: their likelihood may have two minima."""
        if np.max(np.abs(up - down)) > ASYMMETRIC * np.max(np.abs(up) + np.abs(down)):
            self.asymmetric.add(parameter)

    def __call__(self, values: Floats) -> Floats:
        """Expected events, shape (points, bins), at points of shape (points, parameters)."""
        shape, scale, *_ = self._evaluate(values)
        return self._sum(shape * scale)

    def by_sample(self, values: Floats) -> dict[str, Floats]:
        """Expected events of each sample, zero in channels without it."""
        shape, scale, *_ = self._evaluate(values)
        return {name: self._sum(shape * scale * (self._owners == number)) for number, name in enumerate(self.samples)}

    def differentiate(self, values: Floats) -> tuple[Floats, Floats]:
        """Expected events, and their derivatives of shape (points, parameters, bins)."""
        jacobian = np.zeros((*values.shape, self.n_bins))
        shape, scale, shifts, factors = self._evaluate(values)
        for term, (_, slope) in zip(self._shifts, shifts, strict=True):
            self._scatter(jacobian, term.parameter, term.entries, slope * scale[:, term.entries])
        for number, term in enumerate(self._factors):
            rest = self._divide_out(number, values, scale, factors)
            self._scatter(jacobian, term.parameter, term.entries, factors[number][1] * rest * shape[:, term.entries])
        for parameters, entries in self._scales:
            slope = shape[:, entries] * scale[:, entries] / values[:, parameters]
            jacobian[:, parameters, self._bins[entries]] += slope
        return self._sum(shape * scale), jacobian

    def _evaluate(self, values: Floats) -> tuple[Floats, Floats, list[Any], list[Any]]:
        """Nominal with shifts, product of all factors, and the terms with their derivatives."""
        shape = np.repeat(self._base[None], len(values), axis=0)
        scale = np.ones_like(shape)
        shifts = [term.evaluate(values[:, term.parameter]) for term in self._shifts]
        factors = [term.evaluate(values[:, term.parameter]) for term in self._factors]
        for term, (change, _) in zip(self._shifts, shifts, strict=True):
            shape[:, term.entries] += change
        for term, (factor, _) in zip(self._factors, factors, strict=True):
            scale[:, term.entries] *= factor
        for parameters, entries in self._scales:
            scale[:, entries] *= values[:, parameters]
        return shape, scale, shifts, factors

    def _divide_out(
        self, number: int, values: Floats, scale: Floats, factors: Sequence[tuple[Floats, Floats]]
    ) -> Floats:
        """Product of all factors on the entries of one but its own, which may be 0: that of a strength at the null."""
        entries, own = self._factors[number].entries, factors[number][0]
        if np.all(own != 0):
            return scale[:, entries] / own
        rest = np.ones((len(values), entries.size))
        for other, term in enumerate(self._factors):
            if other != number and term.entries[0] == entries[0]:
                rest *= factors[other][0]
        for parameters, scaled in self._scales:
            if scaled[0] == entries[0]:
                rest *= values[:, parameters]
        return rest

    def _sum(self, entries: Floats) -> Floats:
        """Add up the entries of each bin."""
        return np.asarray(np.add.reduceat(entries[:, self._order], self._starts, axis=1))

    def _scatter(self, jacobian: Floats, parameter: int, entries: Index, slopes: Floats) -> None:
        jacobian[:, parameter, self._bins[entries]] += slopes


def _interpolate_linearly(up: Floats, down: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Code 0: θ times the change up for θ ≥ 0, down below."""

    def evaluate(theta: Floats) -> tuple[Floats, Floats]:
        slope = np.where((theta >= 0)[:, None], up, down)
        return theta[:, None] * slope, slope

    return evaluate


def _interpolate_parabola(up: Floats, down: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """The parabola through 0 and the changes up and down, everywhere."""
    slope, bend = (up + down) / 2, (up - down) / 2

    def evaluate(theta: Floats) -> tuple[Floats, Floats]:
        return np.outer(theta, slope) + np.outer(theta**2, bend), slope + np.outer(2 * theta, bend)

    return evaluate


def _add_one(change: Callable[[Floats], tuple[Floats, Floats]]) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Make a factor of a relative change."""

    def evaluate(theta: Floats) -> tuple[Floats, Floats]:
        values, slopes = change(theta)
        return 1 + values, slopes

    return evaluate


def _interpolate_smoothly(up: Floats, down: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Code 4p: linear beyond ±1, inside the polynomial that joins both ends with two continuous derivatives."""
    mean, half = (up + down) / 2, (up - down) / 16

    def evaluate(theta: Floats) -> tuple[Floats, Floats]:
        # δ = θ·mean + b(θ)·half with b = θ²(15 − 10θ² + 3θ⁴) inside, and 8|θ| beyond ±1, where δ = θ·up or θ·down.
        square = theta * theta
        inside = square < 1
        size = np.where(inside, square * (15 - square * (10 - 3 * square)), 8 * np.abs(theta))
        slope = np.where(inside, theta * (30 - square * (40 - 18 * square)), 8 * np.sign(theta))
        return np.outer(theta, mean) + np.outer(size, half), mean + np.outer(slope, half)

    return evaluate


def _interpolate_norm(low: float, high: float) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Code 4: exponential beyond ±1, inside the polynomial of degree 6 that joins both ends; 1 at θ = 0."""
    powers = np.arange(1, 7)
    ends = np.array([1.0, -1.0])[:, None]
    conditions = np.concatenate([ends**powers, powers * ends ** (powers - 1), powers * (powers - 1) * ends**powers])
    logs, values = np.log([high, low]), np.array([high, low])
    wanted = np.concatenate([values - 1, logs * values * [1, -1], logs**2 * values])
    coefficients = np.linalg.solve(conditions, wanted)

    def evaluate(theta: Floats) -> tuple[Floats, Floats]:
        x = theta[:, None]
        inner = 1 + (x**powers) @ coefficients
        inner_slope = (powers * x ** (powers - 1)) @ coefficients
        side = np.where(theta > 0, logs[0], -logs[1])
        outer = np.exp(side * theta)
        outside = np.abs(theta) >= 1
        found = np.where(outside, outer, inner), np.where(outside, side * outer, inner_slope)
        return found[0][:, None], found[1][:, None]

    return evaluate
