"""The statements of the papers: catches one left out, one that no claim decides, and a claim that is of none."""

import functools
import importlib.util
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from latex2mathml.converter import convert

from moe_theory.core.errors import DeclarationError, UnknownNameError
from moe_theory.core.papers import paper_package
from moe_theory.verification import recorded, registry
from moe_theory.verification import statement as declarations
from moe_theory.verification.catalog import statements
from moe_theory.verification.statement import statement
from moe_theory.verification.status import DECIDING, StatementStatus, deciding
from moe_theory.verification.verdict import Role


def each_by_itself(**counts: int) -> list[str]:
    """Ids where a paper numbers every kind of statement from 1 on."""
    return [f"{kind}-{number + 1}" for kind, count in counts.items() for number in range(count)]


# What the papers number, counted by hand. The third numbers all kinds in one row.
NUMBERED = {
    "continual": each_by_itself(lemma=16, corollary=1, proposition=4, theorem=2, table=2),
    "edge": each_by_itself(lemma=9, proposition=4, theorem=1),
    "generalization": ["theorem-1", "lemma-2", "lemma-3", "corollary-4", *(f"lemma-{place}" for place in range(5, 11))],
    "merging": each_by_itself(lemma=4, theorem=1, table=2),
}
FIGURES = {
    "continual": tuple("23456789"),
    "edge": ("3", "4"),
    "generalization": (),
    "merging": ("2", "3", "4", "5", "6", "7"),
}
# The numbered equations that assert something, counted by hand in the papers' text; the others define or suppose.
EQUATIONS = {
    "edge": {9, 10, 14, 16, 17, 18, *range(22, 31), 32, 33, 34},
    "generalization": {8, 9, 10, *range(13, 17), *range(18, 21), 22, 23, 24, 27, 28, *range(30, 39), 42},
}
# What else a paper may be taken to state: sentences about figures and tables, steps of proofs, remarks.
UNNUMBERED = r"figure-\d+|table-\d+|equation-\d+|assumption-\d+|remark|regret|abstract"
PAPERS = list(NUMBERED)
SHIPPED = [claim for claim in registry.claims() if registry.is_of_a_paper(claim)]
OURS = ["reinforced"]  # a variant of ours, which no paper has
EVERY = [each for paper in (*PAPERS, *OURS) for each in statements(paper)]


@pytest.mark.parametrize("paper", PAPERS)
def test_no_numbered_statement_is_left_out(paper):
    ids = [each.id for each in statements(paper)]
    assert len(set(ids)) == len(ids)
    expected = NUMBERED[paper] + [f"figure-{number}" for number in FIGURES[paper]]
    missing = [name for name in expected if not any(id == name or id.startswith(f"{name}-") for id in ids)]
    assert missing == []
    beyond = [id for id in ids if not re.match(rf"({'|'.join(expected)}|{UNNUMBERED})(-|$)", id)]
    assert beyond == []


@pytest.mark.parametrize("paper", EQUATIONS)
def test_every_equation_that_asserts_something_is_of_a_statement(paper):
    judged = {id for each in statements(paper) for id in each.roles}
    places = [each.where for each in statements(paper)] + [claim.where for claim in SHIPPED if claim.id in judged]
    found = [re.findall(r"\((\d+)\)(?: to \((\d+)\))?", place) for place in places]
    named = {number for ends in found for low, high in ends for number in range(int(low), int(high or low) + 1)}
    assert EQUATIONS[paper] - named == set()


@pytest.mark.parametrize("paper", [*PAPERS, *OURS])
def test_a_statement_has_claims_that_decide_it_or_says_why_it_cannot(paper):
    known, decides = {claim.id for claim in SHIPPED}, DECIDING | {Role.LITERAL}
    for each in statements(paper):
        assert each.roles.keys() <= known
        is_undecided = bool(each.untestable or each.undecided)
        has_claims = any(role in decides for role in each.roles.values())
        assert (has_claims or each.disproof is not None) != is_undecided, each.name
        assert each.says.endswith("."), each.name
        assert each.says.count(". ") == 0, f"{each.name}: one sentence"


