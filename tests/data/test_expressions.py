from typing import Any

import awkward as ak
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from qbdt.data.expressions import FUNCTIONS, Expression
from qbdt.errors import ExpressionError

COLUMNS = {
    "pt": np.array([10.0, 30.0, 50.0]),
    "eta": np.array([-3.0, 0.5, 2.0], dtype=np.float32),
    "n": np.array([0, 1, 2], dtype=np.uint8),
    "jet.pt": np.array([1.0, 2.0, 3.0]),
    "flag": np.array([True, False, True]),
    "pt_ℓ": np.full(3, 100.0),
    "pt_l": np.full(3, 20.0),
    "µ": np.ones(3),
    "big": np.full(3, 2**64 - 1, dtype=np.uint64),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pt > 25 and abs(eta) < 2.4", [False, True, True]),
        ("pt > 25 && abs(eta) < 2.4 || n == 0", [True, True, True]),
        ("not flag", [False, True, False]),
        ("(pt > 25) & flag", [False, False, True]),
        ("20 < pt <= 30", [False, True, False]),
        ("n - 1", [-1, 0, 1]),
        ("n * 200", [0, 200, 400]),
        ("2 * jet.pt ** 2 % 5", [2, 3, 3]),
        ("-pt + +n", [-10, -29, -48]),
        ("max(pt, 20) + min(n, 1)", [20, 31, 51]),
        ("where(flag, pt, -1)", [10, -1, 50]),
        ("cos(pi * n)", [1, -1, 1]),
        ("pt // 20", [0, 1, 2]),
        ("isnan(log(n - 1))", [True, False, False]),
        ("1e-3", 1e-3),
        ("(pt > 25) + (n > 0) + flag", [1, 2, 3]),
        ("-flag", [-1, 0, -1]),
        ("flag - flag", [0, 0, 0]),
        ("2 ** 64 + 0 * n", [2.0**64] * 3),
        ("10000000000000000000000 * (n > 5)", [0, 0, 0]),
        ("2 ** -n", [1, 0.5, 0.25]),
        ("5 // n", [np.inf, 5, 2]),
        ("5 % n", [np.nan, 0, 1]),
        ("max(pt, 20, n * 20)", [20, 30, 50]),
        ("pt > 25\n  and n > 1", [False, False, True]),
        ("pt_ℓ + pt_l + µ", [121, 121, 121]),
        ("big * 1", [2.0**64 - 1] * 3),
    ],
)
def test_values(text, expected):
    np.testing.assert_allclose(Expression(text).evaluate(COLUMNS), expected, rtol=1e-15)


@given(st.lists(st.integers(-5, 5), min_size=3, max_size=3), st.sampled_from(["+", "-", "*", "<", ">=", "=="]))
def test_agrees_with_python(values, operator):
    a, b, c = values
    text = f"({a} {operator} {b}) + {c}"
    assert Expression(text).evaluate({}) == eval(text)


