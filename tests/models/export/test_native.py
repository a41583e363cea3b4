"""The programs of docs/exports.md that need no Python, compiled and run: XGBoost's C interface, onnxruntime in C++."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from qbdt.data.events import Events
from qbdt.data.folds import ModuloFolds
from qbdt.models.export.comparison import bound_rounding
from qbdt.models.export.cpp_header import CompiledHeader
from qbdt.models.export.exporter import export_model
from qbdt.training.ensembles import FoldedEnsemble
from tests.models.export.models import is_profiled, random_single
from tests.pages import blocks

PAGE = Path(__file__).parents[3] / "docs" / "exports.md"
NAMES = ("x0", "x1", "x2")
ROWS = np.array([[0.3, np.nan, 1.2], [0.1, 0.2, 0.3]])
"""The two events of the programs."""

C_API = """
#include <stdint.h>
extern "C" {
typedef void* BoosterHandle; typedef void* DMatrixHandle; typedef uint64_t bst_ulong;
int XGBoosterCreate(const DMatrixHandle*, bst_ulong, BoosterHandle*);
int XGBoosterLoadModel(BoosterHandle, const char*);
int XGDMatrixCreateFromMat(const float*, bst_ulong, bst_ulong, float, DMatrixHandle*);
int XGBoosterPredictFromDMatrix(
    BoosterHandle, DMatrixHandle, const char*, const bst_ulong**, bst_ulong*, const float**);
int XGDMatrixFree(DMatrixHandle); int XGBoosterFree(BoosterHandle); const char* XGBGetLastError();
}
"""
"""Of xgboost/c_api.h, which its wheel leaves out, what the program uses; a header that is installed comes first."""

pytestmark = pytest.mark.skipif(CompiledHeader.compiler() is None, reason="no C++ compiler")


def compile_program(include, folder, library, soname, *others):
    """Compile the program of the page that includes a header, with a library that is part of a Python package."""
    codes = [block.code for block in blocks(PAGE.read_text(encoding="utf-8"))]
    [source] = [code for code in codes if f"#include <{include}>" in code]
    (folder / "main.cpp").write_text(source)
    for name in (soname, *others):
        (folder / name).symlink_to(library)
    paths = f"{library.parent}:{library.parents[1].with_suffix('.libs')}:{folder}"  # also for libraries of the library
    where = [f"-L{folder}", f"-l:{soname}", f"-Wl,--disable-new-dtags,-rpath,{paths}", "-Wl,--allow-shlib-undefined"]
    command = [
        str(CompiledHeader.compiler()),
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-idirafter",
        ".",
        "main.cpp",
    ]
    done = subprocess.run([*command, *where, "-o", "main"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def run_program(folder, at):
    done = subprocess.run([folder / "main"], cwd=at, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [float(word) for word in done.stdout.split()]


def make_events(rows):
    return Events(dict(zip(NAMES, rows.T, strict=True)), np.ones(2), {"event_number": np.array([4711, 4712])})


def make_model(seed):
    rng = np.random.default_rng(seed)
    profiled = bool(seed % 2)
    return FoldedEnsemble(tuple(random_single(rng, NAMES, profiled) for _ in range(2)), ModuloFolds(2, "event_number"))


def test_c_interface_of_xgboost_reads_the_files(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    library = next((Path(xgboost.__file__).parent / "lib").glob("libxgboost.so"), None)
    if library is None:
        pytest.skip("the library of XGBoost is not in its Python package")
    (tmp_path / "xgboost").mkdir()
    (tmp_path / "xgboost" / "c_api.h").write_text(C_API)
    names = ("libxgboost.so", "libxgboost.so.3")  # newer releases have a number
    compile_program("xgboost/c_api.h", tmp_path, library, *names)
    for seed in range(1, 12, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        model = make_model(seed)
        export_model(model, folder / "higgs.json", "xgboost")
        ratio = model.members[0].components["ratio"]
        expected = ratio.score(make_events(ROWS.astype(np.float32)), 1)
        assert np.allclose(run_program(tmp_path, folder), expected, rtol=0, atol=bound_rounding(ratio))


def test_onnxruntime_in_cpp_gives_the_bits_of_the_model(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    library = next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.1*"), None)
    probe = [str(CompiledHeader.compiler()), "-x", "c++", "-E", "-"]
    include = "#include <onnxruntime_cxx_api.h>"
    if subprocess.run(probe, input=include, capture_output=True, text=True, check=False).returncode or library is None:
        pytest.skip("the C++ headers of onnxruntime are not installed")
    compile_program("onnxruntime_cxx_api.h", tmp_path, library, "libonnxruntime.so.1")
    for seed in range(12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        model = make_model(seed)
        export_model(model, folder / "higgs.onnx", "onnx")
        tolerance = 1e-14 if is_profiled(model) else 0  # the exponential function of onnxruntime is another one
        assert np.allclose(run_program(tmp_path, folder), model.score(make_events(ROWS), 1), rtol=0, atol=tolerance)
