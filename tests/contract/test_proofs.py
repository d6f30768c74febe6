"""The proofs of statements: catches one that computes with rounded numbers, that shows nothing, that draws, or that
says another thing than the claims of its statement.
"""

import importlib.util
import re
from pathlib import Path

import pytest

from moe_theory.core.errors import DeclarationError
from moe_theory.core.papers import paper_names, paper_package
from moe_theory.verification import proofs, recorded, verdict
from moe_theory.verification.catalog import statements
from moe_theory.verification.proofs import require_proof
from moe_theory.verification.status import StatementStatus
from moe_theory.verification.texts import paper_texts
from moe_theory.verification.verdict import source_of

from . import exactness

EVERY = [each for paper in paper_names() for each in statements(paper)]
PROVED = {proof.path: kind for each in EVERY for kind, proof in each.proofs.items()}
VACUOUS = {
    each.statement.name
    for each in recorded.judged_statements()
    if each.finding and each.finding.status is StatementStatus.VACUOUS
}


LONG = {  # a fifth of a second and more
    "moe_theory.continual.statements:proofs/equation_13.py",
    "moe_theory.continual.statements:proofs/equation_35.py",
    "moe_theory.continual.statements:proofs/gaussian_samples.py",
    "moe_theory.continual.statements:proofs/lemma_01.py",
    "moe_theory.continual.statements:proofs/lemma_10.py",
    "moe_theory.continual.statements:proofs/opposite_tasks_spread.py",
    "moe_theory.continual.statements:proofs/orthogonal_tasks_order.py",
    "moe_theory.continual.statements:proofs/orthogonal_tasks_same_set.py",
    "moe_theory.continual.statements:proofs/orthonormal_decay.py",
    "moe_theory.continual.statements:proofs/single_expert_error.py",
    "moe_theory.reinforced.statements:proofs/absorption.py",
    "moe_theory.reinforced.statements:proofs/conservation.py",
    "moe_theory.reinforced.statements:proofs/experts_needed.py",
}


@pytest.mark.parametrize("is_long", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_proofs_are_exact_and_show_what_they_are_of(is_long):
    assert PROVED.keys() > LONG
    faults = []
    for path, kind in PROVED.items():
        if (path in LONG) != is_long:
            continue
        try:
            fault = proofs.end_fault(source_of(path)) or proofs.output_fault(kind, *exactness.require_exact(path, kind))
        except Exception as failure:
            fault = repr(failure)
        fault = fault or (len(source_of(path).splitlines()) > 60 and "it has more than 60 lines")
        faults += [f"{path}: {fault}"] if fault else []
    assert not faults, "\n".join(faults)


def test_proofs_are_a_few_lines_that_an_author_reads():
    faults = []
    for statement in EVERY:
        for kind, proof in statement.proofs.items():
            missing = [name for name in ("title", "text") if not getattr(proof, name)]
            if kind == "disproof" or (kind == "proof" and statement.name in VACUOUS):
                missing += [name for name in ("robust", "objection") if not getattr(proof, name)]
            length = len(" ".join(proof.text))
            missing += ["brevity"] if length > 8 * 120 else []
            faults += [f"{statement.name}, {kind}: {name}" for name in missing]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("paper", paper_names())
def test_proofs_assume_what_their_statements_say(paper):
    """Catches a card that lacks a hypothesis which its proof uses."""
    texts = paper_texts(f"{paper_package(paper)}.statements")
    faults = []
    for statement in statements(paper):
        sayings = {"condition": statement.amendment, "correction": statement.corrected}
        for kind, proof in statement.proofs.items():
            name = proof.path.rpartition("/")[2]
            assumed = texts.assumes.get(name, "")
            allowed = {id for id, text in texts.hypotheses.items() if text in statement.hypotheses}
            allowed |= {word for word, saying in sayings.items() if saying}
            allowed |= {"caveat"} if proof.caveat else set()
            surplus = set() if isinstance(assumed, str) else {*assumed} - allowed
            if not assumed or surplus:
                faults.append(f"{statement.name}, {kind} {name}: {sorted(surplus) or 'not in [assumes]'}")
    assert not faults, "\n".join(faults)


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


@pytest.fixture
def written(tmp_path, on_path):
    """Writes a proof of a user's own package, and gives its path."""
    folder = tmp_path / f"proved_{tmp_path.name}"
    (folder / "proofs").mkdir(parents=True)
    (folder / "__init__.py").touch()

    def write(source):
        (folder / "proofs" / "x.py").write_text(source)
        return f"{folder.name}:proofs/x.py"

    return write


def test_proof_of_a_misspelt_caveat(written):
    """Would catch a caveat that is lost."""
    for end, begun in (
        ("Caveats: it holds for M > 2.", "Caveats: it holds for M > 2."),
        ("Caveat: one.\n\nCaveat: two.", "Caveat: two."),
        ("Robust: all.\n\nAn argument that goes on.", "An argument that goes on."),
    ):
        with pytest.raises(DeclarationError, match=f"'{re.escape(begun)}' must begin with a label .* Robust, Obj"):
            verdict.Proof.of(written(f'"""A title.\n\nAn argument.\n\n{end}\n"""\n'))


def test_proof_of_a_file_that_is_not_there():
    for package in ("moe_theory.continual.statements", "", "no_such_package"):
        with pytest.raises(DeclarationError):
            verdict.Proof.of(f"{package}:proofs/nope.py")


FINE = "import sys\nis_violated = 1 + 1 > 1\nprint(2, 1)\nprint('violated: more')\nsys.exit(not is_violated)"
FAILING = {
    "what it finds": ("1 + 1 > 1", "1 + 1 > 2", "it exits with 1"),
    "how it ends": ("not is_violated", "0", "its last line must be sys.exit"),
    "its last line": ("violated: more", "more", "a line that begins with 'violated: '"),
    "two sides": ("print(2, 1)", "", "it must print both sides"),
    "an error": ("1 + 1 > 1", "x > 1", "NameError: name"),
    "its syntax": ("1 + 1 > 1", "1 +", "invalid syntax"),
}


def test_a_proof_that_shows_nothing_says_which_check_failed(written):
    require_proof(written(FINE), "disproof", "mine.x")
    for before, after, message in FAILING.values():
        with pytest.raises(DeclarationError, match=rf"mine.x is not proved: its disproof, .*{re.escape(message)}"):
            require_proof(written(FINE.replace(before, after)), "disproof", "mine.x")
