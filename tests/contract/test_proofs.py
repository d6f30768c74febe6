"""The proofs of statements: catches one that computes with rounded numbers, that shows nothing, that draws, or that
says another thing than the claims of its statement.
"""

import ast
import builtins
import contextlib
import importlib.util
import io
import itertools
import numbers
import operator
import re
import types
from fractions import Fraction
from pathlib import Path

import pytest

from moe_theory.core.errors import InvalidStatementError
from moe_theory.core.papers import paper_names, paper_package
from moe_theory.verify import recorded, verdict
from moe_theory.verify.statement import statements
from moe_theory.verify.status import StatementStatus
from moe_theory.verify.verdict import source_of

EVERY = [each for paper in paper_names() for each in statements(paper)]
PROVED = {proof.path: kind for each in EVERY for kind, proof in each.proofs.items()}
VACUOUS = {
    each.statement.name
    for each in recorded.judged_statements()
    if each.finding and each.finding.status is StatementStatus.VACUOUS
}
FORBIDDEN = {"float", "complex", "round", "open", "eval", "exec", "__import__", "input", "getattr", "globals", "vars"}
ROUNDING = {"Float", "N", "n", "evalf", "nsimplify", "lambdify", "limit_denominator"}  # names and attributes
# Integers in, integers or fractions out; SymPy checks algebra, and never numbers that are no Rational.
ALLOWED = {
    "fractions": {"Fraction"},
    "itertools": set(dir(itertools)),
    "math": {"comb", "factorial", "gcd", "lcm", "isqrt", "prod", "perm"},
    "collections": {"Counter", "defaultdict"},
    "functools": {"cache", "reduce"},
    "sys": {"exit"},
}
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


class Checked(ast.NodeTransformer):
    """The same program, whose every operation and every printed value is checked for exactness."""

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if type(node.op) not in OPERATORS:
            return node
        return self.called("_computed", ast.Constant(type(node.op).__name__), node.left, node.right)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        value = self.called("_computed", ast.Constant(type(node.op).__name__), read, node.value)
        return ast.Assign([node.target], value)

    def visit_FormattedValue(self, node):
        self.generic_visit(node)
        return ast.FormattedValue(self.called("_shown", node.value), node.conversion, node.format_spec)

    @staticmethod
    def called(name, *arguments):
        return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def computed(name, left, right):
    made = OPERATORS[getattr(ast, name)](left, right)
    assert not isinstance(made, (float, complex)), f"{left!r} {name} {right!r} is rounded: use Fraction"
    return made


def power(base, exponent, modulus=None):
    return computed("Pow", base, exponent) if modulus is None else pow(base, exponent, modulus)


def printed(*values, **named):
    builtins.print(*map(shown, values), **named)  # noqa: T201


def shown(value):
    assert isinstance(value, (numbers.Rational, str, bool)) or type(value).__module__.startswith("sympy"), (
        f"{value!r} is printed: neither an integer nor a Fraction"
    )
    return value


def imported(name, into=None, local=None, names=(), level=0):
    head = name.partition(".")[0]
    made = builtins.__import__(name, into, local, names, level)
    if head == "sympy":
        return made
    kept = types.SimpleNamespace(**{each: getattr(made, each) for each in ALLOWED[head]})
    assert set(names or ()) <= ALLOWED[head], f"{name}: {names}"
    return kept


