"""Events for the speed benchmarks: 28 features, of which half tell signal from background."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt import Systematic

FEATURES = 28


def events(rows: int, seed: int = 1, dtype: Any = np.float64) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return X and y, half signal."""
    random = np.random.default_rng(seed)
    y = (random.random(rows) < 0.5).astype(np.int64)
    X = random.standard_normal((rows, FEATURES), dtype=np.float32).astype(dtype)
    X[:, :10] += (0.3 * random.random(10) * y[:, None]).astype(dtype)
    X[:, 10:14] *= (1 + 0.3 * y[:, None]).astype(dtype)
    return X, y


def weight_sources(X: NDArray[Any], w: NDArray[np.float64], n: int) -> list[Any]:
    """Weight-type sources: each tilts the weights along one feature."""
    return [Systematic.weight(f"w{k}", up=w * (1 + 0.05 * np.tanh(X[:, k % X.shape[1]]))) for k in range(n)]


def scattered_sources(w: NDArray[np.float64], n: int, seed: int = 2) -> list[Any]:
    """Weight-type sources that change each weight by another amount: up by a quarter, on average."""
    random = np.random.default_rng(seed)
    return [Systematic.weight(f"r{k}", up=w * (1 + 0.5 * random.random(len(w)))) for k in range(n)]


def shape_sources(X: NDArray[Any], y: NDArray[np.int64], n: int) -> list[Any]:
    """Shape-type sources: each shifts one feature of the background."""
    background = np.ascontiguousarray(X[y == 0])
    sources = []
    for k in range(n):
        varied = background.copy()
        varied[:, k % X.shape[1]] += 0.05
        sources.append(Systematic.shape(f"s{k}", up=(varied, np.zeros(len(varied)), np.ones(len(varied)))))
    return sources
