"""Files for ROOT: RBDT by rules from its source, and ROOT itself where it is there with TMVA (`nox -s readers`)."""

import json
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

from qbdt.data.events import Events
from qbdt.models.export.comparison import bound_rounding
from qbdt.models.export.exporter import FORMATS, export_model
from qbdt.models.export.probes import make_probes
from qbdt.models.export.tmva_xml import read_tmva
from qbdt.models.export.xgboost_json import read_xgboost, write_xgboost
from qbdt.trees.ensemble import Ensemble
from tests.models.export.models import random_model

SEEDS = range(12)


def export_sums(model, folder, to):
    """Export a model; the files of its sums of trees, with the sums themselves."""
    done = export_model(model, folder / f"m{FORMATS[to]}", to)
    files = [path for path in done.files if not path.name.endswith("index.json")]
    sums = [ensemble for member in model.members for ensemble in member.components.values()]
    return zip(files, sums, strict=True)


def make_rows(model):
    """Rows around every cut in single precision, without missing values: ROOT's readers have none."""
    values = np.concatenate([batch.values for batch in make_probes(model)]).astype(np.float32)
    return values[np.isfinite(values).all(axis=1)][::17]


def rbdt_value(path, row):
    """What RBDT::LoadXGBoost makes of a file and EvaluateBinary of a row; NaN goes right at every cut."""
    learner = json.loads(path.read_text())["learner"]
    assert learner["objective"]["name"] == "reg:squarederror"
    trees = learner["gradient_booster"]["model"]["trees"]
    assert trees, "RBDT takes the last leaf of an empty list"
    total = np.float32(float(learner["learner_model_param"]["base_score"]))
    for tree in trees:
        at = 0
        while tree["left_children"][at] != -1:
            left = row[tree["split_indices"][at]] < np.float32(tree["split_conditions"][at])
            at = tree["left_children" if left else "right_children"][at]
        total += np.float32(tree["split_conditions"][at])
    return total


@pytest.mark.parametrize("seed", SEEDS)
def test_xgboost_files_by_the_rules_of_rbdt(seed, tmp_path):
    model = random_model(seed)
    rows = make_rows(model)[::5]
    for path, ensemble in export_sums(model, tmp_path, "xgboost"):
        found = [rbdt_value(path, row) for row in rows]
        assert np.allclose(found, read_xgboost(path, rows), rtol=0, atol=bound_rounding(ensemble))


def test_a_sum_without_trees_is_one_leaf_for_rbdt(tmp_path):
    write_xgboost(Ensemble(("pt",), ()), tmp_path / "m.json", {})
    assert rbdt_value(tmp_path / "m.json", np.zeros(1, np.float32)) == 0
    assert read_xgboost(tmp_path / "m.json", np.zeros((3, 1), np.float32)).tolist() == [0, 0, 0]


@pytest.fixture(scope="module")
def tmva():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel of ROOT calls itself an alpha release
        root = pytest.importorskip("ROOT")
        if not hasattr(root, "TMVA"):
            pytest.skip("this ROOT is built without TMVA")
    return root.TMVA


def evaluate_with_tmva(path, features, rows):
    """Scores by TMVA's reader in a program of its own: ROOT 5 knows no Python of today."""
    folder = path.parent
    shutil.copy(Path(__file__).with_name("tmva_reader.C"), folder)
    lines = [str(len(features)), *features, *(" ".join(f"{value:.9g}" for value in row) for row in rows)]
    (folder / "rows.txt").write_text("\n".join(lines) + "\n")
    macro = f'tmva_reader.C("{path.name}", "rows.txt", "scores.txt")'
    subprocess.run(["root", "-b", "-l", "-q", macro], cwd=folder, check=True)
    return np.loadtxt(folder / "scores.txt", ndmin=1)


def has_tmva():
    """Whether the programs of a ROOT with TMVA are here; those of the wheel on PyPI are not."""
    asked = ["root-config", "--has-tmva"]
    return bool(shutil.which(asked[0])) and subprocess.check_output(asked, text=True).strip() == "yes"


@pytest.mark.skipif(not has_tmva(), reason="no program root with TMVA")
def test_tmva_scores_as_our_reader_of_its_files_does(tmp_path):
    for model in map(random_model, SEEDS):
        rows = make_rows(model)
        for path, ensemble in export_sums(model, tmp_path, "tmva"):
            found = evaluate_with_tmva(path, model.features, rows)
            assert np.allclose(found, read_tmva(path, rows), rtol=0, atol=bound_rounding(ensemble))
            scores = ensemble.score(Events(dict(zip(model.features, rows.T, strict=True)), np.ones(len(rows))))
            assert np.allclose(found, scores, rtol=0, atol=bound_rounding(ensemble))


def evaluate_with_rbdt(tmva, path, features, rows):
    import xgboost

    regressor = xgboost.XGBRegressor()
    regressor.load_model(path)
    file = str(path.with_suffix(".root"))
    tmva.Experimental.SaveXGBoost(regressor, "m", file, num_inputs=len(features))
    return np.ravel(tmva.Experimental.RBDT("m", file).Compute(rows))


def test_rbdt_scores_as_xgboost_does(tmp_path, tmva):
    for model in map(random_model, SEEDS):
        rows = make_rows(model)
        for path, ensemble in export_sums(model, tmp_path, "xgboost"):
            found = evaluate_with_rbdt(tmva, path, model.features, rows)
            assert np.allclose(found, read_xgboost(path, rows), rtol=0, atol=bound_rounding(ensemble))
