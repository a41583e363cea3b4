"""Settings are declared once: the estimator, the analysis file and the model file derive from the declaration."""

import inspect
import json
from typing import Any

import numpy as np
import pytest

from qbdt import QBDTClassifier
from qbdt.analysis.schema import Training
from qbdt.errors import ConfigError, DataError
from qbdt.training.ensembles import gain_shares
from qbdt.training.model import End, Ending
from qbdt.training.settings import Settings
from qbdt.trees.ensemble import Ensemble


def test_the_estimator_has_the_settings_with_their_defaults():
    own = inspect.signature(QBDTClassifier).parameters
    wider = {
        "random_state",
        "categorical_features",
        "monotonic_constraints",
        "strengths",
        "at",
    }  # None for the setting's default
    for name, setting in inspect.signature(Settings).parameters.items():
        assert own[name].default == (None if name in wider else setting.default), name
        assert own[name].default is None or name not in wider


def test_the_estimator_describes_every_parameter():
    text = str(inspect.getdoc(QBDTClassifier))
    for name in inspect.signature(QBDTClassifier).parameters:
        assert f"\n{name}\n    " in text
    for name, rule in Settings.rules().items():
        assert name in ("random_state", "categorical_features", "monotonic_constraints", "strengths") or (
            rule.description.split(";")[0][:60] in " ".join(text.split())
        )


def test_docstrings_may_have_lost_their_indentation():
    """Python takes it away from 3.13 on."""
    indented = "One line.\n\n    Parameters\n    ----------\n    {parameters}\n    "
    assert Settings.document(indented) == Settings.document(inspect.cleandoc(indented))
    assert "\nn_leaves\n    " in Settings.document(indented)


def test_the_analysis_file_has_the_settings_with_their_defaults_and_bounds():
    assert set(Training.model_fields) == {*Settings.rules(), "systematics", "with", "by_era"} - {
        "categorical_features",
        "partner",
    }
    properties = Training.model_json_schema()["properties"]
    for name, rule in Settings.rules().items():
        if name in ("binning", "random_state", "categorical_features", "partner"):
            continue  # what a file can say of bins and of no seed is narrower; two others are keys of their own
        shown = properties[name]
        assert shown["description"] == rule.description
        bounds = shown.get("anyOf", [shown])[0]
        assert bounds.get("minimum") == rule.at_least
        assert bounds.get("exclusiveMinimum") == rule.above
        assert bounds.get("maximum") == rule.at_most
    defaults = {name: value for name, value in Training().model_dump(exclude={"by_era"}).items() if value is not None}
    assert Settings(**defaults) == Settings()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_bins": 257}, "max_bins=257: must be at least 3 and at most 256"),
        ({"row_fraction": 0}, "row_fraction=0: must be above 0 and at most 1"),
        ({"learning_rate": np.inf}, "learning_rate=inf: must be above 0"),
        ({"max_depth": 0}, "max_depth=0: must be at least 1 and at most 1e+06"),
        ({"method": "other"}, "method='other': must be one of profile, paper"),
        ({"mc_stat": 1}, "mc_stat=1: must be True or False"),
        ({"binning": "anything"}, "binning='anything': must be 'quantile' or one (n_bins, low, high) per feature"),
        ({"binning": 3}, "binning=3: must be 'quantile' or one (n_bins, low, high) per feature"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(values, message):
    with pytest.raises(ConfigError) as caught:
        Settings(**values)
    assert str(caught.value) == message


def test_numbers_of_numpy_become_plain_ones():
    values: dict[str, Any] = {
        "n_trees": np.int64(4),
        "max_depth": np.int8(3),
        "learning_rate": np.float32(0.5),
        "random_state": np.uint64(7),
        "mc_stat": np.True_,
        "binning": {"pt": (np.int64(5), np.float32(0), np.float64(1))},
        "at": {"tes": np.float32(0.5)},
    }
    plain = Settings(
        n_trees=4,
        max_depth=3,
        learning_rate=0.5,
        random_state=7,
        mc_stat=True,
        binning={"pt": (5, 0.0, 1.0)},
        at={"tes": 0.5},
    )
    assert json.dumps(Settings(**values).to_dict()) == json.dumps(plain.to_dict())


@pytest.mark.parametrize("how", Ending)
def test_an_ending_is_read_back_from_its_message(how):
    end = End(how, "" if how is Ending.COMPLETE else "3 trees")
    assert End.from_message(end.message) == end


def test_an_unknown_ending_is_refused():
    with pytest.raises(DataError, match="'no more time' is no ending"):
        End.from_message("no more time")


def test_no_gain_has_no_shares():
    assert gain_shares(Ensemble(("pt", "m"), ())).tolist() == [[0.0, 0.0]]
