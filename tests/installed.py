"""A wheel or an sdist, tested as a user gets it: in an empty environment, far from the repository.

    python tests/installed.py dist/qbdt-0.1.0-py3-none-any.whl [options of pytest]

Prints the size of the installation; runs the commands that every installation has and the paper's study in short; then
all tests that need no package but pytest and hypothesis. Each test file that is left out is named with its reason.
Needs the standard library only.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent
TOOLS = ("pytest", "hypothesis")
REPOSITORY = "repository"
STUDY = ("reproduce", "--out", "study", "--trees", "5", "--halves", "1", "--jobs", "1", "--quiet")


def main(distribution: Path, options: list[str]) -> None:
    """Install a distribution into a new environment and try it there."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        python = _install(distribution, folder / "environment")
        _run_commands(python, folder)
        _run_tests(python, folder, options)


def _install(distribution: Path, folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    python = next(path for path in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if path.exists())
    before = _megabytes(folder)
    _call(
        python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", distribution.resolve()
    )
    print(f"== {distribution.name}: {_megabytes(folder) - before:.0f} MB with all that it needs", flush=True)
    _call(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *TOOLS)
    return python


def _megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def _run_commands(python: Path, folder: Path) -> None:
    """Run what needs no extras, and see that what needs one says which."""
    for command in (("--version",), ("cite",), ("init", "analysis.yaml"), ("schema",), STUDY):
        _call(python, "-m", "qbdt", *command, cwd=folder)
    done = subprocess.run(
        [python, "-m", "qbdt", "generate", "tautaugamma", "--out", "sample"], cwd=folder, capture_output=True, text=True
    )
    if done.returncode != 2 or "pip install 'qbdt[generate]'" not in done.stderr:
        sys.exit(f"qbdt generate without its extra: exit code {done.returncode}, {done.stderr}")


def _run_tests(python: Path, folder: Path, options: list[str]) -> None:
    """Run the tests from a copy beside which there is no source."""
    shutil.copytree(TESTS, folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TESTS.parent / "pyproject.toml", folder)
    chosen = []
    for path in sorted(TESTS.rglob("test_*.py")):
        name = str(path.relative_to(TESTS.parent))
        if missing := _find_missing(path, python):
            print(f"left out: {name}: needs {', '.join(sorted(missing))}")
        else:
            chosen.append(name)
    _call(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *options, cwd=folder)


def _find_missing(path: Path, python: Path) -> set[str]:
    """Packages that a test file imports, itself or through its helpers, and that are not installed."""
    names = {name for file in _with_helpers(path, set()) for name in _imported(file)}
    script = "import sys, importlib.util as u; print(*[n for n in sys.argv[1:] if u.find_spec(n) is None])"
    asked = [name for name in sorted({*names} - {"tests"}) if name != REPOSITORY]
    found = subprocess.run([python, "-c", script, *asked], check=True, capture_output=True, text=True)
    return {*found.stdout.split(), *({REPOSITORY} & names)}


def _with_helpers(path: Path, seen: set[Path]) -> Iterator[Path]:
    """Yield a test file and the modules of `tests` that it imports."""
    if path in seen:
        return
    seen.add(path)
    yield path
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests"):
            module = TESTS.parent.joinpath(*(node.module or "").split("."))
            for helper in (module.with_suffix(".py"), *(module / f"{alias.name}.py" for alias in node.names)):
                if helper.exists():
                    yield from _with_helpers(helper, seen)


def _imported(path: Path) -> Iterator[str]:
    """Yield the top-level names that a file imports; a file that looks for its repository needs that."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.importorskip" and node.args:
            yield from [str(arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant)]
    depth = len(path.relative_to(TESTS).parts)
    if f"parents[{depth}]" in text and path.name != "conftest.py":
        yield REPOSITORY


def _call(python: Path, *words: object, cwd: Path | None = None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    print("==", *(Path(str(word)).name if isinstance(word, Path) else word for word in words), flush=True)
    subprocess.run([python, *map(str, words)], cwd=cwd, env=environment, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
