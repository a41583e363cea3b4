"""The regression of the γττ mass, small: the target can be had, and a profiled mean is measured better."""

import numpy as np
from validation.regression import judge, make_sources, read_samples

from qbdt import QBDTRegressor


def test_the_target_is_the_mass():
    _, _, signal = read_samples(3000)
    assert abs(np.median(signal.nominal.y) - 125.0) < 2.0


def test_sources_move_a_profiled_mean_less():
    train, test, signal = read_samples(6000)
    model = QBDTRegressor(n_trees=25, n_leaves=7, n_events=10000)
    plain = judge(model.fit(*train.nominal).predict, test, signal)
    profiled = judge(model.fit(*train.nominal, make_sources(train)).predict, test, signal)
    assert profiled.mean_error(10000) < plain.mean_error(10000)
    assert abs(profiled.shifts["tes"]) < abs(plain.shifts["tes"])
