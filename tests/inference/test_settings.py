"""Settings of the fit: what contradicts itself is refused with a reason."""

import pytest
from pydantic import ValidationError

from qbdt.inference.settings import FitSettings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"binning": "edges"}, "edges: to be given with binning: edges"),
        ({"edges": [0, 1]}, "edges: to be given with binning: edges"),
        ({"binning": "edges", "edges": [0, 1, 1]}, "ascending"),
        ({"binning": "edges", "edges": [0, float("nan")]}, "ascending"),
        ({"c": 0.0}, "must be positive"),
        ({"c": float("nan")}, "must be positive"),
        ({"c": "best"}, "scan"),
        ({"bins": 0}, "greater than or equal to 1"),
        ({"bins": True}, "a number is needed"),
        ({"scale": float("inf")}, "finite"),
        ({"channel": "signal region"}, "a word of up to 100 letters"),
        ({"nonsense": 1}, "Extra inputs"),
    ],
)
def test_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        FitSettings(**values)


def test_the_defaults_are_the_papers():
    settings = FitSettings()
    assert (settings.transform, settings.c, settings.binning, settings.bins) == ("tanh", "scan", "uniform", 20)


def test_the_profiled_method_has_its_own_defaults():
    from qbdt.analysis.analysis_file import parse_analysis

    text = "{name: a, dataset: {name: inferno}, training: {method: profile}, fit: {binning: uniform}}"
    assert parse_analysis(text).fit.binning == "uniform"
    assert parse_analysis(text).fit.transform == "none"
    assert parse_analysis(text.replace("profile", "paper")).fit.transform == "tanh"
