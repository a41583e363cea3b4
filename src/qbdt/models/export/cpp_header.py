"""A C++ header that needs nothing: the trees as tables, the same arithmetic in the same order, the fold rule.

All numbers are doubles written with as many digits as give back the same bits, so scores are those of Python bit for
bit (for profiled models as far as both exponential functions are the same one).
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from functools import reduce
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from shutil import which

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import FoldRule, HashFolds, SplitFolds
from qbdt.errors import ConfigError, OutputError
from qbdt.training import Model, SingleModel
from qbdt.trees import Ensemble

PREAMBLE = """\
#include <cmath>
#include <cstdint>
#include <stdexcept>

#if defined(__FAST_MATH__) || defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "missing values are NaN: compile without -ffast-math and -ffinite-math-only"
#endif
"""

WALK = """\
struct Node {
  std::int32_t feature;  // -1 for a leaf
  std::int32_t left;     // children, counted from the root of their tree
  std::int32_t right;
  bool missing_left;     // where NaN goes
  double value;          // x < value goes left; of a leaf, what it adds
};

inline double sum_of_trees(const Node* nodes, const std::int32_t* roots, std::int32_t n, const double* x) {
  double sum = 0.0;
  for (std::int32_t tree = 0; tree < n; ++tree) {
    const Node* root = nodes + roots[tree];
    const Node* node = root;
    while (node->feature >= 0) {
      const double value = x[node->feature];
      const bool left = value != value ? node->missing_left : value < node->value;
      node = root + (left ? node->left : node->right);
    }
    sum += node->value;
  }
  return sum;
}
"""

SETS = {
    "\n};\n": """
  std::int32_t first;    // of a node that divides by category: the categories that do not go where NaN goes
  std::int32_t size;     // how many they are; 0 for a cut
};
""",
    "(const Node* nodes, const": "(\n    const Node* nodes, const double* members, const",
    "      const bool left": "      bool left",
    "      node = root": """\
      if (node->size > 0) {
        const double* own = members + node->first;
        const bool member = value == value && std::binary_search(own, own + node->size, value);
        left = member != node->missing_left;
      }
      node = root""",
}
"""Replacements in `WALK` for trees that divide by category."""

MIX = """\
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
"""

SCORES = """\
inline void score_{number}(const double* x, double* out) {{
  const double y[] = {{{log_ratios}}};  // ln(s_i/b) of each strength
  const double shifts[] = {{{shifts}}};
  static const double coefficients[][{n_ratios}] = {{{coefficients}}};
  static const double centres[] = {{{centres}}};
  static const double widths[] = {{{widths}}};
  double most = 0.0;  // so that no exponential overflows
  for (int i = 0; i < {n_ratios}; ++i) most = y[i] > most ? y[i] : most;
  double powers[{n_ratios}];
  double total = std::exp(-most);
  for (int i = 0; i < {n_ratios}; ++i) total += powers[i] = std::exp(y[i] - most);
  for (int j = 0; j < {n_scores}; ++j) {{
    double t = -shifts[j];
    for (int i = 0; i < {n_ratios}; ++i) t += coefficients[j][i] * (powers[i] / total);
    out[j] = (t - centres[j]) / widths[j];
  }}
}}
"""
"""Scores of several parameters, see `EfficientScores`."""

DRIVER = """\
#include <cstdio>
#include <vector>

