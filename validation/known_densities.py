"""Measurements whose densities are known: several strengths, a mass, partners, and a working point off the nominal.

Events are made on the spot. What an unbinned fit of the true densities would give, and what a fit in some cells gives,
are integrals over a fine grid: of the density and of its differences under the sources, as the varied samples have
them.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role, Sample, Systematic
from qbdt.inference.partners import read_partner
from qbdt.inference.workspace import write_workspace
from qbdt.training import Partner

SIZES = {"r": 0.4, "rate": 1.0}
NORM = 0.1
"""One standard deviation of the INFERNO background's position, rate and yield."""


class Densities(NamedTuple):
    """Expected events at points of a grid, each the density times the volume of a box.

    Attributes
    ----------
    points
        Features of the points, by name.
    rows
        Derivatives by every parameter, as (parameter, point); for sources half the difference of up and down.
    density
        Expected events.
    """

    points: Mapping[str, Floats]
    rows: Floats
    density: Floats

    def add_up(self, cells: NDArray[np.intp]) -> Densities:
        """Return the same in cells, given that of each point."""
        rows, density = (np.stack([np.bincount(cells, own) for own in np.atleast_2d(all_)]) for all_ in self[1:])
        return Densities({}, rows, density[0])


@dataclass(frozen=True, eq=False)
class Problem:
    """A measurement whose densities are known.

    Attributes
    ----------
    name
        What it is called.
    sample
        Draws n events of every process, with a seed.
    densities
        What is expected at the points of a grid.
    names
        Parameters: strengths first, then sources.
    settings
        What training is told of the measurement.
    cells, tolerance
        Most cells, and how far from the limit uncertainties may be.
    known
        Information that there is besides the events, constraints included.
    trained_on
        Draws the events of training, where they are others: those at the nominal point.
    """

    name: str
    sample: Callable[[int, int], Dataset]
    densities: Callable[[], Densities]
    names: tuple[str, ...]
    of_interest: tuple[str, ...]
    known: Floats
    settings: Mapping[str, Any] = field(default_factory=dict)
    cells: int = 20
    tolerance: float = 0.03
    trained_on: Callable[[int, int], Dataset] | None = None

    @property
    def places(self) -> list[int]:
        """Numbers of the parameters of interest."""
        return [self.names.index(name) for name in self.of_interest]

    def limit(self) -> Floats:
        """Covariance of the parameters of interest in an unbinned fit of the true densities."""
        return self._covariance(self.densities())

    def integrate(self, find_cells: Callable[[Events], NDArray[np.intp]]) -> Floats:
        """Covariance of the parameters of interest in cells, given the cell of events: integrals of the densities.

        It is that of a fit to infinitely many simulated events: there are no fluctuations that would pass for
        information about nuisance parameters.
        """
        densities = self.densities()
        cells = find_cells(Events(densities.points, np.ones(len(densities.density))))
        return self._covariance(densities.add_up(cells))

    def _covariance(self, densities: Densities) -> Floats:
        rows, density = densities.rows, densities.density
        usable = density > 0
        information = (rows[:, usable] / density[usable]) @ rows[:, usable].T + self.known
        return np.asarray(np.linalg.inv(information)[np.ix_(self.places, self.places)], dtype=np.float64)


def grid(*axes: tuple[float, float, int]) -> tuple[list[Floats], float]:
    """Points in the middle of equal boxes, flat, and the volume of a box."""
    steps = [(high - low) / n for low, high, n in axes]
    middles = [low + step * (np.arange(n) + 0.5) for (low, _, n), step in zip(axes, steps, strict=True)]
    return [each.ravel() for each in np.meshgrid(*middles, indexing="ij")], math.prod(steps)


def normal(x: Floats, mean: float, width: Floats | float) -> Floats:
    """Density of a normal distribution."""
    return np.asarray(np.exp(-0.5 * ((x - mean) / width) ** 2) / (width * math.sqrt(2 * math.pi)))


