"""`read_partner`: the information of a control region, another channel or any workspace, for training.

It is the expected second derivative of −ln L at the nominal point, over all parameters of the model but for the terms
that constrain sources: these are counted once, by the training. MC statistics and other private parameters are
profiled when the training asks (`Partner.about`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.errors import FitError, hint_at
from qbdt.inference.measurement import Measurement
from qbdt.inference.pyhf_model import Parameter, PyhfModel
from qbdt.inference.templates.template_set import TemplateSet
from qbdt.inference.workspace import describe_expectation, read_workspace
from qbdt.training import STRENGTH, Partner


def read_partner(
    source: Path | str | Mapping[str, Any] | Measurement | TemplateSet,
    poi: str | None = STRENGTH,
    *,
    mc_stat: bool = True,
) -> Partner:
    """Read what is fitted beside the trained region.

    Parameters
    ----------
    source
        A pyhf workspace (a file, or its content), a measurement, or the templates of one region with signal.
    poi
        Name that the trained signal strength has there. None where the trained signal is not part of it: a control
        region, or a channel with a strength of its own. Strengths of other names are found by these, where training
        has several.
    mc_stat
        Whether the statistical uncertainty of the simulation counts, for measurements and templates; a workspace says
        so itself.

    Examples
    --------
    A control region of 400 events, whose yield the source "xs" changes by 20 %:

    >>> sample = {"name": "ttbar", "data": [400.0], "modifiers": []}
    >>> sample["modifiers"] = [{"name": "xs", "type": "normsys", "data": {"lo": 0.8, "hi": 1.2}}]
    >>> spec = {"channels": [{"name": "control", "samples": [sample]}], "version": "1.0.0"}
    >>> spec["measurements"] = [{"name": "m", "config": {"poi": "", "parameters": []}}]
    >>> spec["observations"] = [{"name": "control", "data": [400.0]}]
    >>> read_partner(spec, poi=None).about(["xs"]).round(1)
    array([[16.2]])
    """
    own: Mapping[str, str] = {}
    if isinstance(source, TemplateSet):
        signals = [process.name for process in source.of_role(Role.SIGNAL)]
        spec, own, what = *_describe(Measurement({"region": source}, {STRENGTH: signals}), mc_stat), "templates"
    elif isinstance(source, Measurement):
        spec, own, what = *_describe(source, mc_stat), "measurement"
    elif isinstance(source, Mapping):
        spec, what = dict(source), "workspace"
    else:
        spec, what = read_workspace(source), str(source)
    model = PyhfModel(spec, needs_poi=False)
    _require_strength(model, poi, what)
    free = [i for i, constant in enumerate(model.constant) if not constant]
    # A strength that is called like the trained one, but is another, must not be taken for it.
    renamed = {**own, STRENGTH: f"{STRENGTH} of {what}"}
    return _collect(model, free, renamed if poi is None else {**renamed, poi: STRENGTH}, what)


def _describe(measurement: Measurement, mc_stat: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a workspace of a measurement, and for sources that have another name there their own, such as "lumi"."""
    spelled = measurement.rename_reserved()
    return describe_expectation(spelled, mc_stat), dict(zip(spelled.sources, measurement.sources, strict=True))


def _require_strength(model: PyhfModel, poi: str | None, what: str) -> None:
    """Refuse a name that no strength has there; the message says what there is."""
    strengths = (*model.of_kind("poi"), *model.of_kind("free"))
    if poi is None or poi in strengths:
        return
    hint = hint_at(poi, strengths)
    raise FitError(
        f"{what}: no signal strength {poi}; {hint}{'' if hint.endswith('?') else '.'} Say with poi which it is there; "
        "poi: none (poi=None) where the trained signal is not part of it"
    )


def _collect(model: PyhfModel, free: list[int], renamed: Mapping[str, str], what: str) -> Partner:
    """Expected information of the counts, Σ_bins ∂λ ∂λ / λ, in units of the widths of constraints."""
    expected = model.expected(model.start)
    parameters: list[Parameter] = [model.parameters[i] for i in free]
    widths = np.array([p.width for p in parameters])
    rows: Floats = model.jacobian(model.start, free) * widths[:, None]
    filled = (expected != 0) | rows.any(axis=0)  # a bin that stays empty tells nothing
    _require_events(model, np.where(filled, expected, 1.0), what)
    names = [renamed.get(p.name, p.name) for p in parameters]
    constrained = set(model.constraints.index.tolist())  # factors of single bins may have none
    priors = [float(i in constrained) for i in free]
    information = (rows[:, filled] / expected[filled]) @ rows[:, filled].T
    return Partner(tuple(names), tuple(map(tuple, information.tolist())), tuple(priors))


def _require_events(model: PyhfModel, expected: Floats, what: str) -> None:
    """Refuse bins with a negative expectation, or one that is no number."""
    for channel, own in model.split(expected).items():
        if not np.all(own > 0):
            lowest = int(np.argmin(own))
            raise FitError(
                f"{what}: bin {lowest + 1} of {channel} expects {own[lowest]:.3g} events: a positive number is needed"
            )