int main(int, char** argv) {{
  std::FILE* in = std::fopen(argv[1], "rb");
  std::FILE* out = std::fopen(argv[2], "wb");
  std::vector<double> x({ns}::n_features);
  std::vector<std::int64_t> id({n_ids} + 1);
  while (std::fread(x.data(), sizeof(double), x.size(), in) == x.size()) {{
    if ({n_ids} && std::fread(id.data(), sizeof(std::int64_t), {n_ids}, in) != {n_ids}) return 2;
    double result[{n_results}];
    {calls}
    std::fwrite(result, sizeof(double), {n_results}, out);
  }}
  std::fclose(out);
  return 0;
}}
"""


def namespace_of(stem: str) -> str:
    """Name of a namespace, from the name of a file.

    Examples
    --------
    >>> namespace_of("higgs-2024"), namespace_of("double")
    ('qbdt_higgs_2024', 'qbdt_double')
    """
    return "qbdt_" + (re.sub(r"[\W_]+", "_", stem, flags=re.ASCII).strip("_") or "model")


def header_text(model: Model, namespace: str) -> str:
    """Text of a header that holds a model."""
    guard = f"{namespace.upper()}_H"
    names = ", ".join(_quote(name) for name in model.features)
    with_sets = any(tree.is_set.any() for member in model.members for tree in member.trees)
    lines = [
        f"// Made by qbdt {version('qbdt')}; scores as qbdt's own, in C++11 and newer. Do not edit.",
        f"#ifndef {guard}",
        f"#define {guard}",
        *(["#include <algorithm>"] if with_sets else []),
        PREAMBLE,
        f"namespace {namespace} {{",
        f"constexpr int n_features = {len(model.features)};",
        "inline const char* feature(int i) {",
        f"  static const char* const names[] = {{{names}}};",
        "  return names[i];",
        "}",
        "namespace detail {",
        reduce(lambda text, change: text.replace(*change), SETS.items() if with_sets else (), WALK),
        *chain.from_iterable(_write_member(member, i, with_sets) for i, member in enumerate(model.members)),
        "}  // namespace detail",
        *_write_parameters(model.parameters),
        *(_write_score(model.members[0]) if model.folds is None else _write_score_by_fold(model)),
        f"}}  // namespace {namespace}",
        f"#endif  // {guard}",
    ]
    return "\n".join(lines) + "\n"


class CompiledHeader:
    """A header, compiled with the C++ compiler that is there, as a function from features and identifiers to outputs.

    `identifiers` are columns that the fold rule reads; `n_scores` of an event, where the header has several, or None.
    """

    def __init__(
        self, header: Path, namespace: str, identifiers: tuple[str, ...], folder: Path, n_scores: int | None = None
    ) -> None:
        compiler = self.compiler()
        if compiler is None:
            raise ConfigError("no C++ compiler (c++, g++ or clang++) is found to check the header with")
        self._identifiers, self._folder, self._n_scores = identifiers, folder, n_scores or 1
        self._names = ("score", "average") if identifiers else ("score",)
        self._program = folder / "driver"
        ids = "".join(f", id[{i}]" for i in range(len(identifiers)))
        arguments = dict(zip(self._names, (f"x.data(){ids}", "x.data()"), strict=False))
        calls = [
            f"result[{i}] = {namespace}::{name}({given});"
            if n_scores is None
            else f"{namespace}::{name}({given}, result + {i * n_scores});"
            for i, (name, given) in enumerate(arguments.items())
        ]
        n_results = len(calls) * self._n_scores
        driver = DRIVER.format(ns=namespace, n_ids=len(identifiers), calls=" ".join(calls), n_results=n_results)
        source = folder / "driver.cpp"
        source.write_text(f'#include "{header.resolve()}"\n{driver}', encoding="utf-8")
        command = [compiler, "-std=c++11", "-O1", "-o", str(self._program), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OutputError(f"{compiler} cannot compile the header: {done.stderr[:2000]}")

    @staticmethod
    def compiler() -> str | None:
        """Path of a C++ compiler, if there is one."""
        return next((path for name in ("c++", "g++", "clang++") if (path := which(name))), None)

    def __call__(self, values: Floats, identifiers: dict[str, NDArray[np.int64]]) -> dict[str, Floats]:
        """Outputs of all rows, by name."""
        ids = [np.asarray(identifiers[name], dtype=np.int64).view(np.float64) for name in self._identifiers]
        rows = np.column_stack([np.asarray(values, dtype=np.float64), *ids])
        with tempfile.TemporaryDirectory(dir=self._folder) as scratch:
            source, target = Path(scratch) / "in", Path(scratch) / "out"
            rows.tofile(source)
            subprocess.run([str(self._program), str(source), str(target)], check=True)
            found = np.fromfile(target).reshape(len(rows), len(self._names), self._n_scores)
        return {name: found[:, i, 0] if self._n_scores == 1 else found[:, i] for i, name in enumerate(self._names)}


def _write_member(member: SingleModel, number: int, with_sets: bool) -> list[str]:
    """Tables and score of one model."""
    lines: list[str] = []
    for i, (name, ensemble) in enumerate(member.components.items()):
        lines += _write_sum(ensemble, f"{f'part{i}' if member.parameters else name}_sum_{number}", with_sets)
    if member.parameters:
        return [*lines, _write_scores(member, number)]
    lines.append(f"inline double score_{number}(const double* x) {{")
    if member.constants:
        log_odds, share = member.constants["log_odds"], member.constants["share"]
        lines += [
            f"  const double probability = 1.0 / (1.0 + std::exp(-(ratio_sum_{number}(x) + {log_odds!r})));",
            f"  const double above = (probability - shift_sum_{number}(x)) / {share!r} - 1.0;",
            "  return above / (1.0 + std::fabs(above));",
        ]
    else:
        lines.append(f"  return score_sum_{number}(x);")
    return [*lines, "}"]


def _write_scores(member: SingleModel, number: int) -> str:
    calls = [f"part{i}_sum_{number}(x)" for i in range(len(member.components))]
    numbers = {name: values.tolist() for name, values in member.constants.items()}
    n_ratios = len(numbers["log_odds"])
    pairs = zip(calls[:n_ratios], numbers["log_odds"], strict=True)
    return SCORES.format(
        number=number,
        n_ratios=n_ratios,
        n_scores=len(member.parameters),
        log_ratios=", ".join(f"{call} + {odds!r}" for call, odds in pairs),
        shifts=", ".join(calls[n_ratios:]),
        coefficients=", ".join(f"{{{', '.join(map(repr, row))}}}" for row in numbers["ratio_coefficients"]),
        centres=", ".join(map(repr, numbers["centres"])),
        widths=", ".join(map(repr, numbers["widths"])),
    )


def _write_parameters(parameters: tuple[str, ...]) -> list[str]:
    """Names of the scores, where they have some."""
    if not parameters:
        return []
    return [
        f"constexpr int n_scores = {len(parameters)};",
        "// Parameter that a score measures best; functions of scores fill n_scores numbers from `out` on.",
        "inline const char* parameter(int i) {",
        f"  static const char* const names[] = {{{', '.join(map(_quote, parameters))}}};",
        "  return names[i];",
        "}",
    ]


def _write_sum(ensemble: Ensemble, function: str, with_sets: bool) -> list[str]:
    head = f"inline double {function}(const double* {'x' if ensemble.trees else ''}) {{"
    if not ensemble.trees:
        return [head, "  return 0.0;", "}"]
    nodes: list[str] = []
    categories: list[float] = []
    for tree in ensemble.trees:
        for i, (node, output) in enumerate(zip(tree.nodes, tree.outputs.tolist(), strict=True)):
            value = output if node["feature"] < 0 else float(node["threshold"])
            missing = "true" if node["missing_left"] else "false"
            own = tree.members(i)[0].tolist() if tree.is_set[i] else []
            place = f", {len(categories)}, {len(own)}" if with_sets else ""
            categories += own
            nodes.append(f"    {{{node['feature']}, {node['left']}, {node['right']}, {missing}, {value!r}{place}}},")
    sizes = np.cumsum([0, *(len(tree.nodes) for tree in ensemble.trees)])[:-1]
    roots = ", ".join(str(size) for size in sizes.tolist())
    sets = [f"  static const double members[] = {{{', '.join(map(repr, [*categories, 0.0]))}}};"]
    return [
        head,
        "  static const Node nodes[] = {",
        *nodes,
        "  };",
        *(sets if with_sets else []),
        f"  static const std::int32_t roots[] = {{{roots}}};",
        f"  return sum_of_trees(nodes, {'members, ' if with_sets else ''}roots, {len(ensemble.trees)}, x);",
        "}",
    ]


def _write_score(member: SingleModel) -> list[str]:
    lines = ["// Score of an event; x holds the features in order, NaN where one is missing."]
    if member.parameters:
        return [*lines, "inline void score(const double* x, double* out) { detail::score_0(x, out); }"]
    lines.append("inline double score(const double* x) { return detail::score_0(x); }")
    if member.constants:
        lines += [
            "// F, the logarithm of the ratio of densities, and g, the sum of c_k r_k: what the score is made of.",
            "inline double log_ratio(const double* x) { return detail::ratio_sum_0(x); }",
            "inline double shift(const double* x) { return detail::shift_sum_0(x); }",
        ]
    return lines


def _write_score_by_fold(model: Model) -> list[str]:
    rule = model.folds
    assert rule is not None
    k, several = rule.k, bool(model.parameters)
    kind, declared_out, out = ("void", ", double* out", ", out") if several else ("double", "", "")
    ids = [f"id{i}" for i in range(len(rule.columns))]
    declared = ", ".join(f"std::int64_t {name}" for name in ids)
    cases = [f"    case {i}: return detail::score_{i}(x{out});" for i in range(k)]
    columns = ", ".join(_quote(name) for name in rule.columns)
    return [
        f"constexpr int n_folds = {k};",
        "// Columns that the fold rule reads, in the order of its arguments.",
        "inline const char* identifier(int i) {",
        f"  static const char* const names[] = {{{columns}}};",
        "  return names[i];",
        "}",
        *([MIX] if isinstance(rule, HashFolds) else []),
        "// Fold of an event: the number of the model that did not see it.",
        f"inline int fold({declared}) {{",
        *_write_rule(rule, ids),
        "}",
        "// Score of one fold's model.",
        f"inline {kind} score_of_fold(int fold, const double* x{declared_out}) {{",
        "  switch (fold) {",
        *cases,
        "  }",
        '  throw std::out_of_range("no such fold");',
        "}",
        "// Score of an event, from the model that did not see it; x holds the features in order, NaN where missing.",
        f"inline {kind} score(const double* x, {declared}{declared_out}) "
        f"{{ return score_of_fold(fold({', '.join(ids)}), x{out}); }}",
        "// Mean of all models, for events that took no part in the training.",
        *(_write_averages(k) if several else _write_average(k)),
    ]


def _write_average(k: int) -> list[str]:
    adding = [f"  total += detail::score_{i}(x);" for i in range(k)]
    return ["inline double average(const double* x) {", "  double total = 0.0;", *adding, f"  return total / {k};", "}"]


def _write_averages(k: int) -> list[str]:
    return [
        "inline void average(const double* x, double* out) {",
        "  double own[n_scores];",
        "  for (int j = 0; j < n_scores; ++j) out[j] = 0.0;",
        f"  for (int i = 0; i < {k}; ++i) {{",
        "    score_of_fold(i, x, own);",
        f"    for (int j = 0; j < n_scores; ++j) out[j] += own[j] / {k};",
        "  }",
        "}",
    ]


def _write_rule(rule: FoldRule, ids: list[str]) -> list[str]:
    if isinstance(rule, HashFolds):
        steps = [f"  state = mixed(state ^ static_cast<std::uint64_t>({name}));" for name in ids]
        start = f"  std::uint64_t state = {rule.salt % 2**64}u;"
        return [start, *steps, f"  return static_cast<int>(state % {rule.k}u);"]
    if isinstance(rule, SplitFolds):
        check = f"  if (id0 < 0 || id0 >= {rule.k})"
        return [check, '    throw std::out_of_range("no such fold");', "  return static_cast<int>(id0);"]
    return [f"  return static_cast<int>((id0 % {rule.k} + {rule.k}) % {rule.k});"]


def _quote(text: str) -> str:
    """Return a string as C++ writes it; other characters than plain ASCII are bytes in octal, with three digits."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"?\\' else f"\\{b:03o}" for b in text.encode())
    return f'"{"".join(plain)}"'
