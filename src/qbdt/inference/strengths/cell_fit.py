"""The fit of several scores: cells, templates of these, and a measurement of strengths and other parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qbdt.data import Dataset
from qbdt.errors import FitError
from qbdt.inference.fit import fit_measurement
from qbdt.inference.measurement import Measurement
from qbdt.inference.result import FitResult
from qbdt.inference.settings import FitSettings
from qbdt.inference.templates.cell_floor import join_poor
from qbdt.inference.templates.cells import CellTarget, choose_cells
from qbdt.inference.templates.repair import bound_shifts
from qbdt.inference.templates.score_bins import Bins
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.template_set import Note, TemplateSet
from qbdt.progress import Progress, silent


def fit_strengths(
    scored: Dataset,
    strengths: Mapping[str, Sequence[str]],
    settings: FitSettings | None = None,
    *,
    of_interest: Sequence[str] = (),
    free: Sequence[str] = (),
    figure: str = "determinant",
    choose_on: Dataset | None = None,
    progress: Progress = silent,
) -> FitResult:
    """Fit signal strengths, and sources without constraint such as a mass, in cells of one or more scores.

    Parameters
    ----------
    scored
        Dataset whose features are the scores.
    strengths
        Signal strengths, and the signal processes that each multiplies.
    settings
        `bins` is the largest number of cells, 40 by default, and `min_entries` the floor of each. With `binning:
        categories` every event goes to the category of its largest score, and is binned in that score.
    of_interest
        What is measured, strengths or sources, as in the training of the scores; all strengths by default.
    free
        Backgrounds whose normalisation is free.
    figure
        What cells keep: "determinant" of the covariance of what is measured, "sum" of variances, or the name of one.
    choose_on
        Other events with scores to choose the cells on. Without it they are chosen fold by fold on the other folds.
    progress
        Told how far the fits have come.

    Examples
    --------
    >>> import numpy as np
    >>> from qbdt import Events, ModuloFolds, Sample
    >>> rng = np.random.default_rng(1)
    >>> def sample(name, role, at, total):
    ...     scores = {"a": rng.normal(at[0], 1, 4000), "b": rng.normal(at[1], 1, 4000)}
    ...     return Sample(name, role, Events(scores, np.full(4000, total / 4000), {"event": np.arange(4000)}))
    >>> samples = [sample("ggH", "signal", (2, 0), 80), sample("VBF", "signal", (0, 2), 80)]
    >>> scored = Dataset([*samples, sample("ttbar", "background", (0, 0), 900)], (), ModuloFolds(2, "event"))
    >>> result = fit_strengths(scored, {"mu_ggH": ["ggH"], "mu_VBF": ["VBF"]}, FitSettings(bins=12, scan=False))
    >>> [strength.name for strength in result.expected.strengths], result.expected.strengths[0].sigma_mu < 0.5
    (['mu_ggH', 'mu_VBF'], True)
    """
    settings = settings or FitSettings(bins=40)
    if not strengths:
        raise FitError("strengths={}: at least one signal strength is needed")
    wanted = [s.name for s in scored.systematics] if settings.systematics is None else settings.systematics
    scored = scored.require_usable().with_systematics(wanted)
    named = {name: tuple(own) for name, own in strengths.items()}
    target = CellTarget(named, tuple(of_interest), tuple(free), figure=figure)
    chosen = scored if choose_on is None else choose_on.with_systematics(wanted)
    ways = {"by_folds": choose_on is None, "by_category": settings.binning == "categories"}
    cells = choose_cells(chosen, settings.bins, target, CellTarget.FLOOR * settings.min_entries, **ways)
    templates = bound_shifts(_fill(scored, cells, target, settings))
    measurement = Measurement({settings.channel: templates}, strengths, of_interest, free)
    return fit_measurement(measurement, settings, progress)


def _fill(scored: Dataset, cells: Bins, target: CellTarget, settings: FitSettings) -> TemplateSet:
    """Templates of cells that all have the floor in these events: the ones that have not are joined with others."""
    title = "cell of the scores"
    templates = fill(scored, cells, title)
    joined = join_poor(cells, templates, target, settings.min_entries)
    if joined is not cells:
        floor = f"fewer than {settings.min_entries:g} effective simulated background events in the others"
        note = Note("cells", f"{joined.n_bins} of {cells.n_bins} are left: {floor}, which are joined")
        templates = fill(scored, joined, title).with_notes([note])
    return templates.scaled(settings.scale)
