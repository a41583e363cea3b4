"""Constraints of nuisance parameters that noise makes: σ_θ of a fit beside the σ_θ that pure noise would give.

A shift with statistical variance V_i in bin i, and no true effect at all, still moves the bins, by V_i on average of
the squares. A fit takes that for information on θ: Σ V_i/v_i, with v_i the variance of the bin content, so that
σ_θ = 1/sqrt(1 + Σ V_i/v_i) instead of 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbdt.inference.fit_summary import FitSummary
from qbdt.inference.measurement import Measurement

SMALLEST = 0.9
"""Noise that constrains a nuisance parameter less than this is not worth a warning."""


@dataclass(frozen=True)
class NoiseConstraint:
    """A source whose nuisance parameter noise may constrain."""

    source: str
    fitted: float  # σ_θ of the fit, in prior standard deviations
    noise: float  # σ_θ that shifts of pure noise, of the size of their statistical errors, would give


def find_noise_constraints(measurement: Measurement, summary: FitSummary) -> tuple[NoiseConstraint, ...]:
    """Sources that noise of their shifts alone would constrain by a tenth or more, worst first."""
    found = []
    for source in (name for name in measurement.sources if name not in measurement.unconstrained):
        information = 0.0
        for region in measurement.regions.values():
            spread = region.asimov + region.arrays().mc_variance
            for process in region.processes:
                shift = process.shifts.get(source)
                if shift is not None and shift.variance is not None and shift.factors is None:
                    information += float(np.sum(shift.variance / spread))
        noise = 1 / np.sqrt(1 + information)
        if noise < SMALLEST:
            found.append(NoiseConstraint(source, summary.parameter(source).error, float(noise)))
    return tuple(sorted(found, key=lambda one: one.noise))
