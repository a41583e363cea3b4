"""Goodness of fit: −2 ln L against the saturated model, which fits every bin and constraint exactly."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from qbdt.inference.answers.pseudo_experiments import draw_experiments, fit_experiments, keep_fitted
from qbdt.inference.summary import BestFit
from qbdt.tables import Table


@dataclass(frozen=True)
class GoodnessOfFit:
    """Agreement of data and model at the best fit."""

    statistic: float  # −2 ln L relative to the saturated model
    degrees: int  # Bins minus parameters without constraint; a constraint adds one term and one parameter
    p_value: float  # Probability of a larger statistic, from the χ² distribution
    p_value_toys: float | None = None  # The same from pseudo-experiments at the best fit; None without them
    n_toys: int = 0  # How many

    def tables(self) -> tuple[Table, ...]:
        """Statistic and p-values."""
        rows = [("−2 ln L, saturated", f"{self.statistic:.2f}"), ("degrees of freedom", str(self.degrees))]
        rows.append(("p-value", f"{self.p_value:.3f}"))
        if self.p_value_toys is not None:
            rows.append((f"p-value, {self.n_toys} toys", f"{self.p_value_toys:.3f}"))
        return (Table("Goodness of fit", ("quantity", "value"), tuple(rows)),)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)


def measure_goodness(best: BestFit, n_toys: int = 0, seed: int = 1) -> GoodnessOfFit:
    """Compare the best fit of recorded data with the saturated model.

    `n_toys` pseudo-experiments give a p-value that does not rely on the χ² distribution; none by default.
    """
    likelihood = best.likelihood
    free = [p for p in likelihood.parameters if p.kind in ("poi", "free") and p.name not in best.minimum.fixed]
    degrees = len(likelihood.data) - len(free)
    statistic = max(best.minimum.twice_nll, 0.0)
    p_value = float(chdtrc(degrees, statistic)) if degrees > 0 else float("nan")
    if not n_toys:
        return GoodnessOfFit(statistic, degrees, p_value)
    drawn = draw_experiments(best.analytic, best.minimum.values, n_toys, np.random.default_rng(seed))
    found = keep_fitted(fit_experiments(best.analytic, drawn).twice_nll)
    return GoodnessOfFit(statistic, degrees, p_value, float(np.mean(found >= statistic)), len(found))
