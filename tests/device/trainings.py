"""Random trainings: of both methods, with all kinds of sources, categories, constraints, draws and missing values."""

from typing import Any

import numpy as np

from qbdt.data import Dataset, Events, Role, Sample, Systematic
from qbdt.training import Settings


def draw_training(seed: int, method: str, most_rows: int = 900) -> tuple[Dataset, Settings]:
    """A dataset and settings that depend on a number only; one in three has no sources, categories or constraints."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 2:
        return draw_plain(rng, method, most_rows)
    n_features = int(rng.choice([1, 3, 5, 9, 28, 37]))
    categorical = sorted(rng.choice(n_features, min(n_features, int(rng.integers(0, 3))), replace=False).tolist())
    draw = EventDraw(rng, n_features, categorical, negative=bool(rng.random() < 0.3))
    sizes = [int(n) for n in rng.integers(most_rows // 4, most_rows, 3)]
    samples = [
        Sample("s", Role.SIGNAL, draw.events(sizes[0], 0.6)),
        Sample("tt", Role.BACKGROUND, draw.events(sizes[1], 0.0, 8.0)),
        Sample("w", Role.BACKGROUND, draw.events(sizes[2] // 5, -0.4)),
    ]
    dataset = Dataset(samples, [draw.source(i, samples) for i in range(int(rng.integers(0, 6)))])
    return dataset, draw_settings(rng, method, n_features, categorical)


def draw_plain(rng: np.random.Generator, method: str, most_rows: int) -> tuple[Dataset, Settings]:
    n_features, n_leaves = int(rng.choice([1, 4, 28, 70])), int(rng.integers(2, 12))
    draw = EventDraw(rng, n_features, [], negative=bool(rng.random() < 0.3))
    sizes = rng.integers(most_rows // 4, most_rows, 3).tolist()
    samples = [
        Sample("s", Role.SIGNAL, draw.events(sizes[0], 0.5)),
        Sample("b", Role.BACKGROUND, draw.events(sizes[1], 0.0)),
        Sample("c", Role.BACKGROUND, draw.events(sizes[2], -0.2)),
    ]
    return Dataset(samples), Settings(method=method, n_trees=5, n_leaves=n_leaves, negative_weights="raw")


class EventDraw:
    def __init__(self, rng, n_features, categorical, negative):
        self.rng, self.n_features, self.categorical = rng, n_features, categorical
        self.least = -0.2 if negative else 0.1
        self.kind = rng.choice([np.float32, np.float64])

    def events(self, n, shift, scale=1.0):
        x = self.rng.normal(shift, 1.0, (n, self.n_features)).astype(self.kind)
        for c in self.categorical:
            x[:, c] = self.rng.integers(0, 7, n) + (shift > 0.3)
        for c in range(0, self.n_features, 3):
            x[self.rng.random(n) < 0.1, c] = np.nan
        return Events({f"x{i}": x[:, i] for i in range(self.n_features)}, self.rng.uniform(self.least, 1.0, n) * scale)

    def source(self, number, samples):
        rng, tt, w = self.rng, samples[1].events, samples[2].events
        match int(rng.integers(0, 5)):
            case 0:
                return Systematic.norm(f"norm{number}", 0.2, processes=["tt", "w"])
            case 1:
                return Systematic.weight(f"weight{number}", {"tt": tt.weight * rng.uniform(0.8, 1.3, tt.n_rows)})
            case 2:
                up, down = (
                    {"tt": tt.weight * rng.uniform(*limits, tt.n_rows), "w": w.weight * rng.uniform(*limits, w.n_rows)}
                    for limits in ((1.0, 1.2), (0.7, 1.0))
                )
                return Systematic.weight(f"both{number}", up, down)
            case 3:
                return Systematic.shape(f"shape{number}", {"tt": self.events(tt.n_rows + 13, 0.15, 8.0)})
            case _:
                up, down = self.events(tt.n_rows - 7, 0.15, 8.0), self.events(tt.n_rows + 5, -0.15, 8.0)
                return Systematic.shape(f"two{number}", {"tt": up}, {"tt": down})


def draw_settings(rng, method, n_features, categorical):
    free = [f"x{i}" for i in range(n_features) if i not in categorical]
    constrained = free[: int(rng.integers(0, 3))] if rng.random() < 0.4 else []
    paper: dict[str, Any] = {
        "mc_stat": bool(rng.random() < 0.4),
        "growth": "published" if rng.random() < 0.2 else "leaves",
    }
    if constrained:
        paper["growth"] = "leaves"
    return Settings(
        method=method,
        n_trees=int(rng.integers(3, 8)),
        n_leaves=int(rng.integers(4, 12)),
        max_bins=int(rng.choice([16, 64, 256])),
        max_depth=int(rng.integers(2, 5)) if rng.random() < 0.3 else None,
        learning_rate=float(rng.choice([0.5, 1.0])),
        min_leaf_entries=float(rng.choice([0.0, 20.0])),
        negative_weights=str(rng.choice(["smooth", "raw"])) if method == "paper" else "smooth",
        row_fraction=float(rng.choice([0.6, 1.0])),
        feature_fraction=float(rng.choice([0.7, 1.0])) if n_features > 2 else 1.0,
        random_state=int(rng.integers(0, 1000)),
        categorical_features=[f"x{i}" for i in categorical],
        monotonic_constraints=dict.fromkeys(constrained, int(rng.choice([-1, 1]))),
        **(paper if method == "paper" else {}),
    )