EDGES = [0, 1, 2, 3, 2**31, 2**32 + 1, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
WHOLE = st.sampled_from([*EDGES, *(-one for one in EDGES if one <= 2**63)]) | st.integers(-(2**63), 2**64 - 1)
OPERATORS = ["+", "-", "*", "//", "%", "<", "<=", "==", "!="]


def as_whole_column(values):
    return np.array(values, np.int64 if max(values) < 2**63 else np.uint64)


@given(st.lists(WHOLE, min_size=2, max_size=2), st.lists(WHOLE, min_size=2, max_size=2), st.sampled_from(OPERATORS))
def test_whole_numbers_are_exact_or_refused(left, right, operator):
    if any(max(one) >= 2**63 and min(one) < 0 for one in (left, right)):
        return  # no column of whole numbers holds both
    expression = Expression(f"a {operator} b")
    columns = {"a": as_whole_column(left), "b": as_whole_column(right)}
    if operator in ("//", "%") and 0 in right:
        return
    expected = [eval(f"{a} {operator} {b}") for a, b in zip(left, right, strict=True)]
    needs_sign, is_unsigned = min(*left, *right) < 0, max(*left, *right) >= 2**63
    low, high = (0, 2**64) if is_unsigned else (-(2**63), 2**63)
    jagged = {name: ak.unflatten(values, [2]) for name, values in columns.items()}
    if operator[0] in "<=!" or (all(low <= one < high for one in expected) and not (needs_sign and is_unsigned)):
        assert expression.evaluate(columns).tolist() == expected
        assert expression.evaluate(jagged).tolist() == [expected]
    else:
        with pytest.raises(ExpressionError, match="64 bits"):
            expression.evaluate(columns)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u % 2", [1, 0]),
        ("u == 18446744073709551615", [True, False]),
        ("u < 18446744073709551615", [False, True]),
        ("u == 9223372036854775808", [False, True]),
        ("u > -1", [True, True]),
        ("max(u, 5)", [2**64 - 1, 2**63]),
        ("where(u % 2 == 0, u, n)", [7, 2**63]),
        ("u - 1", [2**64 - 2, 2**63 - 1]),
        ("m != -9223372036854775808", [False, True]),
        ("(m + 1) % 10", [3, 8]),
        ("n % z", [np.nan, 1]),
    ],
)
def test_large_whole_numbers(text, expected):
    columns = {
        "u": np.array([2**64 - 1, 2**63], np.uint64),
        "m": np.array([-(2**63), 7]),
        "n": np.array([7, 2**53 + 1]),
        "z": np.array([0, 2**53]),
    }
    np.testing.assert_array_equal(Expression(text).evaluate(columns), expected)


@pytest.mark.parametrize(
    "text",
    ["a * a", "9223372036854775807 * 2", "abs(m)", "-m", "m - 1", "m // -1", "-u", "u + m", "max(u, m)", "sum(l)"],
)
def test_results_beyond_64_bits_are_refused(text):
    columns = {
        "a": np.array([1, 2**40]),
        "m": np.array([-(2**63), 1]),
        "u": np.array([2**63, 1], np.uint64),
        "l": ak.Array([[2**62, 2**62], [1]]),
    }
    with pytest.raises(ExpressionError, match="64 bits"):
        Expression(text).evaluate(columns)


def test_elements_of_array_branches():
    jagged = {"jet_pt": ak.Array([[50.0, 30.0], [], [20.0]])}
    np.testing.assert_array_equal(Expression("jet_pt[1]").evaluate(jagged), [30.0, np.nan, np.nan])
    fixed = {"p": np.arange(6.0).reshape(3, 2)}
    np.testing.assert_array_equal(Expression("p[1] * 2").evaluate(fixed), [2, 6, 10])
    np.testing.assert_array_equal(Expression("p[5]").evaluate(fixed), [np.nan] * 3)
    with pytest.raises(ExpressionError, match="several values per event"):
        Expression("p > 1").mask(fixed)
    with pytest.raises(ExpressionError, match="several values per event"):
        Expression("jet_pt > 1 and pt > 3").mask({**jagged, "pt": np.zeros(3)})
    np.testing.assert_array_equal(Expression("jet_pt[-1]").evaluate(jagged), [30.0, np.nan, 20.0])
    with pytest.raises(ExpressionError, match="one value per event"):
        Expression("pt[0]").evaluate({"pt": ak.Array([1.0])})


