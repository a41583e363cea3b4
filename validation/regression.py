"""Regression on the bundled h → γττ sample: the mass of the γττ system from what is seen of it.

The sample has the momentum sum of the neutrinos (missing momentum less its resolution), so the target can be had: the
mass of lepton, tau, photon and neutrinos that fly along the lepton and the tau (125 GeV to 3 GeV in signal). Trained on
one half of the background, 60 < m < 250 GeV, with the eight variables of the study; judged on the other half, and on
signal, which no training has seen. Shifts are those of the mean prediction under the seven sources, up less down,
halved. The uncertainty of a mean of N events is √(rms²/N + Σ shift²).

Run:  python -m validation.regression [--events N] [--trees N] [--threads N]     (make regression)
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from importlib.resources import as_file
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt import QBDTRegressor, Systematic
from qbdt.arrays import Floats
from qbdt.data.samples.bundled import BUNDLED
from qbdt.data.samples.objects import NOMINAL, SHAPES, Objects, Reconstruction, read_folder
from qbdt.data.samples.objects.reconstruction import EFFICIENCIES, FEATURES, SOURCES, ObjectShift, efficiency_weight
from qbdt.tables import Table

LOW, HIGH = 60.0, 250.0

RATE = 0.1
"""Learning rate of all methods; a step of QBDT is a fifth of its learning rate."""

Predict = Callable[[Floats], Floats]


class Events(NamedTuple):
    """Features, target, and weights (relative) of some events."""

    X: Floats
    y: Floats
    weight: Floats


class Sample(NamedTuple):
    """Events, nominal and under each source up and down."""

    nominal: Events
    varied: dict[str, tuple[Events, Events]]


def find_masses(objects: Objects) -> tuple[Floats, NDArray[np.bool_]]:
    """Mass of γττ with neutrinos along lepton and tau, and where both have a positive energy."""
    lepton, tau, photon = (_four_vector(objects, name) for name in ("lepton", "tau", "photon"))
    neutrinos = (objects.met_x - objects.residual_x, objects.met_y - objects.residual_y)
    across = lepton[1] * tau[2] - lepton[2] * tau[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        a = (neutrinos[0] * tau[2] - neutrinos[1] * tau[1]) / across
        b = (lepton[1] * neutrinos[1] - lepton[2] * neutrinos[0]) / across
        p = (1 + a) * lepton + (1 + b) * tau + photon
        mass = np.sqrt(np.maximum(p[0] ** 2 - p[1] ** 2 - p[2] ** 2 - p[3] ** 2, 0.0))
    return mass, (a > 0) & (b > 0)


def _four_vector(objects: Objects, name: str) -> Floats:
    pt, eta, phi = (getattr(objects, f"{name}_{what}").astype(np.float64) for what in ("pt", "eta", "phi"))
    mass = objects.tau_mass.astype(np.float64) if name == "tau" else 0.0
    return np.array([np.hypot(pt * np.cosh(eta), mass), pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)])


def make_sample(objects: Objects, low: float = LOW, high: float = HIGH) -> Sample:
    """Events of one process with their targets."""
    mass, physical = find_masses(objects)
    inside = physical & (mass > low) & (mass < high)
    reconstruction = Reconstruction(objects)

    def select(shift: ObjectShift) -> Events:
        chosen = inside & reconstruction.passes(shift)
        columns = reconstruction.variables(shift)
        X = np.column_stack([columns[name][chosen] for name in FEATURES]).astype(np.float64)
        return Events(X, mass[chosen], np.ones(int(chosen.sum())))

    nominal = select(NOMINAL)
    varied = {name: (select(up), select(down)) for name, (up, down) in SHAPES.items()}
    for name, (variable, *_) in EFFICIENCIES.items():
        values = nominal.X[:, FEATURES.index(variable)].astype(np.float32)
        up, down = (nominal._replace(weight=efficiency_weight(name, values, sign)) for sign in (1, -1))
        varied[name] = (up, down)
    return Sample(nominal, varied)


def read_samples(n_events: int | None = None) -> tuple[Sample, Sample, Sample]:
    """Training half and test half of the background, and signal; of each at most so many events."""
    with as_file(BUNDLED) as folder:
        objects = {name: own[:n_events] for name, own, _ in read_folder(folder)}
    background = objects["background"]
    odd = background.event_number % 2 == 1
    return make_sample(background[~odd]), make_sample(background[odd]), make_sample(objects["signal"], 0.0, np.inf)


def make_sources(sample: Sample) -> list[Any]:
    """Sources of a sample as an estimator takes them."""

    def make(name: str, up: Events, down: Events) -> Any:
        if name in SHAPES:
            return Systematic.shape(name, (up.X, up.y, up.weight), (down.X, down.y, down.weight))
        return Systematic.weight(name, up.weight, down.weight)

    return [make(name, *sample.varied[name]) for name in SOURCES]


def find_shifts(predict: Predict, sample: Sample) -> dict[str, float]:
    """Shift of the mean prediction under each source, in GeV."""

    def mean(events: Events) -> float:
        return float(np.average(predict(events.X), weights=events.weight))

    return {name: (mean(sample.varied[name][0]) - mean(sample.varied[name][1])) / 2 for name in SOURCES}


class Judged(NamedTuple):
    """Numbers of one method, in GeV."""

    rms: float
    shifts: dict[str, float]
    signal_mean: float
    signal_width: float
    signal_shifts: dict[str, float]

    def mean_error(self, n: float) -> float:
        """Uncertainty of the mean of n background events."""
        return math.hypot(self.rms / math.sqrt(n), *self.shifts.values())


def judge(predict: Predict, test: Sample, signal: Sample) -> Judged:
    """Judge predictions on events that they were not trained on."""
    residual = test.nominal.y - predict(test.nominal.X)
    of_signal = predict(signal.nominal.X)
    return Judged(
        float(np.sqrt(np.mean(residual**2))),
        find_shifts(predict, test),
        float(of_signal.mean()),
        float(of_signal.std()),
        find_shifts(predict, signal),
    )


def train_peers(train: Events, n_trees: int, threads: int) -> dict[str, Predict]:
    """HGB, which stops by itself on a fifth of the events, and LightGBM with as many trees."""
    from lightgbm import LGBMRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor

    steps: dict[str, Any] = {"learning_rate": RATE, "random_state": 1}
    stopping: dict[str, Any] = {"early_stopping": True, "validation_fraction": 0.2, "n_iter_no_change": 40}
    hgb = HistGradientBoostingRegressor(max_iter=n_trees, max_leaf_nodes=15, **stopping, **steps)
    hgb.fit(train.X, train.y)
    lgbm = LGBMRegressor(n_estimators=hgb.n_iter_, num_leaves=15, n_jobs=threads, verbose=-1, **steps)
    lgbm.fit(train.X, train.y)
    return {"scikit-learn HGB": hgb.predict, "LightGBM": lgbm.booster_.predict}


def run(n_events: int | None, n_trees: int, threads: int, sizes: Sequence[float]) -> list[Table]:
    """Train all methods; return the tables."""
    train, test, signal = read_samples(n_events)
    methods = train_peers(train.nominal, n_trees, threads)
    for n in (None, *sizes):
        sources = [] if n is None else make_sources(train)
        model = QBDTRegressor(n_trees=n_trees, n_threads=threads, n_events=n, learning_rate=5 * RATE)
        model.fit(train.nominal.X, train.nominal.y, train.nominal.weight, sources)
        methods["QBDT without sources" if n is None else f"QBDT, N = {n:g}"] = model.predict
    judged = {name: judge(predict, test, signal) for name, predict in methods.items()}
    return [_table_of_means(judged, sizes), _table_of_shifts(judged, "background"), _table_of_shifts(judged, "signal")]


def _table_of_means(judged: dict[str, Judged], sizes: Sequence[float]) -> Table:
    header = ("method", "rms", *(f"σ of the mean of {n:g}" for n in sizes), "signal: mean", "width")
    rows = [
        (name, f"{one.rms:.2f}", *(f"{one.mean_error(n):.3f}" for n in sizes),
         f"{one.signal_mean:.1f}", f"{one.signal_width:.1f}")
        for name, one in judged.items()
    ]  # fmt: skip
    return Table("Mass of γττ, test half of the background (GeV)", header, tuple(rows))


def _table_of_shifts(judged: dict[str, Judged], what: str) -> Table:
    rows = []
    for name, one in judged.items():
        shifts = one.shifts if what == "background" else one.signal_shifts
        total = math.hypot(*shifts.values())
        rows.append((name, *(f"{shifts[source]:+.3f}" for source in SOURCES), f"{total:.3f}"))
    return Table(f"Shift of the mean prediction, {what} (GeV)", ("method", *SOURCES, "all"), tuple(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=None, help="events of each process; all by default")
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    for table in run(options.events, options.trees, options.threads, (100.0, 10000.0)):
        sys.stdout.write(f"{table.to_markdown()}\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
