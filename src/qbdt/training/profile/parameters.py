"""`Parameters` of the measurement that a score is trained for, and the information on them besides the trained events.

With d_a(x) the derivative of the expected density n(x) by parameter a, the trained events know I_ab = ∫ d_a d_b / n.
Everything else, constraints of sources, other regions and channels, knows J_ab. For a parameter of interest φ and all
others ψ the efficient score and its uncertainty are

    t*(x) = [d_φ(x) − Σ_k c_k d_k(x)] / n(x),   c = (I + J)_ψψ⁻¹ (I + J)_ψφ,   1/σ_φ² = (I + J)_φφ − (I + J)_φψ c.

With C = (I + J)⁻¹ these are c_k = −C_kφ/C_φφ and σ_φ² = C_φφ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Role, Systematic
from qbdt.errors import ConfigError, DataError, require_known
from qbdt.statistics import profiled_information
from qbdt.training.partner import STRENGTH, Partner
from qbdt.training.settings import Settings

WEAK = 1e-6
"""Precision that a free parameter has at least: with a width of 1000 it changes no result, and what nothing is known of
yet, such as a shift before its first tree, has an uncertainty."""

FREE_SIZE = 0.5
"""Relative change of a free background for one unit of its parameter in training; results do not depend on it."""

INSEPARABLE = 0.99
"""Correlation above which two parameters that are both without constraint cannot be told apart."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Strengths of signals, then sources.

    Attributes
    ----------
    strengths
        Names of the strengths.
    processes
        Signal processes that each multiplies.
    sources
        Names of the sources.
    interest
        Numbers of the parameters of interest, among strengths and sources.
    known
        J over all parameters: constraints, and the information of the partner.
    constrained
        Which parameters have a constraint.
    """

    strengths: tuple[str, ...]
    processes: tuple[tuple[str, ...], ...]
    sources: tuple[str, ...]
    interest: tuple[int, ...]
    known: Floats
    constrained: tuple[bool, ...]

    @classmethod
    def of(cls, settings: Settings, dataset: Dataset) -> Parameters:
        """Return the parameters of a training; names that it does not have are refused."""
        signals = tuple(sample.name for sample in dataset.of_role(Role.SIGNAL))
        sources = tuple(source.name for source in dataset.systematics)
        settings.require_parameters(signals, sources)
        if not settings.strengths and STRENGTH in sources:
            raise ConfigError(f"strengths: {STRENGTH} is a source too")
        strengths = {name: tuple(own) for name, own in settings.strengths.items()} or {STRENGTH: signals}
        names = (*strengths, *sources)
        chosen = settings.of_interest or tuple(strengths)
        unconstrained = {*strengths, *map(Partner.name_free, settings.free), *chosen}
        constrained = tuple(name not in unconstrained for name in names)
        known = np.diag(np.array(constrained, dtype=np.float64))
        if settings.partner is not None:
            settings.partner.require_common(names)
            units = np.array([FREE_SIZE if name in map(Partner.name_free, settings.free) else 1.0 for name in names])
            known = known + settings.partner.about(names) * np.outer(units, units)
        interest = tuple(i for i, name in enumerate(names) if name in chosen)
        return cls(tuple(strengths), tuple(strengths.values()), sources, interest, known, constrained)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return self.strengths + self.sources

    @property
    def is_plain(self) -> bool:
        """Whether there is one strength, all sources are constrained, and nothing else is known."""
        constraints = np.diag([0.0, *np.ones(len(self.sources))])
        return self.is_single_strength and bool(np.array_equal(self.known, constraints))

    def other_processes(self, strength: int) -> tuple[str, ...]:
        """Signal processes of all strengths but one."""
        others = (names for i, names in enumerate(self.processes) if i != strength)
        return tuple(name for names in others for name in names)

    def own_component(self, parameter: int) -> int:
        """Place of a parameter's own ratio among the f's: r₀ of each strength, a constant, then f_k of each source."""
        return parameter if parameter < len(self.strengths) else parameter + 1

    def expect_sigma(
        self, parameter: int, signal: Floats, shifts: Floats, variance: Floats, without: Sequence[int] | None = None
    ) -> float:
        """σ of a parameter from templates: `signal` of each strength, `shifts` (source, bin) and variance of the bins.

        Sources in `without` are left out; all that have a constraint if it is None.
        """
        left_out = [k for k in range(len(self.sources)) if self.constrained[len(self.strengths) + k]]
        left_out = left_out if without is None else list(without)
        if self.is_plain:
            return find_sigma(signal, np.delete(shifts, left_out, axis=0), variance)
        rows = np.vstack([signal, shifts])
        gone = [len(self.strengths) + k for k in left_out]
        kept = [i for i in range(len(rows)) if i not in gone]
        information = (rows[kept] / variance) @ rows[kept].T + self.known[np.ix_(kept, kept)]
        return math.sqrt(float(invert_information(information)[kept.index(parameter), kept.index(parameter)]))

    @property
    def are_strengths(self) -> bool:
        """Whether all parameters of interest are strengths of signals."""
        return all(i < len(self.strengths) for i in self.interest)

    @property
    def is_single_strength(self) -> bool:
        """Whether there is one strength, and it alone is of interest."""
        return len(self.strengths) == 1 and self.interest == (0,)

    def require_effects(self, effects: Floats) -> None:
        """Refuse a source without a constraint that changes nothing, given effects as (…, source, …)."""
        for k, name in enumerate(self.sources):
            if not self.constrained[len(self.strengths) + k] and not np.any(effects[:, k]):
                raise DataError(
                    f"source {name} has no constraint, and no effect on the events of a fold by what is learned from "
                    "the others: it changes nothing, or there are too few events to tell; nothing measures it"
                )

    def require_separable(self, covariance: Floats) -> None:
        """Refuse two parameters without a constraint that have the same effect, given the covariance of all."""
        size = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(size, size)
        loose = [i for i, known in enumerate(self.constrained) if not known]
        for i in loose:
            for j in loose:
                if i < j and abs(correlation[i, j]) > INSEPARABLE:
                    raise DataError(
                        f"{self.names[i]} and {self.names[j]} cannot be told apart: their correlation is "
                        f"{correlation[i, j]:+.4f}; measure one of them, or give one a constraint"
                    )


def free_normalisations(dataset: Dataset, processes: Sequence[str]) -> Dataset:
    """Return the dataset with a source for each background whose normalisation is free: one unit is `FREE_SIZE`."""
    if not processes:
        return dataset
    backgrounds = [sample.name for sample in dataset.of_role(Role.BACKGROUND)]
    require_known("free", processes, backgrounds, "background process")
    sources = [Systematic.norm(Partner.name_free(process), FREE_SIZE, processes=[process]) for process in processes]
    return Dataset(dataset.samples, (*dataset.systematics, *sources), dataset.folds)


def invert_information(information: Floats) -> Floats:
    """Return the covariance of all parameters, scaled to a unit diagonal first."""
    matrix = information + WEAK * np.eye(len(information))
    size = 1.0 / np.sqrt(np.diag(matrix))
    return np.asarray(np.linalg.inv(matrix * np.outer(size, size)) * np.outer(size, size))


def find_sigma(signal: Floats, shifts: Floats, variance: Floats) -> float:
    """σ of the only strength from templates; refused where numbers cannot tell the signal from nothing."""
    information = float(profiled_information(signal, shifts, variance))
    if not information > 0:
        raise DataError(
            f"the signal expects {signal.sum():.3g} events, too few beside the background to find its strength"
        )
    return 1.0 / math.sqrt(information)
