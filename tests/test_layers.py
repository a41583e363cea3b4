"""One direction: a module imports only from layers below its own (docs/architecture.md)."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "qbdt"

LAYERS = [
    {"errors"},
    {"dtypes", "results", "progress", "naming", "writing", "workers", "_optional", "examples", "provenance"},
    {"significance", "information", "expressions", "dataset"},
    {"_kernels", "config", "categories"},
    {"io", "binning", "tree", "datasets"},
    {"loading", "store", "grower", "ensemble"},
    {"boosting"},
    {"profile", "dask"},
    {"training"},
    {"model_io"},
    {"estimator", "export", "cross_training"},
    {"templates", "cross_estimator"},
    {"fit"},
    {"diagnosis"},
    {"tables", "plots"},
    {"report"},
    {"running", "reproduce", "generate"},
    {"tuning", "bench"},
    {"cli"},
]
LAYER_OF = {name: level for level, names in enumerate(LAYERS) for name in names}


def unit_of(path: Path) -> str:
    """Name the top-level module or package below qbdt that a source file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_units(path: Path) -> set[str]:
    units = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write it out"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        units |= {name.split(".")[1] for name in names if name.startswith("qbdt.")}
    return units & set(LAYER_OF)


MODULES = sorted(path for path in SOURCE.rglob("*.py") if unit_of(path) not in ("__init__", "__main__"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downwards(path):
    unit = unit_of(path)
    assert unit in LAYER_OF, f"{unit} has no layer: add it to LAYERS and to docs/architecture.md"
    upward = {other for other in imported_units(path) - {unit} if LAYER_OF[other] >= LAYER_OF[unit]}
    assert not upward, f"{unit} (layer {LAYER_OF[unit]}) imports {upward} from its own layer or above"