def test_no_claim_decides_two_statements():
    """Catches a statement that borrows the test of another, so that one verdict is counted twice."""
    decided = {}
    for each in EVERY:
        for id in deciding(each):
            decided.setdefault(id, []).append(each.name)
    assert {id: names for id, names in decided.items() if len(names) > 1} == {}


def test_every_claim_is_of_a_statement():
    judged = {id for each in EVERY for id in each.roles}
    assert [claim.id for claim in SHIPPED if claim.id not in judged] == []


DECLARED = [each for each in declarations.declared() if each.paper in (*PAPERS, *OURS)]
WITNESSES = [each for each in EVERY if each.witness]
# Witnesses of half a second and more: these, and the texts that have their numbers, are left to `make thorough`.
LONG = [
    f"moe_theory.{paper}.statements:counterexamples/{name}.py"
    for paper, names in {
        "continual": ("proposition_1", "proposition_2", "theorem_1", "theorem_2"),
        "edge": ("figure_3", "limit"),
    }.items()
    for name in names
]
by_length = pytest.mark.parametrize("is_long", [False, pytest.param(True, marks=pytest.mark.thorough)])


# One process for all witnesses of a kind, each a script of its own.
RUN = """
import contextlib, io, json, sys, traceback
ended = {}
for name, source in json.load(sys.stdin).items():
    problem = ""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            exec(compile(source, name, "exec"), {"__name__": "__main__"})
        except BaseException as failure:
            if not isinstance(failure, SystemExit) or failure.code:
                problem = traceback.format_exc()
    ended[name] = problem, said.getvalue()
print(json.dumps(ended))
"""


@functools.cache
def ended(is_long: bool) -> dict[str, list[str]]:
    """What went wrong with each witness of a kind, and what it printed."""
    scripts = json.dumps({each.witness: each.script() for each in WITNESSES if (each.witness in LONG) == is_long})
    with tempfile.TemporaryDirectory() as empty:
        command = [sys.executable, "-I", "-c", RUN]
        done = subprocess.run(command, input=scripts, text=True, capture_output=True, timeout=300, cwd=empty)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_witnesses_are_short_and_need_numpy_alone():
    allowed, faults = {"numpy", "scipy", "math", "itertools", "fractions", "sys", "collections"}, []
    for each in WITNESSES:
        source = each.script()
        imported = set(re.findall(r"^\s*(?:import|from) (\w+)", source, re.MULTILINE))
        is_short = len(source.splitlines()) <= 60
        faults += [] if is_short and imported <= allowed else [(each.name, imported - allowed)]
    assert not faults


@by_length
def test_witnesses_show_their_statements_false(is_long):
    faults = {path: problem for path, (problem, said) in ended(is_long).items() if problem or said.count("\n") < 2}
    assert not faults


# What stands for a source and not for a quantity: "(9)", "Lemma 4", "Appendix E.2", "Figs. 4 and 5".
PLACES = re.compile(
    r"\([^()=]*\d[^()=]*\)|\b(?:App|Eqs?|Figs?|Sec|[A-Z][a-z]{4,})\.?\s+[A-Z]?\.?\d[\d.]*(?:(?:,| and| to) \d+)*"
)
NUMBER = re.compile(r"(?<![\w.^])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?(?![\w^])")
SMALL = 12  # integers up to which a sentence counts by itself


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", text)]


@functools.cache
def recorded_by_claim() -> dict[str, list[Any]]:
    by_claim: dict[str, list[Any]] = {}
    for verdict in recorded.recorded_verdicts():
        by_claim.setdefault(verdict.claim, []).append(verdict)
    return by_claim


def of_a_record(each) -> list[float]:
    """The numbers that the recorded verdicts on a statement's claims have, and those of the claims' own settings."""
    found = []
    for own in [verdict for id in each.roles for verdict in recorded_by_claim().get(id, [])]:
        found += [own.predicted, own.observed, *own.interval, own.margin, own.replicates, own.observed * own.replicates]
        found += numbers(" ".join((own.statement, own.formula, own.reason, own.at)))
        found += [(1 - own.observed) * own.replicates] if own.kind == "probability" else []
    experiments = [claim.experiment for claim in SHIPPED if claim.id in each.roles]
    found += [number for own in experiments for number in numbers(f"{own.dims} {dict(own.cells)} {own.num_rounds}")]
    return [abs(number) for number in found if math.isfinite(number)]


