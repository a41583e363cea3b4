"""Pseudo-experiments: a small version of validation/toys.py, and Newton's method against pyhf on the same toys."""

import numpy as np
import pytest
from validation.toys import Toys, draw_toys, fit_toys, fit_toys_with_pyhf

from tests.inference.models import smooth_templates


def test_coverage_pull_and_median_of_600_toys():
    templates = smooth_templates(8, 3)
    study = fit_toys(templates, draw_toys(templates, 600, seed=7))
    coverage, error = study.coverage
    assert abs(coverage - 0.6827) < 3 * error
    width, error = study.pull_width
    assert abs(width - 1) < 0.05 + 2 * error  # the mark, and what 600 toys can tell
    median, error = study.median_z
    assert abs(median - study.asimov_z) < 3 * error
    assert len(study.tables()[0].rows) == 3


def test_both_fits_agree_toy_by_toy():
    templates = smooth_templates(6, 2)
    toys = draw_toys(templates, 4, seed=3)
    fast, reference = fit_toys(templates, toys), fit_toys_with_pyhf(templates, toys)
    assert fast.mu == pytest.approx(reference.mu, abs=1e-3)
    assert fast.z == pytest.approx(reference.z, abs=1e-3)
    assert fast.sigma_mu == pytest.approx(reference.sigma_mu, rel=1e-3)
    assert np.array_equal(fast.inside, reference.inside)


def test_toys_are_drawn_around_the_model():
    templates = smooth_templates(5, 2)
    toys = draw_toys(templates, 4000, seed=1)
    assert isinstance(toys, Toys)
    assert toys.counts.mean(axis=0) == pytest.approx(templates.asimov, rel=0.02)
    assert toys.theta.std() == pytest.approx(1, rel=0.02)
    expected = np.sqrt(templates.arrays().mc_variance) / templates.background
    assert toys.gamma.std(axis=0) == pytest.approx(expected, rel=0.05)
