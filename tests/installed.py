"""Wheel and sdist, tested as a user gets them: each in an empty environment, far from the repository.

    python tests/installed.py dist/qbdt-0.1.0-py3-none-any.whl [dist/qbdt-0.1.0.tar.gz] [options of pytest]

Prints the size of the installation; runs the commands that every installation has, and the demo; then all tests that
need no package but pytest, its xdist and hypothesis. Files that are left out are named with a reason. A second file
must install the same bytes as the first: demo and tests would do the same, and only short commands are run.
Needs the standard library only.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent
TOOLS = ("pytest", "pytest-xdist", "hypothesis")
REPOSITORY = "repository"
DEMO = ("demo", "--quiet")

SIZES = """
from importlib.metadata import distributions
def size(found):
    paths = [found.locate_file(file) for file in found.files or [] if not str(file).endswith(".pyc")]
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6
sizes = {found.metadata["Name"]: size(found) for found in distributions()}
sizes = {name: size for name, size in sizes.items() if name not in ("pip", "setuptools")}
print(f"{sum(sizes.values()):.0f} MB in {len(sizes)} packages, without compiled Python; the largest:")
for name in sorted(sizes, key=sizes.get, reverse=True)[:12]:
    print(f"{sizes[name]:7.1f} {name}")
"""

HASHES = """
import json
from importlib.metadata import files
print(json.dumps({str(file): file.hash.value for file in files("qbdt") if file.hash and file.parts[0] == "qbdt"}))
"""


def main(distributions: list[Path], options: list[str]) -> None:
    """Install each distribution into a new environment and try it there."""
    installed: dict[str, str] = {}
    for distribution in distributions:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            python = _install(distribution, folder / "environment")
            _run_commands(python, folder)
            found = _hash_files(python)
            if installed == found:
                print(f"{distribution.name}: the same {len(found)} files as {distributions[0].name}", flush=True)
            elif installed:
                names = sorted({name for name, _ in installed.items() ^ found.items()})
                sys.exit(f"{distribution.name} and {distributions[0].name} install different files: {', '.join(names)}")
            else:
                _call(python, "-m", "qbdt", *DEMO, cwd=folder)
                _run_tests(python, folder, options)
                installed = found


def _hash_files(python: Path) -> dict[str, str]:
    """Return the hashes of the package's installed files, by name."""
    found: dict[str, str] = json.loads(subprocess.check_output([python, "-I", "-c", HASHES], text=True))
    return found


def _install(distribution: Path, folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    python = next(path for path in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if path.exists())
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _call(python, *pip, distribution.resolve())
    _call(python, "-c", SIZES)
    _call(python, *pip, *TOOLS)
    return python


def _run_commands(python: Path, folder: Path) -> None:
    """Run what needs no extras, and see that what needs one says which."""
    for command in (("--version",), ("cite",), ("init", "analysis.yaml"), ("schema",)):
        _call(python, "-m", "qbdt", *command, cwd=folder)
    generate = ("generate", "tautaugamma", "--signal", "10", "--background", "10", "--out", "sample")
    done = subprocess.run([python, "-m", "qbdt", *generate], cwd=folder, capture_output=True, text=True)
    if done.returncode != 2 or "pip install 'qbdt[generate]'" not in done.stderr:
        sys.exit(f"qbdt generate without its extra: exit code {done.returncode}, {done.stderr}")


def _run_tests(python: Path, folder: Path, options: list[str]) -> None:
    """Run the tests from a copy beside which there is no source."""
    shutil.copytree(TESTS, folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TESTS.parent / "pyproject.toml", folder)
    chosen = []
    for path in sorted(TESTS.rglob("test_*.py")):
        name = str(path.relative_to(TESTS.parent))
        if missing := _find_missing(path, python, folder):
            print(f"left out: {name}: needs {', '.join(sorted(missing))}", flush=True)
        else:
            chosen.append(name)
    _call(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *options, cwd=folder)


def _find_missing(path: Path, python: Path, folder: Path) -> set[str]:
    """Packages that a test file imports, itself or through its helpers, and that are not installed.

    They are looked for in the folder of the tests: in the repository Python finds `validation` and `benchmarks`.
    """
    fixtures = [folder / "conftest.py" for folder in path.parents if folder.is_relative_to(TESTS)]
    files = [path, *(file for file in fixtures if file.exists())]
    names = {name for file in files for used in _with_helpers(file, set()) for name in _imported(used)}
    script = "import sys, importlib.util as u; print(*[n for n in sys.argv[1:] if u.find_spec(n) is None])"
    asked = [name for name in sorted({*names} - {"tests"}) if name != REPOSITORY]
    found = subprocess.run([python, "-c", script, *asked], cwd=folder, check=True, capture_output=True, text=True)
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
    """Yield the packages that a file imports; a file that looks for its repository needs that.

    A test that cannot do without a package says so itself (`pytest.importorskip`) and is skipped alone.
    """
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
    depth = len(path.relative_to(TESTS).parts)
    if f"parents[{depth}]" in text and path.name != "conftest.py":
        yield REPOSITORY


def _call(python: Path, *words: object, cwd: Path | None = None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    print("==", *(Path(str(word)).name if isinstance(word, Path) else word for word in words), flush=True)
    subprocess.run([python, *map(str, words)], cwd=cwd, env=environment, check=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    files = [Path(word) for word in words if word.endswith((".whl", ".tar.gz"))]
    main(files, words[len(files) :])