def of_its_programs(each) -> list[float]:
    """The numbers that its witness prints, and that its proofs and its own sentence say."""
    said = [
        " ".join((proof.title, *proof.text, proof.robust, proof.objection, proof.caveat))
        for proof in each.proofs.values()
    ]
    words = (each.says, each.formula, each.corrected_formula, *each.hypotheses, *said)
    return numbers(" ".join((*words, ended(each.witness in LONG)[each.witness][1] if each.witness else "")))


@by_length
def test_numbers_in_texts_come_from_records_or_programs(is_long):
    """Catches one that was typed, and that stays where the record changes."""
    typed = {each.name: typed_numbers(each) for each in DECLARED if (each.witness in LONG) == is_long}
    assert not {name: places for name, places in typed.items() if places}


def typed_numbers(each) -> list[str]:
    """Places of numbers in a statement's texts that no record or program has."""
    known = [*of_a_record(each), *of_its_programs(each)]
    typed = []
    for text in (each.why, each.instance, each.corrected, each.note):
        words = PLACES.sub(" ", text)
        for found in NUMBER.finditer(words):
            said = found[0].rstrip(",").replace(",", "")
            size, last = abs(float(said)), 0.5001 * 10.0 ** -len(said.partition("e")[0].partition(".")[2])
            last *= 10.0 ** int(said.partition("e")[2] or 0)
            scales = (1, 100) if words[found.end() :].lstrip().startswith("%") else (1,)
            is_known = any(abs(one * scale - size) <= last for one in known for scale in scales)
            is_count = size <= SMALL and size == int(size) and scales == (1,)
            if not (is_count or is_known or float(said) in each.paper_numbers):
                typed.append(words[max(found.start() - 30, 0) : found.end() + 20])
    return typed


def test_every_paper_has_a_witness_and_every_script_is_of_a_statement():
    assert len(WITNESSES) >= 5
    assert {each.paper for each in WITNESSES} == set(PAPERS)
    folders = {Path(importlib.util.find_spec(paper_package(name)).origin).parent for name in PAPERS}
    files = {path.name for folder in folders for path in folder.glob("statements/counterexamples/*.py")}
    assert files == {each.witness.rpartition("/")[2] for each in WITNESSES}
    assert {each.witness for each in WITNESSES} > set(LONG)


def test_what_is_recorded_gives_every_statement_a_status():
    known = recorded.judged_statements()
    assert [each.statement.name for each in known] == [each.name for each in EVERY]
    assert [each.statement.name for each in known if not each.words] == []
    statuses = {found.status for each in known for found in each.by_reading.values()}
    assert statuses >= {StatementStatus.HOLDS, StatementStatus.FALSE}


def test_another_paper_has_no_statements():
    with pytest.raises(UnknownNameError) as caught:
        statements("egde")
    assert caught.value.argument == "statement"


def test_an_incomplete_declaration_is_refused(forgotten):
    cases = ({"id": "Lemma 8"}, {"claim": ""}, {"paper": ""}, {"id": "lemma-8", "paper": "continual"})
    for changes in cases:
        about = {"id": "lemma-0", "where": "Lemma 0", "claim": "Something falls.", "paper": "continual"} | changes
        with pytest.raises(DeclarationError):
            pytest.fail(f"{changes}: {statement(about.pop('id'), **about)}")
    assert ("continual", "lemma-0") not in declarations._DECLARED


def test_formulas_convert():
    """A command that the converter does not know stays in its output, with its backslash."""
    of_statements = [text for each in EVERY for text in (each.formula, each.corrected_formula) if text]
    formulas = [*(claim.formula for claim in SHIPPED), *of_statements]
    assert [each for each in formulas if each.count("{") != each.count("}")] == []
    assert [each for each in formulas if "\\" in convert(each, display="block")] == []


def test_texts_have_at_most_120_columns():
    for path in sorted(Path(declarations.__file__).parents[1].glob("*/statements/*.toml")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            assert len(line) <= 120, f"{path}:{number}"
