"""Exported headers, one program for each compiler: the scores of the model, and nothing that a sanitizer minds."""

import subprocess
from shutil import which

import numpy as np
import pytest

from qbdt.models.export.cpp_header import CompiledHeader, header_text
from tests.models.export.models import is_profiled, random_categorical_model, random_model, rows_of

STRICT = ("-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic")
SANITIZED = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PROGRAMS = {
    "plain": (CompiledHeader.compiler(), "-O0"),
    "sanitized": (which("clang++") or CompiledHeader.compiler(), *SANITIZED),  # two compilers where there are two
}


def write_block(i, model):
    """C++ that reads rows of one model and writes what it makes of them."""
    n, ids = len(model.features), () if model.folds is None else model.folds.columns
    given_ids = "".join(f", id[{j}]" for j in range(len(ids)))
    average = f"m{i}::average(x)" if ids else "0.0"
    return (
        f'  {{ double x[{n}]; std::int64_t id[{len(ids) + 1}]; std::FILE* in = std::fopen("in{i}", "rb");\n'
        f'    std::FILE* out = std::fopen("out{i}", "wb");\n'
        f"    while (std::fread(x, 8, {n}, in) == {n} && std::fread(id, 8, {len(ids)}, in) == {len(ids)}) {{\n"
        f"      const double result[2] = {{m{i}::score(x{given_ids}), {average}}};\n"
        "      std::fwrite(result, 8, 2, out); }\n    std::fclose(in); std::fclose(out); }"
    )


def compile_models(models, folder, compiler, *options):
    for i, model in enumerate(models):
        (folder / f"m{i}.h").write_text(header_text(model, f"m{i}"))
    headers = [f'#include "m{i}.h"' for i in range(len(models))]
    source = ["#include <cstdio>", *headers, "int main() {", *map(write_block, range(len(models)), models), "}"]
    (folder / "all.cpp").write_text("\n".join(source))
    command = [compiler, *STRICT, *options, "all.cpp"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.skipif(CompiledHeader.compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("program", PROGRAMS)
def test_headers_score_as_the_models_do(program, tmp_path):
    models = [random_model(seed) for seed in range(200 if program == "plain" else 40)]
    models += [random_categorical_model(seed) for seed in range(20)]
    compile_models(models, tmp_path, *PROGRAMS[program])
    expected = []
    for i, model in enumerate(models):
        values, ids, score, average = rows_of(model)
        np.column_stack([values, *(column.view(np.float64) for column in ids.values())]).tofile(tmp_path / f"in{i}")
        expected.append((score, average))
    done = subprocess.run(["./a.out"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for i, (model, (score, average)) in enumerate(zip(models, expected, strict=True)):
        found = np.fromfile(tmp_path / f"out{i}").reshape(-1, 2)
        # numpy's exp and that of the C++ library are the same one or differ in the last bit
        tolerance = 1e-14 if is_profiled(model) else 0.0
        assert np.allclose(found[:, 0], score, rtol=0, atol=tolerance)
        if average is not None:
            assert np.allclose(found[:, 1], average, rtol=0, atol=tolerance)
