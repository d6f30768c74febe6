"""The proofs of statements: catches one that computes with rounded numbers, that shows nothing, that draws, or that
says another thing than the claims of its statement.
"""

import importlib.util
import re
from fractions import Fraction
from pathlib import Path

import pytest

from moe_theory.core.errors import DeclarationError
from moe_theory.core.papers import paper_names, paper_package
from moe_theory.verification import proofs, recorded, verdict
from moe_theory.verification.catalog import statements
from moe_theory.verification.proofs import require_proof
from moe_theory.verification.status import StatementStatus
from moe_theory.verification.verdict import source_of

from . import exactness

EVERY = [each for paper in paper_names() for each in statements(paper)]
PROVED = {proof.path: kind for each in EVERY for kind, proof in each.proofs.items()}
VACUOUS = {
    each.statement.name
    for each in recorded.judged_statements()
    if each.finding and each.finding.status is StatementStatus.VACUOUS
}


@pytest.mark.parametrize("path", PROVED)
def test_a_proof_is_exact_and_shows_what_it_is_of(path):
    assert len(source_of(path).splitlines()) <= 60
    kind = PROVED[path]
    assert not proofs.end_fault(source_of(path))
    assert not proofs.output_fault(kind, *exactness.require_exact(path, kind))


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
    with pytest.raises(DeclarationError, match=re.escape(MISTAKEN[end])):
        verdict.Proof.of("a:proofs/b.py")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("moe_theory.continual.statements:proofs/nope.py", "is not in package moe_theory.continual.statements"),
        (":proofs/nope.py", "is not in any package, as the module that names it is in none"),
    ],
)
def test_a_proof_that_is_not_there_is_told(path, said):
    with pytest.raises(DeclarationError, match=said):
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
    with pytest.raises(DeclarationError):
        exactness.run(source)


FINE = "import sys\nis_violated = 1 + 1 > 1\nprint(2, 1)\nprint('violated: more')\nsys.exit(not is_violated)"
FAILING = {
    "what it finds": ("1 + 1 > 1", "1 + 1 > 2", "it exits with 1"),
    "how it ends": ("not is_violated", "0", "its last line must be sys.exit"),
    "its last line": ("violated: more", "more", "a line that begins with 'violated: '"),
    "two sides": ("print(2, 1)", "", "it must print both sides"),
    "an error": ("1 + 1 > 1", "x > 1", "NameError: name"),
    "its syntax": ("1 + 1 > 1", "1 +", "invalid syntax"),
}


@pytest.mark.parametrize("what", FAILING)
def test_a_proof_that_shows_nothing_says_which_check_failed(what, monkeypatch):
    before, after, message = FAILING[what]
    monkeypatch.setattr(proofs, "source_of", lambda path: FINE)
    require_proof("mine:proofs/x.py", "disproof", "mine.x")
    monkeypatch.setattr(proofs, "source_of", lambda path: FINE.replace(before, after))
    with pytest.raises(DeclarationError, match=rf"mine.x is not proved: its disproof, .*{re.escape(message)}"):
        require_proof("mine:proofs/x.py", "disproof", "mine.x")


def test_exact_arithmetic_is_let_through():
    code, said = exactness.run(
        "from fractions import Fraction\nimport sys\nx, is_right = Fraction(1, 3), True\nx /= 2\nis_right &= x < 1\n"
        "for round in range(2):\n    x += round\nprint(f'{x}')\nsys.exit(not is_right)"
    )
    assert (code, said) == (0, f"{Fraction(7, 6)}\n")
