"""Expressions on columns: selections, weights, derived features. Parsed and walked here, never handed to `eval`.

The grammar is Python's for numbers, names, arithmetic, comparisons, `and`/`or`/`not` and a fixed list of functions;
`&&` and `||` are read as `and` and `or`. `jet_pt[0]` is an element of an array branch, missing (NaN) where the event
has too few. Whole numbers are computed with 64 bits. Flows in: text and a mapping of columns. Flows out: one array per
expression.
"""

from __future__ import annotations

import ast
import difflib
import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.errors import ExpressionError

__all__ = ["FUNCTIONS", "Expression"]

Columns: TypeAlias = Mapping[str, Any]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "arccos": np.arccos,
    "arcsin": np.arcsin,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "floor": np.floor,
    "hypot": np.hypot,
    "isnan": np.isnan,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "max": np.maximum,
    "min": np.minimum,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "where": np.where,
}
"""Functions that an expression may call."""

_ARITY = {"arctan2": 2, "hypot": 2, "max": 2, "min": 2, "where": 3}
_CONSTANTS = {"pi": math.pi, "True": True, "False": False}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
    ast.BitAnd: np.bitwise_and,
    ast.BitOr: np.bitwise_or,
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
    ast.USub: np.negative,
    ast.UAdd: np.positive,
    ast.Not: np.logical_not,
}
_LONGEST = 10_000


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
        except RecursionError:
            raise ExpressionError(f"{self.text[:40]!r}…: nested too deeply") from None

    @functools.cached_property
    def _tree(self) -> ast.expr:
        if len(self.text) > _LONGEST:
            raise ExpressionError(f"an expression of {len(self.text)} characters: at most {_LONGEST} are read")
        source = re.sub(r"&&", " and ", re.sub(r"\|\|", " or ", self.text)).strip()
        if re.search(r"!(?!=)", source):
            raise ExpressionError(f"{self.text!r}: write `not` instead of `!`")
        try:
            return ast.parse(source, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            where = f" at column {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
            reason = error.msg if isinstance(error, SyntaxError) else "cannot be parsed"
            raise ExpressionError(f"{self.text!r}{where}: {reason}") from None

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """Columns that the expression reads."""
        return frozenset(_names(self._tree))

    def evaluate(self, columns: Columns) -> NDArray[Any]:
        """Evaluate on columns of one length; the result has that length, or is a number if no column is named."""
        try:
            with np.errstate(all="ignore"):
                return np.asarray(self._value(self._tree, columns))
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, ExpressionError):
                raise
            raise ExpressionError(f"{self.text!r}: {error}") from error

    def mask(self, columns: Columns) -> NDArray[np.bool_]:
        """Evaluate as a selection."""
        value = self.evaluate(columns)
        if value.dtype != np.bool_ and not np.isin(value, (0, 1)).all():
            raise ExpressionError(f"{self.text!r} is not a selection: its values are neither true nor false")
        return value.astype(np.bool_)

    def _check(self, node: ast.AST) -> None:
        """Refuse, before any data are read, whatever is not in the grammar."""
        match node:
            case ast.Constant(value=bool() | int() | float()) | ast.Name():
                return
            case ast.Attribute() if _dotted(node):
                return
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
                arity = _ARITY.get(name, 1)
                if len(arguments) != arity:
                    raise ExpressionError(f"{self.text!r}: {name} takes {arity} argument{'s' * (arity > 1)}")
                children: list[ast.AST] = list(arguments)
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                close = difflib.get_close_matches(name, FUNCTIONS, n=1)
                hint = f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(FUNCTIONS)}"
                raise ExpressionError(f"{self.text!r}: no function {name}{hint}")
            case ast.BinOp(op=op) if type(op) in _BINARY:
                children = [node.left, node.right]
            case ast.UnaryOp(op=sign) if type(sign) in _UNARY:
                children = [node.operand]
            case ast.Compare(ops=ops) if all(type(op) in _COMPARE for op in ops):
                children = [node.left, *node.comparators]
            case ast.BoolOp():
                children = list(node.values)
            case ast.Subscript(value=ast.Name() | ast.Attribute(), slice=ast.Constant(value=int())):
                children = [node.value]
            case _:
                raise ExpressionError(f"{self.text!r}: {ast.unparse(node)!r} is not allowed in an expression")
        for child in children:
            self._check(child)

    def _value(self, node: ast.AST, columns: Columns) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name() | ast.Attribute():
                return self._column(_dotted(node), columns)
            case ast.Call(func=ast.Name(id=name)):
                return FUNCTIONS[name](*(self._value(argument, columns) for argument in node.args))
            case ast.BinOp():
                return self._binary(node, columns)
            case ast.UnaryOp():
                return _UNARY[type(node.op)](self._value(node.operand, columns))
            case ast.Compare():
                return self._compare(node, columns)
            case ast.BoolOp():
                combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
                return functools.reduce(combine, (self._value(value, columns) for value in node.values))
            case ast.Subscript(slice=ast.Constant(value=index)):
                return _element(self._value(node.value, columns), int(index))  # type: ignore[arg-type]
        raise AssertionError(f"unchecked node {node}")

    def _column(self, name: str, columns: Columns) -> Any:
        if name in columns:
            values = columns[name]
            return values.astype(np.int64) if isinstance(values, np.ndarray) and values.dtype.kind in "iu" else values
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        close = difflib.get_close_matches(name, columns, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ExpressionError(f"{self.text!r}: no column {name}{hint}")

    def _binary(self, node: ast.BinOp, columns: Columns) -> Any:
        left, right = self._value(node.left, columns), self._value(node.right, columns)
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            kinds = {np.asarray(side).dtype.kind for side in (left, right)}
            if "f" in kinds:
                word = "and" if isinstance(node.op, ast.BitAnd) else "or"
                raise ExpressionError(f"{self.text!r}: & and | bind tighter than comparisons; write `{word}`")
        return _BINARY[type(node.op)](left, right)

    def _compare(self, node: ast.Compare, columns: Columns) -> Any:
        values = [self._value(side, columns) for side in (node.left, *node.comparators)]
        pairs = zip(node.ops, values[:-1], values[1:], strict=True)
        return functools.reduce(np.logical_and, (_COMPARE[type(op)](left, right) for op, left, right in pairs))


def _dotted(node: ast.AST) -> str:
    """Name of a column, `a` or `a.b`; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := _dotted(node.value)):
        return f"{base}.{node.attr}"
    return ""


def _names(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name | ast.Attribute):
        return {_dotted(node)} - set(_CONSTANTS)
    children = node.args if isinstance(node, ast.Call) else list(ast.iter_child_nodes(node))
    return set().union(*(_names(child) for child in children)) if children else set()


def _element(values: Any, index: int) -> NDArray[Any]:
    """Element `index` of an array branch; NaN where an event has too few."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return np.asarray(values[:, index])
    import awkward as ak

    array = ak.from_iter(values) if isinstance(values, np.ndarray) else values
    if array.ndim < 2:
        raise ExpressionError(f"[{index}] on a column that has one value per event")
    return np.asarray(ak.to_numpy(ak.fill_none(ak.pad_none(array, index + 1, axis=1)[:, index], np.nan)))
