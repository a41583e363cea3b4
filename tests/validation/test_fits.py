"""A random measurement fitted here and by pyhf; `make fits` has 500."""

import numpy as np
import pytest
from validation.fits import compare, draw_measurement


@pytest.mark.parametrize("number", [0, 124])
def test_a_fit_of_a_random_measurement_is_that_of_pyhf(number):
    """Regions, asymmetric shapes, free normalisations and empty bins, drawn at random; always the same ones here.

    At no signal the second has another minimum of the likelihood than the one that is near to the best fit.
    """
    done = compare(*draw_measurement(np.random.default_rng([1, number])))
    assert done.outcome.startswith("agrees"), done
    assert done.largest < 1e-3
