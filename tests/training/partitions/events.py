"""A small dataset with every kind of source."""

import numpy as np

from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.systematic import Systematic


def events(rng, n, shift, scale=1.0):
    x = rng.normal(shift, 1.0, (n, 3)).astype(np.float32)
    return Events({f"x{i}": x[:, i] for i in range(3)}, rng.uniform(-0.1, 1.0, n) * scale)


def small_dataset():
    rng = np.random.default_rng(11)
    background = events(rng, 700, 0.0, 20.0)
    return Dataset(
        [Sample("s", Role.SIGNAL, events(rng, 500, 0.5)), Sample("b", Role.BACKGROUND, background)],
        [
            Systematic.shape("jes", {"b": events(rng, 690, 0.1, 20.0)}),
            Systematic.weight("btag", {"b": background.weight * rng.uniform(0.9, 1.3, 700)}),
            Systematic.norm("xs", 0.1, processes=["b"]),
        ],
    )
