"""The whole step in one call: `run_fit` from a scored dataset to a `FitResult`, `write_fit` to a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.data import Dataset
from qbdt.files import provenance, write_text
from qbdt.inference.combine import write_datacard
from qbdt.inference.construction import BuiltTemplates, Filler, build_templates
from qbdt.inference.histfactory import write_xml
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.result import FitResult
from qbdt.inference.settings import FitSettings
from qbdt.inference.source_significance import background_uncertainty, source_significances
from qbdt.inference.summary import fit_freely, scan_mu, summarise
from qbdt.inference.templates.template_set import Note, TemplateSet
from qbdt.inference.workspace import build_workspace, rename_reserved, write_workspace
from qbdt.progress import Progress, silent

__all__ = ["fit_templates", "run_fit", "write_fit"]


def run_fit(
    scored: Dataset,
    settings: FitSettings | None = None,
    choose_on: Dataset | None = None,
    progress: Progress = silent,
    filler: Filler | None = None,
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
    filler
        Where `scored` is only a sample: fills the templates from all events, see `build_templates`.

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
    built = build_templates(scored.require_usable(), settings, choose_on, filler)
    result = fit_templates(built.templates, settings, progress)
    return replace(result, settings=_with_choices(settings, built))


def fit_templates(
    templates: TemplateSet, settings: FitSettings | None = None, progress: Progress = silent
) -> FitResult:
    """Fit templates that are already there: the expected result, and the observed one where they have data."""
    settings = settings or FitSettings()
    templates = rename_reserved(templates, settings.poi, settings.channel)
    names = {"poi": settings.poi, "measurement": settings.measurement, "channel": settings.channel}
    spec = build_workspace(templates, **names, mc_stat=settings.mc_stat)
    likelihoods = {"Asimov": Likelihood(spec, data=templates.asimov)}
    if templates.data is not None and not np.any(templates.data > 0):
        templates = templates.with_notes(
            [Note("recorded data", "no events in any bin: the result is the expected one")]
        )
    elif templates.data is not None:
        likelihoods["recorded"] = Likelihood(spec)
    summaries, scan = {}, None
    with progress("fitting", len(likelihoods) + settings.scan) as advance:
        for data, likelihood in likelihoods.items():
            best = fit_freely(likelihood)
            summaries[data] = summarise(best, data, refit=settings.impacts == "refit")
            advance(1)
        if settings.scan:
            scan = scan_mu(best)  # of the recorded data where there are any, which come last
            advance(1)
    expected, observed = summaries["Asimov"], summaries.get("recorded")
    single, total = source_significances(templates), background_uncertainty(templates, expected)
    return FitResult(expected, observed, templates, spec, settings.model_dump(), scan, single, total)


def write_fit(result: FitResult, folder: Path | str, source: Mapping[str, Any] | None = None) -> list[Path]:
    """Write a result to a folder: numbers, templates, and the workspace in all three forms.

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
        `fit.json`, `templates.json`, `workspace.json`, the HistFactory measurement and the combine datacard.
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    settings = FitSettings.model_validate({k: v for k, v in result.settings.items() if k in FitSettings.model_fields})
    numbers = {**result.to_dict(), "provenance": dict(provenance() if source is None else source)}
    for name, plain in (("fit.json", numbers), ("templates.json", result.templates.to_dict())):
        write_text(root / name, json.dumps(plain, indent=1) + "\n")
    card = write_datacard(result.templates, root / "combine", channel=settings.channel, mc_stat=settings.mc_stat)
    return [
        root / "fit.json",
        root / "templates.json",
        write_workspace(result.workspace, root / "workspace.json"),
        write_xml(result.workspace, root / "histfactory", settings.measurement),
        card,
    ]


def _with_choices(settings: FitSettings, built: BuiltTemplates) -> dict[str, object]:
    chosen: dict[str, object] = {"chosen_c": built.c, "chosen_edges": [list(edges) for edges in built.bins.edges]}
    return {**settings.model_dump(), **chosen}
