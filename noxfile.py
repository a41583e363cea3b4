#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Everything that CI runs, one session each; `nox --list` names them, `nox` runs the usual ones.

`make test` needs nothing but make and Python, and does lint, types, docs and tests in one environment.
Sessions here have an environment of their own, for each Python that is installed.
"""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False

PYTHONS = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))
EXTRAS = ["baselines", "dask", "export", "tune"]
REPOSITORY = Path(__file__).parent
KERNEL_TESTS = ["tests/trees", "tests/training/kernels", "tests/test_significance.py", "tests/test_statistics.py"]


def _install(session: nox.Session, *groups: str, options: tuple[str, ...] = ()) -> None:
    """Install the package with all extras; for the generator of events where it has a wheel of the pinned release."""
    with_generator = sys.platform == "linux" and platform.machine() == "x86_64"
    extras = ",".join([*EXTRAS, *(["generate"] if with_generator else [])])
    chosen = [word for group in groups for word in ("--group", group)]
    session.install(f"-e.[{extras}]", *chosen, *options)


def _pytest(session: nox.Session, *options: str, few_examples: bool = False) -> None:
    """Run pytest; with few examples of each property where the session asks for something else than properties.

    As a module of Python it finds `tests`, `validation` and `docs` in the repository, and so do workers of dask. The
    cache has an absolute path, since commands run in folders of their own.
    """
    environment = {"NUMBA_CACHE_DIR": str(Path(session.create_tmp()).resolve() / "numba")}
    if few_examples:
        environment["QBDT_EXAMPLES"] = "5"
    chosen = session.posargs or ["-n", "2", "--dist", "loadgroup"]
    session.run("python", "-m", "pytest", *chosen, *options, env=environment)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run all tests."""
    _install(session, "test")
    _pytest(session)


@nox.session(python="3.11", default=False)
def random_order(session: nox.Session) -> None:
    """Run all tests in an order drawn anew each time; `nox -s random_order -- --randomly-seed=N` repeats one."""
    _install(session, "test")
    session.install("pytest-randomly")
    _pytest(session, few_examples=True)


@nox.session(python="3.11", venv_backend="uv", default=False)
def minimum(session: nox.Session) -> None:
    """Run the tests with the oldest release of each dependency that pyproject.toml allows."""
    _install(session, "test", options=("--resolution", "lowest-direct"))
    _pytest(session, "-W", "default", few_examples=True)


@nox.session(python="3.14", venv_backend="uv", default=False)
def prerelease(session: nox.Session) -> None:
    """Run the tests with the newest Python and the newest release of each dependency, pre-releases included."""
    _install(session, "test", options=("--upgrade", "--prerelease", "allow"))
    _pytest(session, "-W", "default", few_examples=True)


@nox.session(python="3.11", default=False)
def coverage(session: nox.Session) -> None:
    """Measure which lines and branches the tests run, kernels as plain Python; fails under the floor."""
    _install(session, "test", "coverage")
    _pytest(session, "--cov", "--cov-report=", "--cov-fail-under=0")
    session.env["NUMBA_DISABLE_JIT"] = "1"
    _pytest(session, *KERNEL_TESTS, "--cov", "--cov-append", "--cov-report=term", "--cov-report=xml")


@nox.session(python="3.12", venv_backend="mamba|conda", default=False)
def readers(session: nox.Session) -> None:
    """Read exported files with ROOT (its wheels on PyPI have no TMVA) and with onnxruntime in C++, from conda-forge."""
    headers = "onnxruntime-cpp>=1.21,<1.24"  # old headers work with every newer library, not the other way round
    session.conda_install("root", "xgboost", "cxx-compiler", headers, channel="conda-forge")
    session.install("-e.[export]", "pytest", "pytest-xdist", "hypothesis")
    include = Path(session.virtualenv.location) / "include"
    session.env["CPATH"] = ":".join(map(str, (include, include / "onnxruntime", include / "onnxruntime/core/session")))
    tests = [f"tests/models/export/test_{name}.py" for name in ("root", "native")]
    session.run("python", "-m", "pytest", "-W", "default", *session.posargs, *tests)


@nox.session(python="3.11")
def package(session: nox.Session) -> None:
    """Build wheel and sdist, install each where the repository is not, run the demo and the tests there."""
    session.install("build", "twine")
    distributions = Path(session.create_tmp()).resolve() / "dist"
    shutil.rmtree(distributions, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(distributions), str(REPOSITORY))
    files = [str(file) for kind in ("*.whl", "*.tar.gz") for file in distributions.glob(kind)]
    session.run("twine", "check", "--strict", *files)
    few_examples = {"QBDT_EXAMPLES": "5"}  # `tests` tries more
    options = session.posargs or ["-n", "2", "--dist", "loadgroup"]
    session.run("python", "tests/installed.py", *files, *options, env=few_examples)


@nox.session
def lint(session: nox.Session) -> None:
    """Run all hooks of pre-commit: ruff, mypy, spelling, YAML, TOML, notebooks, workflows; `-- pypi` without GitHub."""
    session.install("pre-commit", "pyyaml")
    configuration = Path(".pre-commit-config.yaml")
    options = [option for option in session.posargs if option != "pypi"]
    if options != session.posargs:
        configuration = Path(session.create_tmp()).resolve() / "hooks.yaml"
        session.run("python", ".ci/hooks.py", str(configuration))
    session.run("pre-commit", "run", "--all-files", "--show-diff-on-failure", "--config", str(configuration), *options)


@nox.session(python="3.11")
def types(session: nox.Session) -> None:
    """Check types, with everything that the package uses installed."""
    _install(session, "test", "lint")
    session.run("mypy", *session.posargs)


@nox.session(python="3.11")
def docs(session: nox.Session) -> None:
    """Build the documentation into site/; `nox -s docs -- serve` shows it while it is written."""
    session.install("-e.", "--group", "docs")
    session.run("mkdocs", *(session.posargs or ["build", "--strict"]), env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session(python="3.11", default=False)
def bench(session: nox.Session) -> None:
    """Measure speed against XGBoost, LightGBM and scikit-learn; wants an idle machine."""
    _install(session, "test")
    session.run("python", "-m", "benchmarks", *session.posargs)


if __name__ == "__main__":
    nox.main()
