"""Result of a fit to scores: its expected and observed summaries, and notes on its templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.inference.fit_summary import FitSummary, Scan
from qbdt.inference.measurement import Measurement
from qbdt.inference.noise_constraints import NoiseConstraint
from qbdt.inference.partners.joint_fit import JointFit
from qbdt.inference.templates.template_set import TemplateSet
from qbdt.tables import Table, render_html

if TYPE_CHECKING:  # answers are made of fits, whose results are here
    from qbdt.inference.answers.collection import Answers


@dataclass(frozen=True)
class SourceSignificance:
    """Representations of the significance with one source, in standard deviations (appendix A)."""

    source: str  # Name
    z_chi2: float  # sqrt(Σ s²/(b + Δ²)), eq:Zchi2: the uncertainty independent in each bin
    z_0: float  # eq:Q with σ_b = Δ summed over bins, eq:ZQ: the same beyond s ≪ b
    # z_constrained, z_free: z_Q(1) and Z_Q(∞): one nuisance parameter common to all bins, with its prior and without,
    # by the paper's first-order formula for the best θ at μ = 0
    z_constrained: float
    z_free: float
    z_exact: float  # Z_Q(1) with the θ that really minimises −2 ln L


@dataclass(frozen=True)
class BackgroundUncertainty:
    """Uncertainty of the total background after the fit (appendix B), in events."""

    correlated: float  # With the correlations between the sources, eq:sigmab0
    uncorrelated: float  # Without them


@dataclass(frozen=True, eq=False)
class FitResult:
    """Everything that a fit of one or more regions gives.

    Attributes
    ----------
    expected
        Results on the Asimov data of the nominal model at μ = 1.
    observed
        Results on recorded data, where there are any.
    measurement
        The regions and parameters that were fitted.
    workspace
        The same as a pyhf workspace.
    settings
        Settings of the fit, and the constant c and the edges that were chosen.
    scan
        Profile likelihood on the fitted data, where it was asked for.
    single
        Significances of the paper's appendix A, each source alone.
    total_background
        Uncertainty of the total background after the expected fit, the paper's appendix B.
    answers
        Limits, contours, goodness of fit and yields, where there are several regions or settings ask for them.
    noise
        Sources whose constraints noise of the templates may make, worst first.
    shown
        Where results are blind: recorded events per bin of each region, NaN in bins that are hidden.
    joint
        What is expected of a fit together with the workspace that training was told of.
    """

    expected: FitSummary
    observed: FitSummary | None
    measurement: Measurement
    workspace: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    scan: Scan | None = None
    single: tuple[SourceSignificance, ...] = ()
    total_background: BackgroundUncertainty | None = None
    answers: Answers | None = None
    noise: tuple[NoiseConstraint, ...] = ()
    shown: Mapping[str, Floats] | None = None
    joint: JointFit | None = None

    @property
    def templates(self) -> TemplateSet:
        """The templates of the first region; of a fit without regions, all there are."""
        return next(iter(self.measurement.regions.values()))

    @property
    def best(self) -> FitSummary:
        """The observed results where there are any, otherwise the expected ones."""
        return self.expected if self.observed is None else self.observed

    def tables(self) -> tuple[Table, ...]:
        """Tables of the expected and observed results, and the notes on the templates."""
        observed = () if self.observed is None else self.observed.tables()
        rows = tuple((note.subject, note.message) for note in self.measurement.notes)
        notes = (Table("Notes on the templates", ("what", "note"), rows),) if rows else ()
        answers = () if self.answers is None else self.answers.tables()
        joint = () if self.joint is None else self.joint.tables()
        return self.expected.tables() + joint + observed + answers + self._appendix() + self._noise() + notes

    def __str__(self) -> str:
        return "\n\n".join(str(table) for table in self.tables())

    def _repr_html_(self) -> str:
        return render_html(self.best.headline, self.tables(), unfolded=2)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data; templates and workspace have files of their own."""
        shown = {} if self.shown is None else {"shown": {name: _plain_counts(n) for name, n in self.shown.items()}}
        plain = {
            **shown,
            "expected": self.expected.to_dict(),
            "observed": None if self.observed is None else self.observed.to_dict(),
            "single": [dict(vars(row)) for row in self.single],
            "total_background": None if self.total_background is None else dict(vars(self.total_background)),
            "notes": [str(note) for note in self.measurement.notes],
            "settings": dict(self.settings),
            "scan": None if self.scan is None else self.scan.to_dict(),
        }
        if self.noise:
            plain["noise"] = [dict(vars(one)) for one in self.noise]
        if self.joint is not None:
            plain["joint"] = self.joint.to_dict()
        return plain if self.answers is None else {**plain, "answers": self.answers.to_dict()}

    def _noise(self) -> tuple[Table, ...]:
        rows = tuple((one.source, f"{one.fitted:.2f}", f"{one.noise:.2f}") for one in self.noise)
        header = ("source", "σ_θ of the fit", "σ_θ of pure noise")
        return (Table("Constraints that noise of the templates may make", header, rows),) if rows else ()

    def _appendix(self) -> tuple[Table, ...]:
        header = ("source", "Z_χ²", "Z_0", "Z_Q(1)", "Z_Q(∞)", "Z exact")
        rows = tuple(
            (r.source, *(f"{z:.3f}" for z in (r.z_chi2, r.z_0, r.z_constrained, r.z_free, r.z_exact)))
            for r in self.single
        )
        if not rows or self.total_background is None:
            return ()
        total = self.total_background
        sums = (("correlated", f"{total.correlated:.1f}"), ("uncorrelated", f"{total.uncorrelated:.1f}"))
        return (
            Table("One source at a time (appendix A)", header, rows),
            Table("Total background after the fit (appendix B)", ("sources", "σ_b (events)"), sums),
        )


def _plain_counts(counts: Floats) -> list[float | None]:
    """Counts for a file; hidden ones, which are NaN, become null."""
    return [None if np.isnan(count) else count for count in counts.tolist()]
