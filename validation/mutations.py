"""Mutation testing of what must not be wrong: Q and the Fisher information, folds, the checks of model files.

Each mutant has one change: another comparison, operator or number, a condition turned round, an error that is not
raised. Its tests run in a forked process, without the compiler for formulas that are compiled otherwise. A mutant that
passes them survives and is printed: a test is missing, or the change means nothing. Needs a system with `fork`.

Run:  python -m validation.mutations [--file NAME] [--every N]     (make mutations)
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "qbdt"
TESTS = {
    "statistics/significance.py": ("tests/test_significance.py", "tests/test_statistics.py"),
    "statistics/information.py": ("tests/test_statistics.py",),
    "statistics/sensitivity.py": ("tests/test_sensitivity.py",),
    "data/folds.py": ("tests/data/test_folds.py",),
    "data/identity.py": ("tests/data/test_identity.py", "tests/data/test_folds.py"),
    "models/file_text.py": ("tests/models/test_model_content.py", "tests/models/test_model_file.py"),
    "models/tree_content.py": ("tests/models/test_model_content.py", "tests/models/test_model_file.py"),
    "models/model_content.py": ("tests/models/test_model_content.py", "tests/models/test_model_file.py"),
}
UNCOMPILED = ("statistics/significance.py",)
PACKAGES = ("numpy", "scipy.stats", "mpmath", "numba", "pydantic", "sklearn.base", "pyarrow")
"""Imported once, before processes fork; pytest wants to be the first to import its plugins, such as hypothesis."""
CPU_SECONDS = 120
"""A mutant that takes longer hangs, which its tests have noticed."""

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A changed module: line, what was changed into what, and its code."""

    line: int
    change: str
    code: CodeType


def make_mutants(path: Path) -> Iterator[Mutant]:
    """Yield every change of one place in a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hints = {id(part) for hint in _list_hints(tree) for part in ast.walk(hint)}
    for number, node in enumerate(ast.walk(tree)):
        for variant in range(0 if id(node) in hints else _count_variants(node)):
            changed = copy.deepcopy(tree)
            place = next(n for i, n in enumerate(ast.walk(changed)) if i == number)
            _change(place, variant)
            text = f"{_print(node)}  →  {_print(place)}"
            yield Mutant(getattr(node, "lineno", 0), text, compile(ast.fix_missing_locations(changed), path, "exec"))


def _list_hints(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield annotations and settings of the compiler, which nothing reads when a program runs without it."""
    for node in ast.walk(tree):
        for hint in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if hint is not None:
                yield hint
        if isinstance(node, ast.Call) and _print(node.func) == "njit":
            yield node


def _count_variants(node: ast.AST) -> int:
    """How many changes of this node there are; of those inside it, others are made."""
    match node:
        case ast.Compare():
            return len(node.ops)
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op):
            return int(type(op) in SWAPPED)
        case ast.If() | ast.IfExp() | ast.While() | ast.Raise() | ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub()):
            return 1
        case ast.Constant(value=bool() | int() | float()):
            return 1
    return 0


def _change(node: ast.AST, variant: int) -> None:
    match node:
        case ast.Compare():
            node.ops[variant] = SWAPPED[type(node.ops[variant])]()  # type: ignore[call-overload]
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp():
            node.op = SWAPPED[type(node.op)]()  # type: ignore[assignment]
        case ast.If() | ast.IfExp() | ast.While():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Raise():
            node.__class__, node._fields = ast.Pass, ()  # type: ignore[assignment]
        case ast.UnaryOp():
            node.operand = ast.UnaryOp(node.op, node.operand)  # applied twice is not at all
        case ast.Constant():
            node.value = _change_value(node.value)  # type: ignore[arg-type]


def _change_value(value: bool | float) -> bool | float:
    if isinstance(value, bool):
        return not value
    return value + 1 if value + 1 != value else 2 * value  # 1e250 is too large to notice 1


def _print(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0]


def survives(mutant: Mutant, path: Path, tests: tuple[str, ...]) -> bool:
    """Whether the tests pass with a mutant in place of its module."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    plain = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return mutant.code if Path(loader.path) == path else plain(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    os._exit(int(pytest.main(["-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests])))


def try_mutants(name: str, every: int) -> tuple[int, list[Mutant]]:
    """Try every n-th mutant of a file: their number and those that survive."""
    path = SOURCE / name
    chosen = list(make_mutants(path))[::every]
    found = []
    for mutant in chosen:
        if survives(mutant, path, TESTS[name]):
            found.append(mutant)
            print(f"{name}:{mutant.line}: {mutant.change}", flush=True)
    return len(chosen), found


def main(arguments: list[str] | None = None) -> int:
    """Print survivors and a table; 1 where the tests fail without any mutant."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--file", choices=TESTS, help="one file only")
    parser.add_argument("--every", type=int, default=1, help="try every n-th mutant")
    options = parser.parse_args(arguments)
    table = []
    for name in [options.file] if options.file else TESTS:
        sys.stdout.flush()
        child = os.fork()  # numba reads whether it compiles when it is imported
        if child:
            status = os.waitpid(child, 0)[1]
            table.append(status)
            continue
        os._exit(_report_file(name, options.every))
    return int(any(table))


def _report_file(name: str, every: int) -> int:
    os.environ["NUMBA_DISABLE_JIT"] = str(int(name in UNCOMPILED))
    with TemporaryDirectory() as examples:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = examples
        return _try_file(name, every)


def _try_file(name: str, every: int) -> int:
    for package in PACKAGES:
        import_module(package)
    unchanged = Mutant(0, "", compile((SOURCE / name).read_text(encoding="utf-8"), SOURCE / name, "exec"))
    if not survives(unchanged, SOURCE / name, TESTS[name]):
        print(f"{name}: its tests fail without any change", flush=True)
        return 1
    tried, found = try_mutants(name, every)
    if not survives(unchanged, SOURCE / name, TESTS[name]):  # hypothesis tries what mutants have failed once more
        print(f"{name}: its tests fail without any change on an example that a mutant has found", flush=True)
        return 1
    print(f"{name}: {tried} mutants, {len(found)} survive", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
