"""Shrinkage of the effects of sources by their MC noise."""

from functools import reduce

import numpy as np
import pytest

from qbdt.data import Dataset
from qbdt.data.systematic import Systematic
from qbdt.threads import Workers
from qbdt.training.partitions.events import divide_dataset
from qbdt.training.partitions.survey import Survey, survey_partition
from qbdt.training.profile.inner_folds import N_FOLDS, InnerFolds, count_rows
from qbdt.training.profile.noise import BlockSums, noise_shrinkage, sum_blocks
from qbdt.training.profile.ratios import Ratios
from qbdt.training.profile.segments import shift_segments
from qbdt.training.settings import Settings
from qbdt.trees.ensemble import Ensemble

N = 1500


@pytest.fixture(scope="module")
def dataset():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(N, 2)), np.repeat([1, 0], [N // 3, N - N // 3])
    w = rng.uniform(0.5, 1.5, N)
    background = y == 0
    moved = x[background] + [0.2, 0.0]
    sources = [
        Systematic.weight("tilt", up=np.where(background, w * (1 + 0.1 * np.tanh(x[:, 0]) + 0.02), w)),
        Systematic.weight("scatter", up=w * (1 + 0.2 * rng.normal(size=N) * background)),
        Systematic.shape("scale", up=(moved, np.zeros(len(moved)), 1.1 * w[background])),
        Systematic.norm("size", 0.1, where=background),
    ]
    return Dataset.from_arrays(x, y, w, sources)


def blocks(dataset, n_parts):
    ratios = Ratios((Ensemble(dataset.features, ()),), (0.0,))
    parts = divide_dataset(dataset, n_parts)
    with Workers(1) as workers:
        surveys = [survey_partition(i, part(), workers, Settings(), count_rows) for i, part in enumerate(parts)]
        folds = InnerFolds.of(reduce(Survey.merge, surveys))
        found = [
            [sum_blocks(i, part(), workers, folds, held, ratios) for i, part in enumerate(parts)]
            for held in range(N_FOLDS)
        ]
    segments = shift_segments(dataset)
    signals = [[i for i, one in enumerate(segments) if one.is_signal]]
    return [reduce(BlockSums.merge, one).integrals(segments, signals).blocks for one in found]


def test_blocks_add_up_to_what_the_sources_do(dataset):
    total = sum(one.sum(axis=0) for one in blocks(dataset, 1))
    for k, source in enumerate(dataset.systematics):
        varied = dataset.varied(source.name, "up")
        change = sum(events.total - dataset.sample(name).events.total for name, events in varied.items())
        assert total[k] == pytest.approx([0.5 * change, change], rel=1e-9)  # r₀ is a half everywhere


def test_partitions_change_nothing(dataset):
    for one, other in zip(blocks(dataset, 1), blocks(dataset, 4), strict=True):
        assert np.array_equal(one, other)


def test_noise_is_shrunk_and_known_effects_are_not(dataset):
    found = np.stack([noise_shrinkage(one) for one in blocks(dataset, 1)])
    tilt, scatter, scale, size = found.mean(axis=0)
    assert scatter < 0.3 < tilt
    assert scale > 0.8
    assert size > 0.95
