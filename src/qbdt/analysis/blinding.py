"""Blinding: before an analysis is approved, recorded data are hidden where the signal would be seen.

Blind results are those on the Asimov data. Of the recorded data only bins are shown in which the signal is too small
to be seen, s/√b at most `fit: blind_above`, and control regions: those that neither histogram the score nor train.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from qbdt.analysis.schema import Analysis, Region
from qbdt.arrays import Floats
from qbdt.inference.templates import TemplateSet

BLIND = "Blind: results are expected ones, on Asimov data; recorded data are hidden where they could show the signal."
UNBLINDED = "Unblinded: results are on recorded data."
NO_DATA = "No recorded data: results are expected ones, on Asimov data."


def find_open_data(templates: Mapping[str, TemplateSet], analysis: Analysis) -> dict[str, Floats] | None:
    """Recorded events per bin of each region, NaN in bins that are hidden; None where results are not blind."""
    if not analysis.fit.blind or all(one.data is None for one in templates.values()):
        return None
    found = {}
    for name, one in templates.items():
        data = np.full(one.n_bins, np.nan) if one.data is None else one.data
        found[name] = np.where(_hidden(one, analysis.regions.get(name), analysis.fit.blind_above), np.nan, data)
    return found


def _hidden(templates: TemplateSet, region: Region | None, threshold: float) -> Floats:
    """Whether the data of each bin are hidden."""
    if region is not None and (region.blind is not None or region.is_control):
        return np.full(templates.n_bins, bool(region.blind))
    background = templates.background
    return np.asarray(templates.signal > threshold * np.sqrt(np.maximum(background, 0.0)))


def open_data(analysis: Analysis) -> Analysis:
    """Return the analysis with observed results and all data."""
    return analysis.model_copy(update={"fit": analysis.fit.model_copy(update={"blind": False})})


def name_fit(analysis: Analysis) -> str:
    """What a run calls its fit: it says where recorded data are left out of it."""
    with_data = any(sample.role == "data" for sample in analysis.samples.values())
    return "fit, blind: recorded data take no part until --unblind" if with_data and analysis.fit.blind else "fit"


def describe_blinding(blind: bool, with_data: bool) -> str:
    """Return the line that names the data that are shown."""
    if not with_data:
        return NO_DATA
    return BLIND if blind else UNBLINDED