# Two signals over the background of INFERNO -----------------------------------------------------------------------

PLACES = {"first": (0.0, 0.0), "second": (1.5, 2.5)}
"""Centres of the signals in x0 and x1; both have unit width, and rate 2 in x2."""
YIELDS = {"first": 50.0, "second": 40.0, "background": 1000.0}


def draw_inferno(n: int, seed: int, signals: Sequence[str]) -> Dataset:
    """Signals, and a background whose position, rate and yield are uncertain."""
    rng = np.random.default_rng(seed)

    def events(x: Floats, process: str) -> Events:
        columns = {f"x{i}": x[:, i] for i in range(3)}
        return Events(columns, np.full(n, YIELDS[process] / n), {"event": np.arange(n)})

    samples = []
    for name in signals:
        x = np.column_stack([rng.normal(PLACES[name], 1.0, (n, 2)), rng.exponential(0.5, n)])
        samples.append(Sample(name, Role.SIGNAL, events(x, name)))
    b = np.column_stack([rng.normal([2.0, 0.0], np.sqrt([5.0, 9.0]), (n, 2)), rng.exponential(1 / 3, n)])
    samples.append(Sample("background", Role.BACKGROUND, events(b, "background")))

    def moved(r: float, rate: float) -> dict[str, Events]:
        return {"background": events(np.column_stack([b[:, 0] + r, b[:, 1], b[:, 2] * 3 / (3 + rate)]), "background")}

    sources = [
        Systematic.shape("r", moved(SIZES["r"], 0.0), moved(-SIZES["r"], 0.0)),
        Systematic.shape("rate", moved(0.0, SIZES["rate"]), moved(0.0, -SIZES["rate"])),
        Systematic.norm("norm", NORM, processes=["background"]),
    ]
    return Dataset(samples, sources)


def inferno_densities(signals: Sequence[str]) -> Densities:
    """Differences by the strengths, r, rate and norm."""
    (x0, x1, x2), volume = grid((-7, 11, 90), (-11, 11, 80), (0, 5, 80))

    def background(r: float = 0.0, rate: float = 0.0) -> Floats:
        x2_density = (3 + rate) * np.exp(-(3 + rate) * x2)
        return YIELDS["background"] * normal(x0, 2.0 + r, math.sqrt(5)) * normal(x1, 0.0, 3.0) * x2_density

    each = [
        YIELDS[name] * normal(x0, PLACES[name][0], 1.0) * normal(x1, PLACES[name][1], 1.0) * 2 * np.exp(-2 * x2)
        for name in signals
    ]
    b = background()
    moved = [(background(**{name: size}) - background(**{name: -size})) / 2 for name, size in SIZES.items()]
    rows = np.stack([*each, *moved, NORM * b]) * volume
    return Densities({"x0": x0, "x1": x1, "x2": x2}, rows, (sum(each) + b) * volume)


def two_signals() -> Problem:
    """Two strengths that share three nuisance parameters."""
    both = ("first", "second")
    strengths = {f"mu_{name}": [name] for name in both}
    return Problem(
        "two signals",
        lambda n, seed: draw_inferno(n, seed, both),
        lambda: inferno_densities(both),
        (*strengths, *SIZES, "norm"),
        tuple(strengths),
        np.diag([0.0, 0.0, 1.0, 1.0, 1.0]),
        {"strengths": strengths},
        cells=40,
    )


# A control region ---------------------------------------------------------------------------------------------------


def control_workspace() -> dict[str, Any]:
    """A control region that measures r to ¼ of its prior uncertainty: 15 = Σ (∂λ)²/λ, 1 + 15 = 4²."""
    events, slope = np.array([1000.0, 1000.0]), math.sqrt(15 / 2000)
    up, down = (events * (1 + sign * slope * np.array([1.0, -1.0])) for sign in (1, -1))
    shift = {"name": "r", "type": "histosys", "data": {"hi_data": up.tolist(), "lo_data": down.tolist()}}
    sample = {"name": "background", "data": events.tolist(), "modifiers": [shift]}
    return {
        "channels": [{"name": "control", "samples": [sample]}],
        "observations": [{"name": "control", "data": events.tolist()}],
        "measurements": [{"name": "measurement", "config": {"poi": "", "parameters": []}}],
        "version": "1.0.0",
    }