JETS = {
    "jet_pt": ak.Array([[50.0, 30.0, 40.0], [], [20.0]]),
    "jet_tag": ak.Array([[0.1, 0.9, 0.5], [], [0.7]]),
    "jet_n": ak.unflatten(np.array([200, 100, 3, 7], dtype=np.uint8), [3, 0, 1]),
    "sf": np.array([1.0, 2.0, 3.0]),
    "pdf": np.arange(6.0, dtype=np.float32).reshape(3, 2),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("len(jet_pt)", [3, 0, 1]),
        ("len(jet_pt[jet_pt > 30])", [2, 0, 0]),
        ("sum(jet_pt > 30)", [2, 0, 0]),
        ("sum(jet_pt)", [120, 0, 20]),
        ("sum(jet_n)", [303, 0, 7]),
        ("max(jet_pt)", [50, np.nan, 20]),
        ("min(jet_pt * sf)", [30, np.nan, 60]),
        ("max(max(jet_pt, 45))", [50, np.nan, 45]),
        ("any(jet_pt > 45)", [True, False, False]),
        ("all(jet_pt > 25 and jet_tag < 1)", [True, True, False]),
        ("descending(jet_pt)[1]", [40, np.nan, np.nan]),
        ("descending(jet_pt, jet_tag)[0]", [30, np.nan, 20]),
        ("descending(jet_pt[jet_pt < 45], jet_tag[jet_pt < 45])[1]", [40, np.nan, np.nan]),
        ("jet_pt[jet_tag > 0.3 and not jet_pt > 45][0] / sf", [30, np.nan, 20 / 3]),
        ("sum(where(jet_tag > 0.3, jet_pt, sf))", [71, 0, 20]),
        ("sum(jet_n - 150)", [-147, 0, -143]),
        ("sum(jet_n % 2)", [1, 0, 1]),
        ("sum(jet_n // 3)", [100, 0, 2]),
        ("sum(-jet_pt ** 2)", [-5000, 0, -400]),
        ("sum(pdf * sf)", [1, 10, 27]),
        ("max(pdf[pdf > 2])", [np.nan, 3, 5]),
        ("require(pdf[1])", [1, 3, 5]),
        ("(jet_pt > 45) & (jet_tag < 0.2)", None),
    ],
)
def test_lists(text, expected):
    value = Expression(text).evaluate(JETS)
    if expected is None:
        assert value.tolist() == [[True, False, False], [], [False]]
        return
    assert isinstance(value, np.ndarray)
    np.testing.assert_allclose(value, expected, rtol=1e-15)


@given(
    st.lists(st.lists(st.floats(-100, 100), max_size=4), min_size=1, max_size=6),
    st.sampled_from(["len", "sum", "max", "min", "any", "all"]),
)
def test_reductions_are_those_of_a_loop_over_events(events, name):
    # The slow, obvious version: Python's own function on each list that passes the condition.
    columns = {"x": ak.values_astype(ak.Array([*events, [1.0]]), np.float64)}
    picked = [[x for x in each if x > -50] for each in [*events, [1.0]]]
    empty = {"max": np.nan, "min": np.nan}
    python: Any = {"len": len, "sum": sum, "max": max, "min": min, "any": any, "all": all}[name]
    expected = [python(each) if each or name not in empty else np.nan for each in picked]
    np.testing.assert_allclose(Expression(f"{name}(x[x > -50])").evaluate(columns), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jet_pt[jet_pt]", "a condition on lists"),
        ("jet_pt[sf > 1]", "a condition on lists"),
        ("jet_pt[pdf > 1]", "different lengths"),
        ("descending(jet_pt, pdf)", "different lengths"),
        ("jet_pt + pdf", "have they the same lengths"),
        ("sum(3)", "one value per event"),
    ],
)
def test_bad_lists(text, message):
    with pytest.raises(ExpressionError, match=message):
        Expression(text).evaluate(JETS)


def test_missing_elements_make_extremes_and_sums_missing():
    lists = {"x": ak.Array([[1.0, np.nan], [2.0, 3.0]])}
    for name in ("max", "min", "sum"):
        assert np.isnan(Expression(f"{name}(x)").evaluate(lists)).tolist() == [True, False]
    assert Expression("descending(x)[0]").evaluate(lists).tolist() == [1.0, 3.0]


