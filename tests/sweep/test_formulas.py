"""Formulas between parameters: their values, and what they refuse."""

import math
import re

import pytest

from moe_theory.core.errors import InvalidSpecError, MoeTheoryError, UnknownNameError
from moe_theory.sweep import formulas

VALUES = {"x": 0.4, "y": 3.0, "zero": 0.0, "n": 10}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 / x", 2.5),
        ("x ** 1.5", 0.4**1.5),
        ("-x ** 2", -(0.4**2)),
        ("2 ** 3 ** 2", 512.0),
        ("-(x - y) * +2", 5.2),
        ("y - 1 - 1", 1.0),
        ("sqrt(y * 3) + exp(zero) + log(1)", 4.0),
        ("min(x, y, 2) + max(x, y)", 3.4),
        ("ceil(x * n + 0.5) + floor(-x) + abs(-1)", 5.0),
        ("(1 +\n  1)", 2.0),
        ("1e3", 1000.0),
    ],
)
def test_a_formula_is_arithmetic(text, expected):
    """Would catch a wrong precedence, a wrong associativity, and integers that are not treated as numbers."""
    value = formulas.parse(text, VALUES)(VALUES)
    assert isinstance(value, float)
    assert math.isclose(value, expected, rel_tol=1e-15)


NO_FORMULAS = """1 +|x y|x = 1|x; y|x if y else x|x.real|x[0]|(x, y)|x // y|x % y|x < y|lambda: x|True|None|1j|'x'
__import__('os')|__import__|sqrt|sqrt()|sqrt(x, y)|min(x)|min(*x)|sqrt(x=1)|eval(x)|sqrt(x)(y)|(x := 1)|ｘ|1 # x|1e999
[x for x in y]"""
LONG = ["9" * 400, "x" * 501, f"{'(' * 240}x{')' * 240}", f"{'-' * 490}x", "+".join("1" * 200), f"{'2**' * 100}2"]


@pytest.mark.parametrize("text", ["", " ", "x\0", *re.split(r"[|\n]", NO_FORMULAS), *LONG])
def test_what_is_no_formula_is_refused(text):
    """Would catch text that is run rather than read, and an error from Python's own parser."""
    with pytest.raises(MoeTheoryError) as failure:
        formulas.parse(text, VALUES)
    assert len(str(failure.value).splitlines()) == 1
    assert len(str(failure.value)) < 400


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 / zero", "divides by zero where zero=0.0"),
        ("zero ** -1", "is not a real number"),
        ("(-x) ** 0.5", "is not a real number"),
        ("sqrt(-x)", "is not a real number"),
        ("log(zero)", "is not a real number"),
        ("exp(1000)", "is too large"),
        ("n ** n ** n", "is too large"),
        ("1e308 * n", "is too large"),
        ("1e308 * n - 1e308 * n", "is too large"),
        ("min(1, 1e308 * n)", "is too large"),
        ("ceil(1e308 * n)", "is too large"),
    ],
)
def test_a_value_that_is_no_finite_number_is_refused(text, reason):
    """Would catch infinities, complex numbers and Python's own errors on the way to a run."""
    formula = formulas.parse(text, VALUES)
    with pytest.raises(InvalidSpecError, match=r"the formula .*Change the formula") as failure:
        formula(VALUES)
    assert reason in str(failure.value)


def test_names_and_functions_are_suggested():
    """Would catch a misspelt name without a way out."""
    with pytest.raises(UnknownNameError, match="Did you mean 'truth_scale'"):
        formulas.parse("1 / truth_scal", ["truth_scale", "noise_scale"])
    with pytest.raises(UnknownNameError, match="Did you mean 'sqrt'"):
        formulas.parse("sqr(x)", VALUES)


def test_formulas_come_behind_what_they_need():
    """Would catch a formula evaluated on the reading's value of another that is not computed yet."""
    texts = {"a": "b + c", "b": "c * 2", "c": "x", "d": "a + b"}
    parsed = {name: formulas.parse(text, [*texts, "x"]) for name, text in texts.items()}
    values = {"x": 1.0, "a": -1.0, "b": -1.0, "c": -1.0}
    for name, formula in formulas.in_order(parsed).items():
        values[name] = formula(values)
    assert values == {"x": 1, "c": 1, "b": 2, "a": 3, "d": 5}


@pytest.mark.parametrize("texts", [{"a": "a + 1"}, {"a": "b", "b": "c", "c": "a", "d": "a"}])
def test_circles_are_refused(texts):
    """Would catch an endless evaluation, and one that silently takes a default to begin with."""
    parsed = {name: formulas.parse(text, texts) for name, text in texts.items()}
    with pytest.raises(InvalidSpecError, match=r"in a circle: .* -> ") as failure:
        formulas.in_order(parsed)
    assert failure.value.key[0] == "params"
