"""The regression of the γττ mass, small: the target can be had, and a profiled mean is measured better."""

import numpy as np

from validation.regression import judge, make_sources, read_samples

from qbdt import QBDTRegressor


def test_the_target_is_the_mass():
    _, _, signal = read_samples(3000)
    assert abs(np.median(signal.nominal.y) - 125.0) < 2.0


def test_sources_move_a_profiled_mean_less():
    train, test, signal = read_samples(6000)
    settings = {"n_trees": 25, "n_leaves": 7}
    events = (train.nominal.X, train.nominal.y, train.nominal.weight)
    plain = judge(QBDTRegressor(**settings).fit(*events).predict, test, signal)
    model = QBDTRegressor(**settings, n_events=10000).fit(*events, systematics=make_sources(train))
    profiled = judge(model.predict, test, signal)
    assert profiled.mean_error(10000) < plain.mean_error(10000)
    assert abs(profiled.shifts["tes"]) < abs(plain.shifts["tes"])
