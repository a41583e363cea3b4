"""The synthetic problem of INFERNO (de Castro and Dorigo): three features, signal over a background that shifts.

Signal: (x0, x1) from a unit Gaussian at (0, 0), x2 exponential with rate 2. Background: (x0, x1) Gaussian with mean
(2 + r, 0) and variances (5, 9), x2 exponential with rate λ. Nominal r = 0, λ = 3, 50 signal and 1000 background events.
The article prints the signal mean as (1, 1); only (0, 0), as in its code, gives its table.
"""

from __future__ import annotations

import numpy as np

from qbdt.arrays import Floats
from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.folds import ModuloFolds
from qbdt.data.sample import Role, Sample
from qbdt.data.systematic import Systematic
from qbdt.errors import DataError

SIGNAL_YIELD = 50.0
BACKGROUND_YIELD = 1000.0
NOMINAL_RATE = 3.0


def inferno(
    n: int = 100_000,
    seed: int = 0,
    *,
    r_size: float = 0.4,
    rate_size: float = 1.0,
    norm_size: float | None = 0.1,
    k: int = 2,
) -> Dataset:
    """Simulate `n` signal and `n` background events with the shifts of the benchmark.

    Parameters
    ----------
    n
        Events of each class.
    seed
        Seed of the random numbers.
    r_size
        One standard deviation of the background's position r.
    rate_size
        One standard deviation of the background's rate λ.
    norm_size
        Relative uncertainty of the background yield; None leaves it out.
    k
        Number of folds.

    Examples
    --------
    >>> data = inferno(1000, seed=1)
    >>> round(data.total("signal")), round(data.total("background")), [s.name for s in data.systematics]
    (50, 1000, ['r', 'rate', 'norm'])
    """
    if n < 1:
        raise DataError(f"n={n}: at least one event of each class is needed")
    if not 0 < rate_size < NOMINAL_RATE:
        raise DataError(f"rate_size={rate_size}: must lie between 0 and the nominal rate {NOMINAL_RATE}")
    random = np.random.default_rng(seed)
    signal = np.column_stack([random.normal(0, 1, (n, 2)), random.exponential(1 / 2, n)])
    position, spread = np.array([2.0, 0.0]), np.sqrt([5.0, 9.0])
    background = np.column_stack([random.normal(position, spread, (n, 2)), random.exponential(1 / NOMINAL_RATE, n)])

    def events(x: Floats, total: float) -> Events:
        return Events({f"x{i}": x[:, i] for i in range(3)}, np.full(n, total / n), {"event_number": np.arange(n)})

    def varied(r: float, rate: float) -> dict[str, Events]:
        return {"background": events(shift_background(background, r, rate), BACKGROUND_YIELD)}

    systematics = [
        Systematic.shape("r", up=varied(r_size, NOMINAL_RATE), down=varied(-r_size, NOMINAL_RATE)),
        Systematic.shape("rate", up=varied(0, NOMINAL_RATE + rate_size), down=varied(0, NOMINAL_RATE - rate_size)),
    ]
    if norm_size is not None:
        systematics.append(Systematic.norm("norm", norm_size, processes=["background"]))
    samples = [
        Sample("signal", Role.SIGNAL, events(signal, SIGNAL_YIELD)),
        Sample("background", Role.BACKGROUND, events(background, BACKGROUND_YIELD)),
    ]
    return Dataset(samples, systematics, ModuloFolds(k, "event_number"))


def shift_background(x: Floats, r: float, rate: float) -> Floats:
    """Background rows with x0 moved by r and x2 stretched to another rate."""
    return np.column_stack([x[:, 0] + r, x[:, 1], x[:, 2] * (NOMINAL_RATE / rate)])