def through_file() -> Partner:
    """Return what a pyhf file of the control region knows."""
    with tempfile.TemporaryDirectory() as folder:
        return read_partner(write_workspace(control_workspace(), Path(folder) / "control.json"), poi=None)


def control_region(partner: Callable[[], Partner | None], name: str = "a control region") -> Problem:
    """One strength, and a control region that measures r; training is told of `partner`."""
    return Problem(
        name,
        lambda n, seed: draw_inferno(n, seed, ["first"]),
        lambda: inferno_densities(["first"]),
        ("mu", *SIZES, "norm"),
        ("mu",),
        np.diag([0.0, 16.0, 1.0, 1.0]),
        {"partner": partner()},
        tolerance=0.02,
    )


# A mass -------------------------------------------------------------------------------------------------------------

PEAK, RESOLUTION = 125.0, (1.0, 4.0)
"""Mass of the signal, and its resolution for y = 0 and y = 1, GeV."""
SHIFT, SCALE = 0.5, 0.005
"""Change of the mass for one unit of its parameter, GeV, and the relative uncertainty of the energy scale."""
Z_PEAK, Z_WIDTH, WIDE, WIDE_WIDTH, Z_SHARE = 91.2, 4.0, 115.0, 20.0, 0.3


def draw_mass(n: int, seed: int) -> Dataset:
    """A peak over a Z peak and a wide background, in the mass x and a quality y, which the resolution depends on."""
    rng = np.random.default_rng(seed)
    ys, yb = rng.random(n), rng.random(n)
    x = PEAK + (RESOLUTION[0] + ys * (RESOLUTION[1] - RESOLUTION[0])) * rng.normal(size=n)
    is_z = rng.random(n) < Z_SHARE
    b = np.where(is_z, rng.normal(Z_PEAK, Z_WIDTH, n), rng.normal(WIDE, WIDE_WIDTH, n))

    def events(x: Floats, y: Floats, total: float) -> Events:
        return Events({"x": x, "y": y}, np.full(n, total / n), {"event": np.arange(n)})

    def scaled(size: float) -> dict[str, Events]:
        return {
            "signal": events(x * (1 + size), ys, 300.0),
            "background": events(b * (1 + size), yb, 6000.0),
        }

    sources = [
        Systematic.shape("mass", {"signal": events(x + SHIFT, ys, 300.0)}, {"signal": events(x - SHIFT, ys, 300.0)}),
        Systematic.shape("scale", scaled(SCALE), scaled(-SCALE)),
    ]
    samples = [
        Sample("signal", Role.SIGNAL, events(x, ys, 300.0)),
        Sample("background", Role.BACKGROUND, events(b, yb, 6000.0)),
    ]
    return Dataset(samples, sources)


def mass_densities() -> Densities:
    """Differences by the strength, the mass, the scale and the free background."""
    (x, y), volume = grid((20, 220, 2000), (0, 1, 40))
    resolution = RESOLUTION[0] + y * (RESOLUTION[1] - RESOLUTION[0])

    def signal(shift: float = 0.0, factor: float = 1.0) -> Floats:
        return 300.0 * normal(x, factor * (PEAK + shift), factor * resolution)

    def background(factor: float = 1.0) -> Floats:
        z, wide = (normal(x, factor * at, factor * w) for at, w in ((Z_PEAK, Z_WIDTH), (WIDE, WIDE_WIDTH)))
        return np.asarray(6000.0 * (Z_SHARE * z + (1 - Z_SHARE) * wide))

    up, down = (signal(0.0, factor) + background(factor) for factor in (1 + SCALE, 1 - SCALE))
    s, b = signal(), background()
    rows = np.stack([s, (signal(SHIFT) - signal(-SHIFT)) / 2, (up - down) / 2, 0.5 * b]) * volume
    return Densities({"x": x, "y": y}, rows, (s + b) * volume)


