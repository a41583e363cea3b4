"""Expressions on columns: selections, weights, derived features. Parsed and walked here, never handed to `eval`.

The grammar is Python's for numbers, names, arithmetic, comparisons, `and`/`or`/`not` and a fixed list of functions;
`&&` and `||` are read as `and` and `or`. Columns with several values per event are computed with element by element;
`jet_pt[0]` is an element, missing (NaN) where the event has too few, `jet_pt[jet_pt > 30]` those for which a condition
holds, and `len`, `sum`, `max`, … make one value per event of a list. Whole numbers are computed with 64 bits,
conditions count as 0 and 1, powers are floating-point, and a whole number that 64 bits do not hold is refused.
Flows in: text and a mapping of columns. Flows out: one array per expression.
"""

from __future__ import annotations

import ast
import functools
import math
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.data.exact_integers import (
    absolute,
    as_number,
    choose_exactly,
    combine,
    compare,
    divide,
    negate,
    pick_extreme,
    read_constant,
    total,
    widen,
)
from qbdt.data.lists import (
    REDUCTIONS,
    as_lists,
    filter_lists,
    has_lists,
    is_condition,
    pick_element,
    sort_descending,
)
from qbdt.errors import ExpressionError, hint_at

Columns: TypeAlias = Mapping[str, Any]