def test_names():
    assert Expression("sqrt(2 * pt * jet.pt) + pi").names == {"pt", "jet.pt"}
    assert Expression("1").names == frozenset()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pt >", "'pt >': invalid syntax"),
        ("pt + * 3", r"'pt \+ \* 3' at column 6"),
        ("", "''"),
        ("__import__('os').system('true')", "not allowed"),
        ("pt.__class__.__base__", "no column"),
        ("(1).real", "not allowed"),
        ("[x for x in pt]", "not allowed"),
        ("lambda: 0", "not allowed"),
        ("pt if flag else 0", "not allowed"),
        ("'text'", "not allowed"),
        ("pt[eta]", "one value per event"),
        ("pt[pt > 3]", "one value per event"),
        ("pt[open(1)]", "no function open"),
        ("pt[(0, 1)]", "not allowed"),
        ("sum(pt)", "sum on a column that has one value per event"),
        ("descending(pt, eta, n)", "descending takes one or two arguments"),
        ("require(log(n - 1))", "require: the value is missing in 1 events, first in event 0"),
        ("pt[0:2]", "not allowed"),
        ("open(pt)", "no function open"),
        ("sqr(pt)", "no function sqr; did you mean sqrt"),
        ("abs(pt, eta)", "abs takes 1 argument"),
        ("hypot(pt)", "hypot takes 2 arguments"),
        ("abs(x=1)", "write `==` instead of `=`"),
        ("pt = 3", "write `==` instead of `=`"),
        ("pt ^ 2 > 9", r"write `\*\*` instead of `\^`"),
        ("!flag", "write `not`"),
        ("pt > 25 & eta < 2", "bind tighter than comparisons; write `and`"),
        ("ptt > 3", "no column ptt; did you mean pt"),
        ("pt > 0 # and eta > 9", "begins no comment"),
        ("n >= 2 & n == 1", "bind tighter than comparisons; write `and`"),
        ("max(pt)", "max on a column that has one value per event"),
        ("max()", "max takes a list, or two arguments or more"),
        ("5or 3", "cannot be parsed|invalid"),
        ("+".join(["pt"] * 900), "nested too deeply"),
        ("(" * 500 + "1" + ")" * 500, "parse|nested|parentheses"),
        ("-" * 3000 + "1", "parse|nested|not allowed"),
        ("1 +" * 5000, "characters"),
    ],
)
def test_bad_expressions(text, message):
    with pytest.raises(ExpressionError, match=message):
        Expression(text).evaluate(COLUMNS)


def test_a_number_is_no_selection():
    assert Expression("n > 0").mask(COLUMNS).tolist() == [False, True, True]
    assert Expression("flag * 1").mask(COLUMNS).tolist() == [True, False, True]
    with pytest.raises(ExpressionError, match="is not a selection"):
        Expression("pt").mask(COLUMNS)


@given(st.text(alphabet="ptabs()+-*/<>=&|!.[]0123456789 _", max_size=40))
def test_any_text_gives_an_array_or_a_clear_error(text):
    try:
        value = Expression(text).evaluate(COLUMNS)
    except ExpressionError:
        return
    assert isinstance(value, np.ndarray)


def test_functions_are_numpys():
    assert all(callable(function) for function in FUNCTIONS.values())


@pytest.mark.parametrize("text", ["1e999 * a", "9" * 400, "a + " + "1" * 400, "-1e999"])
def test_numbers_that_nothing_can_hold(text):
    with pytest.raises(ExpressionError, match="a number larger than"):
        Expression(text)


def test_an_element_far_beyond_the_longest_list_costs_nothing():
    lists = ak.Array([[1, 2], [3]] * 1000)
    assert np.isnan(Expression("j[100000000]").evaluate({"j": lists})).all()
    assert Expression("j[1]").evaluate({"j": lists})[:2] == pytest.approx([2, np.nan], nan_ok=True)
    with pytest.raises(ExpressionError, match="no event has so many elements"):
        Expression(f"j[{10**40}]")
