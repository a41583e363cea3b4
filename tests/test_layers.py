"""The house rules, held by parsing: imports point down, rooms have front doors, functions and modules are short."""

import ast
import re
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "qbdt"

ROOMS = ["data", "trees", "training", "models", "inference", "report", "analysis", "studies", "cli"]
"""In the order in which data flow; a room imports only from rooms before it."""

LEAVES = {"errors", "arrays", "threads", "progress", "files", "tables", "settings", "statistics"}
"""Modules that every room may use; in this order they use each other."""

LEVELS = {
    **dict.fromkeys(LEAVES, 0),
    **{room: level for level, room in enumerate(ROOMS, 1)},
    "estimator": ROOMS.index("inference") + 1,
}

MOST_EXPORTS = 16

LONGEST_FUNCTION = 60
"""Lines from `def` to the end, with signature and docstring; a command's options are its signature and do not count."""

LONGEST_MODULE = 400

MODULES = sorted(SOURCE.rglob("*.py"))


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> list[tuple[str, str]]:
    """All names that a file imports from the package, as (module, name)."""
    found = []
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names if alias.name.startswith("qbdt.")]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write it out"
            if node.module is not None and node.module.split(".")[0] == "qbdt":
                found += [(node.module, alias.name) for alias in node.names]
    return found


def unit_of(module: str) -> str:
    """Room or leaf module of a dotted name."""
    return module.split(".")[1] if "." in module else ""


def unit_of_path(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def is_package(module: str) -> bool:
    return (SOURCE.parent / module.replace(".", "/")).is_dir()


def test_the_tree_shows_the_rooms():
    names = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix in (".py", "")}
    assert names - {"__init__", "__main__", "__pycache__", "estimator"} == {*ROOMS, *LEAVES}
    assert len(LEAVES) <= 8


def test_imports_point_down():
    upwards = []
    for path in MODULES:
        own = unit_of_path(path)
        for module, name in imports(path) if own not in ("__init__", "__main__") else ():
            other = unit_of(module) or (name if name in LEVELS else "")
            below = not other or other == own or {own, other} <= LEAVES or LEVELS[other] < LEVELS[own]
            upwards += [] if below else [f"{path} imports {name} from {module}, which is not below it"]
    assert not upwards


def test_rooms_are_entered_through_their_front_doors():
    behind = []
    for path in MODULES:
        for module, name in imports(path):
            if unit_of(module) in ROOMS and unit_of(module) != unit_of_path(path):
                entered = is_package(module) and (not is_package(f"{module}.{name}") or name == "")
                behind += [] if entered else [f"{path}: {module}, {name} is behind a front door"]
    assert not behind


def test_front_doors_are_narrow_and_say_what_is_behind_them():
    for path in MODULES:
        if path.name == "__init__.py":
            tree = parse(path)
            assert ast.get_docstring(tree), f"{path}: what comes in, what goes out?"
            exported = [n for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"]
            for node in exported:
                assert len(ast.literal_eval(node.value)) <= MOST_EXPORTS, f"{path}: too many names"


def count_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function; of a typer command those after its signature, which declares the options of the terminal."""
    is_command = any(".command(" in ast.unparse(decorator) for decorator in function.decorator_list)
    start = function.body[0].lineno if is_command else function.lineno
    return (function.end_lineno or start) - start + 1


def test_functions_and_modules_are_short():
    long = []
    for path in MODULES:
        functions = [n for n in ast.walk(parse(path)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        long += [f"{path}: {f.name} {n} lines" for f in functions if (n := count_lines(f)) > LONGEST_FUNCTION]
        if (n := path.read_text(encoding="utf-8").count("\n")) > LONGEST_MODULE:
            long.append(f"{path}: {n} lines")
    assert not long


def test_the_page_on_the_layout_names_files_that_are_there():
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", text)
    rooms = [
        SOURCE,
        SOURCE.parents[1],
        *(one for one in SOURCE.rglob("*") if one.is_dir()),
    ]  # a row goes on in its room
    assert len(named) > 60
    assert [name for name in named if not any((room / name).exists() for room in rooms)] == []