def _extreme_of(name: str, larger: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Largest or smallest of several arguments, or of the list of each event where there is one argument."""
    pick = functools.partial(pick_extreme, larger)
    return lambda *values: functools.reduce(pick, values) if len(values) > 1 else REDUCTIONS[name](*values)


def _require(values: Any) -> Any:
    """Refuse missing values."""
    if has_lists(values) or np.asarray(values).dtype.kind != "f":
        return values
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        raise ExpressionError(f"require: the value is missing in {missing.size} events, first in event {missing[0]}")
    return values


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": absolute,
    "all": REDUCTIONS["all"],
    "any": REDUCTIONS["any"],
    "arccos": np.arccos,
    "arcsin": np.arcsin,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "descending": sort_descending,
    "exp": np.exp,
    "floor": np.floor,
    "hypot": np.hypot,
    "isnan": np.isnan,
    "len": REDUCTIONS["len"],
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "max": _extreme_of("max", np.maximum),
    "min": _extreme_of("min", np.minimum),
    "require": _require,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "sum": total,
    "tan": np.tan,
    "tanh": np.tanh,
    "where": choose_exactly,
}
"""Functions that an expression may call."""

_ARITY = {"arctan2": 2, "hypot": 2, "where": 3}
_ANY_NUMBER = ("max", "min")
_ONE_OR_TWO = ("descending",)
_CONSTANTS = {"pi": math.pi, "True": True, "False": False}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: functools.partial(combine, np.add),
    ast.Sub: functools.partial(combine, np.subtract),
    ast.Mult: functools.partial(combine, np.multiply),
    ast.Div: np.true_divide,
    ast.FloorDiv: functools.partial(divide, np.floor_divide),
    ast.Mod: functools.partial(divide, np.mod),
    ast.Pow: np.float_power,
    ast.BitAnd: np.logical_and,
    ast.BitOr: np.logical_or,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: negate,
    ast.UAdd: np.positive,
    ast.Not: np.logical_not,
}
_LONGEST = 10_000
_LARGEST = float(np.finfo(np.float64).max)
_MOST_ELEMENTS = 2**31
_SHOWN = 100


@dataclass(frozen=True)
class Expression:
    """A parsed expression; `names` are the columns it needs.

    Examples
    --------
    >>> cut = Expression("pt_lep > 25 and abs(eta) < 2.4")
    >>> sorted(cut.names)
    ['eta', 'pt_lep']
    >>> cut.evaluate({"pt_lep": np.array([30.0, 20.0]), "eta": np.array([-1.0, 0.0])})
    array([ True, False])
    """

    text: str

    def __post_init__(self) -> None:
        try:
            self._check(self._tree)
            self.names  # noqa: B018 (asked for now, so that a nesting too deep for it is told now)
        except RecursionError:
            raise ExpressionError(f"{self.shown}: nested too deeply") from None

    @property
    def shown(self) -> str:
        """The text as messages quote it."""
        return repr(self.text if len(self.text) <= _SHOWN else self.text[:_SHOWN] + "…")

    @functools.cached_property
    def _tree(self) -> ast.expr:
        if len(self.text) > _LONGEST:
            raise ExpressionError(f"an expression of {len(self.text)} characters: at most {_LONGEST} are read")
        if "#" in self.text:
            raise ExpressionError(f"{self.shown}: `#` begins no comment inside an expression; remove it")
        source = " ".join(re.sub(r"&&", " and ", re.sub(r"\|\|", " or ", self.text)).split())
        for wrong, right in ((r"!(?!=)", "not"), (r"\^", "**"), (r"(?<![=<>!])=(?!=)", "==")):
            if found := re.search(wrong, source):
                raise ExpressionError(f"{self.shown}: write `{right}` instead of `{found[0]}`")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", SyntaxWarning)
                return ast.parse(self._insert_aliases(source), mode="eval").body
        except (SyntaxError, SyntaxWarning, ValueError, RecursionError, MemoryError) as error:
            where = f" at column {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
            reason = error.msg if isinstance(error, SyntaxError) else "cannot be parsed"
            raise ExpressionError(f"{self.shown}{where}: {reason}") from None

    @functools.cached_property
    def _aliases(self) -> dict[str, str]:
        """Stand-ins for names that Python's parser would change to other letters (µ to μ, ℓ to l)."""
        words = dict.fromkeys(re.findall(r"[^\W\d]\w*", self.text))
        changed = [word for word in words if unicodedata.normalize("NFKC", word) != word]
        return {f"_alias{i}_": word for i, word in enumerate(changed)}

    def _insert_aliases(self, source: str) -> str:
        for alias, word in self._aliases.items():
            source = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", alias, source)
        return source

    def _name(self, node: ast.AST) -> str:
        """Name of a column, `a` or `a.b`; empty for anything else."""
        return ".".join(self._aliases.get(word, word) for word in _name_column(node).split("."))

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """Columns that the expression reads."""
        return frozenset(self._names_below(self._tree))

    def _names_below(self, node: ast.AST) -> set[str]:
        if isinstance(node, ast.Name | ast.Attribute):
            return {self._name(node)} - set(_CONSTANTS)
        children = node.args if isinstance(node, ast.Call) else list(ast.iter_child_nodes(node))
        return set().union(*(self._names_below(child) for child in children)) if children else set()

    def substitute(self, name: str, other: Expression) -> Expression:
        """Put another expression in the place of a name.

        Examples
        --------
        >>> Expression("pt / 1000").substitute("pt", Expression("pt * 1.02")).text
        '(pt * 1.02) / 1000'
        """
        pattern = rf"(?<![\w.]){re.escape(name)}(?![\w.])"
        return Expression(re.sub(pattern, lambda _: f"({other.text})", self.text))

    def split_conditions(self) -> list[Expression]:
        """Conditions that are joined by `and`, in their order; the expression itself where there is one.

        Examples
        --------
        >>> [part.text for part in Expression("pt > 20 and (abs(eta) < 2 or n > 1)").split_conditions()]
        ['pt > 20', 'abs(eta) < 2 or n > 1']
        """
        if not (isinstance(self._tree, ast.BoolOp) and isinstance(self._tree.op, ast.And)):
            return [self]
        texts = [ast.unparse(value) for value in self._tree.values]
        for alias, word in self._aliases.items():
            texts = [text.replace(alias, word) for text in texts]
        return [part for text in texts for part in Expression(text).split_conditions()]

    def evaluate(self, columns: Columns) -> NDArray[Any]:
        """Evaluate on columns of one length; the result has that length, or is a number if no column is named."""
        try:
            with np.errstate(all="ignore"):
                value = self._value(self._tree, columns)
                return value if getattr(value, "ndim", 0) > 1 else np.asarray(value)  # lists stay as they are
        except (TypeError, ValueError, IndexError, OverflowError, RecursionError, MemoryError) as error:
            if isinstance(error, ExpressionError):
                raise
            if any(getattr(columns[name], "ndim", 1) > 1 for name in self.names if name in columns):
                reason = "columns with several values per event do not fit together: have they the same lengths?"
            else:
                reason = str(error).strip().splitlines()[0][:_SHOWN]
            raise ExpressionError(f"{self.shown}: {reason}") from error

    def mask(self, columns: Columns) -> NDArray[np.bool_]:
        """Evaluate as a selection."""
        value = self.evaluate(columns)
        if value.ndim > 1:
            raise ExpressionError(
                f"{self.shown} has several values per event; pick an element, for example [0], or use any(…), all(…)"
            )
        if value.dtype != np.bool_ and not np.isin(value, (0, 1)).all():
            raise ExpressionError(f"{self.shown} is not a selection: its values are neither true nor false")
        return value.astype(np.bool_)

    def _check(self, node: ast.AST) -> None:
        """Refuse, before any data are read, whatever is not in the grammar."""
        match node:
            case ast.Constant(value=bool()) | ast.Name():
                return
            case ast.Constant(value=(int() | float()) as number):
                if not abs(number) <= _LARGEST:
                    raise ExpressionError(f"{self.shown}: a number larger than {_LARGEST:g} cannot be computed with")
                return
            case ast.Attribute() if _name_column(node):
                return
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
                self._check_arguments(name, len(arguments))
                children: list[ast.AST] = list(arguments)
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                raise ExpressionError(f"{self.shown}: no function {name}; {hint_at(name, FUNCTIONS)}")
            case ast.BinOp(op=op) if type(op) in _BINARY:
                children = [node.left, node.right]
            case ast.UnaryOp(op=sign) if type(sign) in _UNARY:
                children = [node.operand]
            case ast.Compare(ops=ops) if all(type(op) in _COMPARE for op in ops):
                children = [node.left, *node.comparators]
            case ast.BoolOp():
                children = list(node.values)
            case ast.Subscript(slice=chosen) if (index := _index(chosen)) is not None:
                if abs(index) > _MOST_ELEMENTS:
                    raise ExpressionError(f"{self.shown}: no event has so many elements")
                children = [node.value]
            case ast.Subscript():
                children = [node.value, node.slice]
            case _:
                raise ExpressionError(f"{self.shown}: {ast.unparse(node)!r} is not allowed in an expression")
        for child in children:
            self._check(child)

    def _check_arguments(self, name: str, n_arguments: int) -> None:
        arity = _ARITY.get(name, 1)
        if name in _ANY_NUMBER:
            allowed, needed = n_arguments >= 1, "a list, or two arguments or more"
        elif name in _ONE_OR_TWO:
            allowed, needed = 1 <= n_arguments <= 2, "one or two arguments"
        else:
            allowed, needed = n_arguments == arity, f"{arity} argument{'s' * (arity > 1)}"
        if not allowed:
            raise ExpressionError(f"{self.shown}: {name} takes {needed}")

    def _value(self, node: ast.AST, columns: Columns) -> Any:
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return read_constant(value)
            case ast.Constant():
                return node.value
            case ast.Name() | ast.Attribute():
                column = self._column(self._name(node), columns)
                return column if node is self._tree else as_lists(column)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(FUNCTIONS[name], [self._value(argument, columns) for argument in node.args])
            case ast.BinOp():
                return self._binary(node, columns)
            case ast.UnaryOp():
                operand = self._value(node.operand, columns)
                return self._call(
                    _UNARY[type(node.op)], [operand if isinstance(node.op, ast.Not) else as_number(operand)]
                )
            case ast.Compare():
                return self._compare(node, columns)
            case ast.BoolOp():
                combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
                return functools.reduce(combine, (self._value(value, columns) for value in node.values))
            case ast.Subscript():
                return self._subscript(node, columns)
        raise AssertionError(f"unchecked node {node}")

    def _call(self, function: Callable[..., Any], arguments: list[Any]) -> Any:
        try:
            return function(*arguments)
        except ExpressionError as error:
            raise ExpressionError(f"{self.shown}: {error}") from None

    def _subscript(self, node: ast.Subscript, columns: Columns) -> Any:
        is_column = isinstance(node.value, ast.Name | ast.Attribute)
        values = self._column(self._name(node.value), columns) if is_column else self._value(node.value, columns)
        index = _index(node.slice)
        if index is not None:
            return self._call(pick_element, [values, index])
        return self._call(filter_lists, [values, self._value(node.slice, columns)])

    def _column(self, name: str, columns: Columns) -> Any:
        if name in columns:
            return widen(columns[name])
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        raise ExpressionError(f"{self.shown}: no column {name}; {hint_at(name, columns)}")

    def _binary(self, node: ast.BinOp, columns: Columns) -> Any:
        left, right = self._value(node.left, columns), self._value(node.right, columns)
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            if any(not is_condition(side) for side in (left, right)):
                word = "and" if isinstance(node.op, ast.BitAnd) else "or"
                raise ExpressionError(f"{self.shown}: & and | bind tighter than comparisons; write `{word}`")
            return _BINARY[type(node.op)](left, right)
        return self._call(_BINARY[type(node.op)], [as_number(left), as_number(right)])

    def _compare(self, node: ast.Compare, columns: Columns) -> Any:
        values = [self._value(side, columns) for side in (node.left, *node.comparators)]
        pairs = zip(node.ops, values[:-1], values[1:], strict=True)
        return functools.reduce(np.logical_and, (compare(_COMPARE[type(op)], left, right) for op, left, right in pairs))


def _name_column(node: ast.AST) -> str:
    """Name of a column, `a` or `a.b`; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := _name_column(node.value)):
        return f"{base}.{node.attr}"
    return ""


def _index(node: ast.AST) -> int | None:
    """Whole number in brackets; None for anything else."""
    match node:
        case ast.Constant(value=int() as index) if not isinstance(index, bool):
            return index
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as index)) if not isinstance(index, bool):
            return -index
    return None
