"""A random measurement fitted here and by pyhf; `make fits` has 500."""

import numpy as np
from validation.fits import compare, draw_measurement


def test_a_fit_of_a_random_measurement_is_that_of_pyhf():
    """Regions, asymmetric shapes, free normalisations and empty bins, drawn at random; always the same ones here."""
    done = compare(*draw_measurement(np.random.default_rng([1, 0])))
    assert done.outcome.startswith("agrees"), done
    assert done.largest < 1e-3