def a_mass() -> Problem:
    """The position of a peak, with an energy scale, a free strength and a free background."""
    return Problem(
        "a mass",
        draw_mass,
        mass_densities,
        ("mu", "mass", "scale", "norm_background"),
        ("mass",),
        np.diag([0.0, 0.0, 1.0, 0.0]),
        {"of_interest": ["mass"], "free": ["background"]},
    )


# A working point ------------------------------------------------------------------------------------------------------

TILT = 0.3
"""Size of an asymmetric source: up it changes the background by TILT tanh(x), down by −TILT tanh(y)."""
SIGNAL_AT, NARROW, BROAD = 1.5, 1.0, 1.5
"""Where the signal is in x and y, its width, and that of the background around 0."""


def draw_tilted(n: int, seed: int, theta: float) -> Dataset:
    """Return a signal and a background with an asymmetric source, at the nominal point or at θ = 1."""
    rng = np.random.default_rng(seed)
    s, b = rng.normal(SIGNAL_AT, NARROW, (n, 2)), rng.normal(0.0, BROAD, (n, 2))
    ids, w = {"event": np.arange(n)}, np.full(n, 1000.0 / n)
    up, down = w * (1 + TILT * np.tanh(b[:, 0])), w * (1 - TILT * np.tanh(b[:, 1]))
    # At θ = 1 the derivative is up − nominal, on both sides.
    nominal, up, down = (up, 2 * up - w, w) if theta else (w, up, down)
    samples = [
        Sample("signal", Role.SIGNAL, Events({"x": s[:, 0], "y": s[:, 1]}, np.full(n, 60.0 / n), ids)),
        Sample("background", Role.BACKGROUND, Events({"x": b[:, 0], "y": b[:, 1]}, nominal, ids)),
    ]
    sources = [
        Systematic.weight("tilt", {"background": up}, {"background": down}),
        Systematic.norm("norm", NORM, processes=["background"]),
    ]
    return Dataset(samples, sources)


def tilted_densities() -> Densities:
    """Derivatives by the strength, the tilt and the yield at θ = 1."""
    (x, y), volume = grid((-7, 7, 280), (-7, 7, 280))
    s = 60.0 * normal(x, SIGNAL_AT, NARROW) * normal(y, SIGNAL_AT, NARROW)
    nominal = 1000.0 * normal(x, 0.0, BROAD) * normal(y, 0.0, BROAD)
    b = nominal * (1 + TILT * np.tanh(x))
    rows = np.stack([s, b - nominal, NORM * b]) * volume
    return Densities({"x": x, "y": y}, rows, (s + b) * volume)


def working_point(at: Mapping[str, float], name: str) -> Problem:
    """One strength, measured where a source is one standard deviation up; training is told so by `at`."""
    return Problem(
        name,
        lambda n, seed: draw_tilted(n, seed, 1.0),
        tilted_densities,
        ("mu", "tilt", "norm"),
        ("mu",),
        np.diag([0.0, 1.0, 1.0]),
        {"at": at},
        trained_on=lambda n, seed: draw_tilted(n, seed, 0.0),
    )


PROBLEMS: Mapping[str, Callable[[], Problem]] = {
    "two": two_signals,
    "mass": a_mass,
    "control": lambda: control_region(lambda: Partner(("r",), ((15.0,),))),
    "workspace": lambda: control_region(through_file, "a workspace as partner"),
    "alone": lambda: control_region(lambda: None, "trained without its partner"),
    "moved": lambda: working_point({"tilt": 1.0}, "a working point"),
    "nominal": lambda: working_point({}, "trained at the nominal point"),
}
