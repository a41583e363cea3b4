"""The whole step in one call: from a scored dataset, templates or a measurement to a `FitResult`, and to a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.data import Dataset, Role
from qbdt.errors import FitError
from qbdt.files import provenance
from qbdt.files.records import write_record
from qbdt.inference.analytic_likelihood import AnalyticLikelihood
from qbdt.inference.answers.collection import collect_answers
from qbdt.inference.combine import write_datacard
from qbdt.inference.construction import build_templates
from qbdt.inference.histfactory import write_xml
from qbdt.inference.hs3 import write_hs3
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.measurement import Measurement
from qbdt.inference.noise_constraints import find_noise_constraints
from qbdt.inference.result import FitResult
from qbdt.inference.settings import FitSettings
from qbdt.inference.source_significance import background_uncertainty, source_significances
from qbdt.inference.summary import fit_freely, scan_mu, summarise
from qbdt.inference.templates.template_set import Note, TemplateSet
from qbdt.inference.workspace import describe_measurement, expect_counts, write_workspace
from qbdt.progress import Progress, silent


def run_fit(
    scored: Dataset,
    settings: FitSettings | None = None,
    choose_on: Dataset | None = None,
    progress: Progress = silent,
) -> FitResult:
    """Templates, workspace and fit of a scored dataset.

    Parameters
    ----------
    scored
        Dataset with one feature, the score; larger is more signal-like.
    settings
        How; the defaults are the paper's.
    choose_on
        Other events with scores, to choose c and the edges on; see `build_templates`.
    progress
        Told how far the fits have come.

    Examples
    --------
    >>> import numpy as np
    >>> from qbdt import Events, Sample, Systematic
    >>> rng = np.random.default_rng(1)
    >>> signal = Sample("s", "signal", Events({"score": rng.normal(1, 1, 2000)}, np.full(2000, 0.01)))
    >>> background = Sample("b", "background", Events({"score": rng.normal(-1, 1, 2000)}, np.full(2000, 0.1)))
    >>> scored = Dataset([signal, background], [Systematic.norm("xs", 0.1, processes=["b"])])
    >>> result = run_fit(scored, FitSettings(binning="equal_signal", bins=5, scan=False))
    >>> result.expected.z_stat > result.expected.z > 0
    True
    """
    settings = settings or FitSettings()
    built = build_templates(scored.require_usable(), settings, choose_on)
    result = fit_templates(built.templates, settings, progress)
    chosen = {"chosen_c": built.c, "chosen_edges": [list(edges) for edges in built.bins.edges]}
    return replace(result, settings={**settings.model_dump(), **chosen})


def fit_templates(
    templates: TemplateSet, settings: FitSettings | None = None, progress: Progress = silent
) -> FitResult:
    """Fit templates that are already there: the expected result, and the observed one where they have data."""
    settings = settings or FitSettings()
    signals = [process.name for process in templates.of_role(Role.SIGNAL)]
    measurement = Measurement({settings.channel: templates}, {settings.poi: signals})
    result = fit_measurement(measurement, settings, progress)
    single = source_significances(result.templates)
    return replace(result, single=single, total_background=background_uncertainty(result.templates, result.expected))


def fit_measurement(
    measurement: Measurement, settings: FitSettings | None = None, progress: Progress = silent
) -> FitResult:
    """Fit the regions of a measurement together: the expected result, and the observed one where all have data.

    Of the settings `mc_stat`, `mc_model`, `impacts`, `scan`, `limits`, `contours`, `goodness`, `toys` and the name
    `measurement` are used; everything else is about making templates.
    """
    settings = settings or FitSettings()
    measurement = measurement.rename_reserved()
    spec = describe_measurement(
        measurement, name=settings.measurement, mc_stat=settings.mc_stat, mc_model=settings.mc_model
    )
    if measurement.unconstrained:
        if settings.limits != "none":
            free = measurement.unconstrained[0]
            raise FitError(f"limits: {free} is measured, and without signal it may have no effect: fix it for limits")
        measurement = _note_no_constraint(measurement)
    kind = AnalyticLikelihood if measurement.unconstrained else Likelihood  # pyhf has no parabola
    likelihoods = {"Asimov": kind(spec, data=expect_counts(measurement, spec))}
    if (recorded := measurement.recorded) is not None:
        if any(np.any(counts > 0) for counts in recorded.values()):
            likelihoods["recorded"] = kind(spec)
        else:
            measurement = _note_no_data(measurement)
    summaries, scan, answers = {}, None, None
    wanted = len(measurement.regions) > 1 or settings.contours or {settings.limits, settings.goodness} != {"none"}
    refit, groups = settings.impacts == "refit", measurement.groups
    with progress("fitting", len(likelihoods) + settings.scan + wanted) as advance:
        for data, likelihood in likelihoods.items():
            best = fit_freely(likelihood)
            summaries[data] = summarise(best, data, refit, measurement.of_interest, groups)
            advance(1)
        if settings.scan:
            scan = scan_mu(best)  # of the recorded data where there are any, which come last
            advance(1)
        if wanted:
            answers = collect_answers(best, measurement, spec, settings, recorded="recorded" in likelihoods)
            advance(1)
    result = FitResult(summaries["Asimov"], summaries.get("recorded"), measurement, spec, settings.model_dump(), scan)
    noise = find_noise_constraints(measurement, result.expected)
    return replace(result, answers=answers, noise=noise)


def _note_no_data(measurement: Measurement) -> Measurement:
    note = Note("recorded data", "no events in any bin: the result is the expected one")
    return measurement.map({name: region.with_notes([note]) for name, region in measurement.regions.items()})


def _note_no_constraint(measurement: Measurement) -> Measurement:
    """Say in the first region which files a fit without constraints on some sources cannot have."""
    name, region = next(iter(measurement.regions.items()))
    told = "no constraint, as it is measured; pyhf and HistFactory constrain all sources, so they get no file"
    return measurement.map({name: region.with_notes([Note(one, told) for one in measurement.unconstrained])})


def write_fit(result: FitResult, folder: Path | str, source: Mapping[str, Any] | None = None) -> list[Path]:
    """Write a result to a folder: numbers, templates, and the workspace in all four forms.

    Parameters
    ----------
    result
        What to write.
    folder
        Where to; made if it is not there.
    source
        What `fit.json` is to say about where it comes from; versions by default.

    Returns
    -------
    list of Path
        `fit.json`, `templates.json` (`measurement.json` where there are several regions or free parameters),
        `workspace.json` (pyhf), `hs3.json`, the HistFactory measurement and the combine datacard. pyhf's file and that
        of HistFactory, which constrain every source, are not written where a source is of interest.
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    settings = FitSettings.model_validate({k: v for k, v in result.settings.items() if k in FitSettings.model_fields})
    numbers = {**result.to_dict(), "provenance": dict(provenance() if source is None else source)}
    templates, plain = _plain_templates(result.measurement)
    for name, content in (("fit.json", numbers), (templates, plain)):
        write_record(root / name, content, indent=1)
    constrained = not result.measurement.unconstrained
    return [
        root / "fit.json",
        root / templates,
        *([write_workspace(result.workspace, root / "workspace.json")] if constrained else []),
        write_hs3(result.measurement, result.workspace, root / "hs3.json"),
        *([write_xml(result.workspace, root / "histfactory", settings.measurement)] if constrained else []),
        write_datacard(result.measurement, root / "combine", settings.mc_model if settings.mc_stat else None),
    ]


def _plain_templates(measurement: Measurement) -> tuple[str, dict[str, Any]]:
    """Name and content of the file with the templates: one region without further parameters is a set of templates."""
    regions = tuple(measurement.regions.values())
    named = measurement.fixed or measurement.bounds or measurement.unconstrained
    if len(regions) == 1 and len(measurement.factors) == 1 and not named:
        return "templates.json", regions[0].to_dict()
    return "measurement.json", measurement.to_dict()
