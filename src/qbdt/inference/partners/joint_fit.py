"""`JointFit`: the uncertainties of a fit together with a partner, such as a workspace that training was told of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qbdt.tables import Table
from qbdt.training import Partner


@dataclass(frozen=True)
class JointFit:
    """Expected uncertainties of what is measured, by the regions of a fit alone and together with a partner."""

    partner: str  # What it is called
    sigmas: Mapping[str, tuple[float, float]]  # Of each parameter of interest, alone and together

    def tables(self) -> tuple[Table, ...]:
        """Both uncertainties of each parameter."""
        rows = tuple((name, *(f"{sigma:.3f}" for sigma in both)) for name, both in self.sigmas.items())
        return (Table(f"Expected together with {self.partner}", ("parameter", "σ of this fit", "σ together"), rows),)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"partner": self.partner, "sigmas": {name: list(both) for name, both in self.sigmas.items()}}


def join_information(own: Partner, partner: Partner, shared: Sequence[str], free: Sequence[str]) -> dict[str, float]:
    """σ of parameters that regions and a partner are fitted together for; those that are `free` have no constraint.

    Parameters that are not `shared`, such as MC statistics, are profiled on both sides.

    Examples
    --------
    Two measurements of a strength to ½, and of a source that both have:

    >>> one = Partner(["mu", "tes"], [[4.0, 1.0], [1.0, 1.0]])
    >>> {name: round(sigma, 3) for name, sigma in join_information(one, one, ["mu", "tes"], ["mu"]).items()}
    {'mu': 0.387, 'tes': 0.632}
    """
    constraints = np.diag([float(name not in free) for name in shared])
    covariance = np.linalg.inv(own.about(shared) + partner.about(shared) + constraints)
    return {name: math.sqrt(variance) for name, variance in zip(shared, np.diag(covariance).tolist(), strict=True)}
