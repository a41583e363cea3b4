"""`Ratios`: the shares of signals in all events, from one logarithm of a ratio of densities per strength."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.trees import Ensemble


def find_share(log_ratio: Floats, log_odds: float) -> Floats:
    """Share s/(s + b) of the only signal, from F and ln(S/B)."""
    with np.errstate(over="ignore"):  # exp of a large number is infinite, and 1/(1 + inf) the right answer
        return np.asarray(1.0 / (1.0 + np.exp(-(log_ratio + log_odds))))


def find_shares(log_ratios: Floats, log_odds: Sequence[float]) -> Floats:
    """Shares of all signals, as (strength, event), from each F_i = ln[(s_i/S_i)/(b/B)] and ln(S_i/B).

    With y_i = F_i + ln(S_i/B) = ln(s_i/b) they are exp(y_i)/(1 + Σ_j exp(y_j)).

    Examples
    --------
    >>> find_shares(np.zeros((2, 1)), [0.0, 0.0]).round(3).tolist()
    [[0.333], [0.333]]
    """
    if len(log_ratios) == 1:
        return find_share(log_ratios[0], log_odds[0])[None]
    y = log_ratios + np.asarray(log_odds)[:, None]
    most = np.maximum(y.max(axis=0), 0.0)  # so that no exponential overflows
    powers = np.exp(y - most)
    return np.asarray(powers / (np.exp(-most) + powers.sum(axis=0)))


@dataclass(frozen=True, eq=False)
class Ratios:
    """Sums of trees that each add up to F_i = ln[(s_i/S_i)/(b/B)], and ln(S_i/B) of the yields.

    Parameters
    ----------
    sums
        One for each strength.
    log_odds
        ln(S_i/B) of each.

    Examples
    --------
    >>> ratios = Ratios((Ensemble(("pt",), ()),), (-2.0,))
    >>> ratios.shares(Events({"pt": [1.0]}, np.ones(1))).round(3)
    array([[0.119]])
    """

    sums: tuple[Ensemble, ...]
    log_odds: tuple[float, ...]

    @property
    def n_strengths(self) -> int:
        """Number of strengths."""
        return len(self.sums)

    def shares(self, events: Events, n_threads: int | None = None) -> Floats:
        """Share s_i/(s + b) of each signal, as (strength, event)."""
        return find_shares(np.stack([one.score(events, n_threads) for one in self.sums]), self.log_odds)