def run(path: str, source: str) -> tuple[int, str]:
    """Exit code and output of a proof, checked while it runs."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, (float, complex))), (path, node.value)
        assert not isinstance(node, (ast.Global, ast.AsyncFunctionDef))
        names = {getattr(node, "attr", ""), getattr(node, "name", "") if isinstance(node, ast.alias) else ""}
        assert not any(each in ROUNDING or each.startswith("__") for each in names - {"__getitem__"}), (path, names)
        is_rounding = isinstance(node, ast.FormattedValue) and node.format_spec is not None
        assert not is_rounding, f"{path}, line {node.lineno}: a printed number is not to be rounded"
    program = compile(ast.fix_missing_locations(Checked().visit(tree)), path, "exec")
    safe = {name: value for name, value in vars(builtins).items() if name not in FORBIDDEN}
    safe |= {"__import__": imported, "pow": power, "print": printed}
    scope = {"__name__": "__main__", "__builtins__": safe, "_computed": computed, "_shown": shown}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            exec(program, scope)
        except SystemExit as ended:
            return int(ended.code or 0), said.getvalue()
    return 0, said.getvalue()


@pytest.mark.parametrize("path", PROVED)
def test_a_proof_is_exact_and_shows_what_it_is_of(path):
    source = source_of(path)
    assert len(source.splitlines()) <= 60
    tree = ast.parse(source)
    last = tree.body[-1]  # it could have ended otherwise
    assert ast.unparse(last).startswith("sys.exit(")
    assert not isinstance(last.value.args[0], ast.Constant)
    imports = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imports |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    heads = {name.partition(".")[0] for name in imports}
    assert heads <= ALLOWED.keys() | (set() if PROVED[path] == "disproof" else {"sympy"})
    code, said = run(path, source)
    assert code == 0, said
    *sides, end = said.splitlines()
    assert sides
    assert end.startswith("violated: " if PROVED[path] == "disproof" else "proved: "), end


@pytest.mark.parametrize("each", [each for each in EVERY if each.proofs], ids=lambda each: each.name)
def test_a_proof_is_a_few_lines_that_an_author_reads(each):
    for kind, proof in each.proofs.items():
        assert proof.title, kind
        assert proof.text, kind
        assert len(" ".join(proof.text)) <= 8 * 120, f"{kind}: {len(' '.join(proof.text))} characters"
        if kind == "disproof" or (kind == "proof" and each.name in VACUOUS):
            assert proof.robust, f"{each.name}: what it does not depend on"
            assert proof.objection, f"{each.name}: what an author would object, and the answer"


def test_every_file_of_a_proof_is_of_a_statement():
    folders = {Path(importlib.util.find_spec(paper_package(name)).origin).parent for name in paper_names()}
    files = {path.name for folder in folders for path in folder.glob("statements/proofs/*.py")}
    assert files == {path.rpartition("/")[2] for path in PROVED}


def test_a_proof_and_the_claims_of_its_statement_say_the_same():
    """Would catch a proof of what simulation refutes, and a disproof of what it shows without a clause."""
    for each in recorded.judged_statements():
        found = {finding.status for finding in each.by_reading.values()}
        if each.statement.proof:
            assert StatementStatus.FALSE not in found, each.statement.name
        if each.statement.disproof and not each.statement.amendment:
            assert found <= {StatementStatus.FALSE, StatementStatus.VACUOUS, StatementStatus.OPEN}, each.statement.name


MISTAKEN = {
    "Caveats: it holds for M > 2.": "'Caveats: it holds for M > 2.' must begin with one of Robust, Objection, Caveat",
    "Caveat: one.\n\nCaveat: two.": "'Caveat: two.' must begin",
    "Robust: all.\n\nAn argument that goes on.": "'An argument that goes on.' must begin",
}


@pytest.mark.parametrize("end", MISTAKEN)
def test_a_caveat_that_is_misspelt_is_not_lost(end, monkeypatch):
    monkeypatch.setattr(verdict, "source_of", lambda path: f'"""A title.\n\nAn argument.\n\n{end}\n"""\n')
    with pytest.raises(InvalidStatementError, match=re.escape(MISTAKEN[end])):
        verdict.Proof.of("a:proofs/b.py")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("moe_theory.continual.statements:proofs/nope.py", "is not in package moe_theory.continual.statements"),
        (":proofs/nope.py", "is not in any package, as the module that names it is in none"),
    ],
)
def test_a_proof_that_is_not_there_is_told(path, said):
    with pytest.raises(InvalidStatementError, match=said):
        verdict.Proof.of(path)


ROUNDED = {
    "a division": "print(f'{1 / 3}')",
    "a power": "x = 2 ** -1",
    "a step": "x = 1\nx /= 3",
    "a constant": "x = .5",
    "a root": "from math import sqrt",
    "a power by name": "x = pow(2, -1)",
    "a printed one": "import sympy\nprint(sympy.sqrt(2) * 1 / 3, (1).__truediv__(3))",
    "a method of its own": "from fractions import Fraction\nx = Fraction(1, 3).__float__()",
    "SymPy's": "import sympy\nprint(sympy.pi.evalf())",
    "SymPy's, by name": "from sympy import N",
    "a format": "from fractions import Fraction\nprint(f'{Fraction(1, 3):.3f}')",
    "a draw": "import random",
    "float": "x = float(1)",
    "an array": "import numpy",
}


@pytest.mark.parametrize("source", ROUNDED.values(), ids=ROUNDED)
def test_arithmetic_that_is_not_exact_is_refused(source):
    with pytest.raises((AssertionError, KeyError, NameError, ImportError)):
        run("it", source)


def test_exact_arithmetic_is_let_through():
    code, said = run(
        "it", "from fractions import Fraction\nimport sys\nx = Fraction(1, 3)\nx /= 2\nprint(f'{x}')\nsys.exit(0)"
    )
    assert (code, said) == (0, f"{Fraction(1, 6)}\n")
