"""What the package says of itself holds: dependencies, extras, recipe, version, files that a release needs."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import yaml

import qbdt
from qbdt.errors import EXTRAS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORT_NAMES = {"pyyaml": "yaml", "scikit-learn": "sklearn"}
BROUGHT_ALONG = {"boost_histogram": "hist", "fsspec": "uproot", "llvmlite": "numba", "markupsafe": "jinja2"}
"""Packages that come with a dependency that cannot do without them."""


def names(requirements):
    found = [re.split(r"[\[<>=]", requirement)[0].lower() for requirement in requirements]
    return {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in found}


def imported():
    """Packages that the source imports."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield (node.module or "").partition(".")[0]


def test_dependencies_are_those_that_are_imported():
    used = set(imported()) - set(sys.stdlib_module_names) - {"qbdt"}
    direct = {BROUGHT_ALONG.get(name, name) for name in used}
    assert direct <= names(PROJECT["dependencies"]) | set(EXTRAS)
    assert names(PROJECT["dependencies"]) <= direct


def test_messages_name_extras_that_exist():
    for module, extra in EXTRAS.items():
        installed = names(PROJECT["optional-dependencies"][extra]) | {
            "distributed",
            "cupy",
        }  # dask[distributed], cupy-cuda13x
        assert module in installed, f"{module} is not in the extra {extra}"


def test_the_recipe_has_the_same_dependencies():
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    lines = [line.replace("matplotlib-base", "matplotlib") for line in recipe["requirements"]["run"]]
    assert sorted(line.replace(" ", "") for line in lines[1:]) == sorted(PROJECT["dependencies"])
    assert PROJECT["requires-python"] == f">={recipe['context']['python_min']}"


def test_the_version_is_that_of_the_installation():
    assert qbdt.__version__ == version("qbdt")
    assert re.match(r"\d+\.\d+", qbdt.__version__)


def test_actions_are_pinned_by_hash():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for action in re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[\w/.-]+@[0-9a-f]{40}", action), f"{path.name}: {action}"


def test_importing_it_imports_nothing_slow():
    """What needs a compiler, a fit or a drawing is imported where it is asked for."""
    slow = ["numba", "scipy", "sklearn", "pydantic", "matplotlib", "pandas", "pyarrow", "awkward", "pyhf"]
    code = f"import sys, qbdt; print(*[name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_fit_imports_neither_pandas_nor_statistics_of_scipy():
    """They are set aside while scikit-learn is imported, and nobody notices who imports them afterwards."""
    code = (
        "import sys, numpy as np; from qbdt import QBDTClassifier\n"
        "x = np.linspace(-1, 1, 40)[:, None]; y = (x[:, 0] > 0) * 1\n"
        "first = QBDTClassifier(n_trees=1, n_threads=1).fit(x, y).predict_proba(x)\n"
        "print([name for name in ('scipy.stats', 'pandas', 'rich') if name in sys.modules])\n"
        "import sklearn.utils.fixes, pandas, scipy\n"
        "print(scipy.stats.norm.cdf(0.0), np.ravel(sklearn.utils.fixes._mode(np.array([1, 2, 2]))[0])[0])\n"
        "frame = pandas.DataFrame(x, columns=['m'])\n"
        "model = QBDTClassifier(n_trees=1, n_threads=1).fit(frame, y)\n"
        "print(model.feature_names_in_, (model.predict_proba(frame) == first).all())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "0.5 2", "['m'] True"]


def test_modules_that_are_imported_or_may_be_by_a_thread_are_not_set_aside():
    code = (
        "import json, sys, threading; from qbdt.estimator.scikit_learn import set_aside\n"
        "unused = {'json': None, 'colorsys': None}\n"
        "with set_aside(unused): print(sys.modules['json'] is json, sys.modules['colorsys'])\n"
        "done = threading.Event(); threading.Thread(target=done.wait).start()\n"
        "with set_aside(unused): print('colorsys' in sys.modules)\n"
        "done.set(); import colorsys\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True None", "False"]
