"""`statements` and `why` as a theorist meets them: catches a status that is not that of the recorded runs, a why that
does not fit on a screen, and a witness that is not printed whole."""

import io
import json
import re
import sys

import pytest
from rich.cells import cell_len
from rich.console import Console

from moe_theory.plot.markdown import terminal
from moe_theory.report import cards, pages, wording
from moe_theory.report.standing import Standing
from moe_theory.report.verdicts import failing_premises, statement_table, why_card
from moe_theory.verification import claim, recorded, statement
from moe_theory.verification.catalog import statements
from moe_theory.verification.verdict import Report, Role, Statement, Status, Verdict

SCREEN = 40  # lines of 120 columns
MOST_WORDS = 320  # of a card


def test_a_statement_that_was_not_run_names_its_claims_and_recorded_status():
    (untested,) = recorded.judged_with_searches(statements("edge.equation-30"), [])
    assert cards.label(untested) == "NOT RUN"
    assert cards.reasons(untested) == [
        "There is no verdict on edge.equation-30.pairs.",
        "In the published results it is FALSE.",
    ]


def test_a_line_fits_into_the_terminal():
    """Would catch a name that is cut for a long sentence."""
    known = recorded.judged_statements()
    for width in (80, 120):
        console = Console(width=width, file=io.StringIO())
        console.print(*terminal(statement_table(known, width)))
        lines = console.file.getvalue().splitlines()[3:-1]
        assert max(map(cell_len, lines)) <= width
        lines_of_statement = 2 if width == 80 else 1
        for line, each in zip(lines[::lines_of_statement], known, strict=True):
            assert line.startswith(f" {cards.label(each)}  ")
            assert f"  {each.statement.name}  " in f"{line}  "


def test_json_has_the_whole_statement(ran):
    of_edge = recorded.judged_statements("edge")
    assert ran("statements", "edge").out.splitlines()[-1].startswith(f"{len(of_edge)} statements: ")
    (known,) = json.loads(ran("statements", "generalization.theorem-1", "--json").out)
    assert known["where"].startswith("Theorem 1")
    assert known["formula"]
    assert known["status"]
    assert set(known["roles"]) >= {"generalization.theorem-1.fixed-router"}


def test_why_gives_the_verdict_the_reason_and_the_correction(ran):
    printed = ran("why", "generalization.theorem-1").out
    headings = [
        "FALSE.",
        "Claim",
        "Certainty",
        "Why it fails",
        "What is true instead",
        "How we know",
        "Try it yourself",
    ]
    lines = printed.splitlines()
    places = [next(place for place, line in enumerate(lines) if line.startswith(heading)) for heading in headings]
    assert places == sorted(places)
    assert "Objection" not in printed
    assert "Objection" in ran("why", "generalization.theorem-1", "--all").out
    assert ran("why", "continual.theorem-1").out.startswith("3 statements: 3 FALSE")
    of_a_claim = json.loads(ran("why", "generalization.theorem-1.fixed-router", "--json").out)
    assert "generalization.theorem-1" in {f"{each['paper']}.{each['id']}" for each in of_a_claim}
    assert "[merging.remark.boxes, reading" in ran("why", "merging.remark.boxes").out
    assert "[merging.remark.boxes, reading" not in ran("why", "merging.remark").out


@pytest.mark.parametrize("asked", ["Theorem 1", "edge.Theorem 1", "edge.theorem 1", "eq. (32)"])
def test_a_statement_is_found_by_what_the_paper_calls_it(asked):
    """Would catch Theorem 10 for Theorem 1, another paper's, and a number that stands second in the paper's words."""
    paper, _, printed = asked.rpartition(".") if asked.startswith("edge.") else ("", "", asked)
    found = statements(asked)
    every = [each for each in statements() if paper in ("", each.paper)]
    assert found
    assert {each.name for each in found} <= {each.name for each in every}
    for each in every:
        parts = [part.lower() for part in each.where.split(", ")]
        assert (each in found) == any(
            part == printed.lower() or part.startswith(f"{printed.lower()} ") for part in parts
        )


@pytest.mark.parametrize("papers", [("generalization",), pytest.param((), marks=pytest.mark.thorough)])
def test_every_card_fits_on_a_screen(papers):
    known, failing = recorded.recorded_verdicts(), failing_premises(statements())
    for each in recorded.judged_statements(*papers):
        console = Console(width=120, file=io.StringIO())
        console.print(*terminal(why_card(Standing(each, known), failing.get(each.statement.name, ()))))
        text = console.file.getvalue()
        assert len(text.splitlines()) <= SCREEN, each.statement.name
        assert len(text.split()) <= MOST_WORDS, each.statement.name


def test_a_proof_is_on_the_card_and_its_program_is_printed_as_it_is(ran, refused):
    (known,) = recorded.judged_statements("continual.proposition-4-forgetting")
    printed = ran("why", known.statement.name).out
    assert "Shown by an exact counterexample." in printed
    assert any(line.startswith("Exact argument") for line in printed.splitlines())
    for option in ("--proof", "--disproof"):
        assert ran("why", known.statement.name, option).out == known.statement.script("disproof")
    assert "name one statement. Each of" in refused("why", "edge.lemma-*", "--proof")
    (document,) = json.loads(ran("why", known.statement.name, "--json").out)
    assert document["disproof"]["text"] == known.statement.disproof.text
    for kind in ("proof", "disproof", "derivation"):
        assert f"has no {kind}." in refused("why", "merging.table-1", f"--{kind}")


def test_a_card_says_why_a_statement_is_undecided_and_when_a_false_one_is_true():
    undecided = [known for known in recorded.judged_statements() if wording.statement_status(known) == "open"]
    assert undecided
    for known in undecided:
        assert cards.reasons(known), known.statement.name
    amended = [known for known in recorded.judged_statements() if wording.statement_status(known) == "holds amended"]
    assert amended
    for known in amended:
        assert cards.condition(known) != "True after a small correction.", known.statement.name


OWN = Statement("fair", "continual", "my notes", "Loads are fair.", roles={"mine.fair": Role.CHARITABLE})


def run_of(status: Status) -> str:
    """The text of a run that judged a statement of one's own."""
    verdict = Verdict("mine.fair", "continual", "", "Fair.", "ordering", "weak-signal", status, "it broke", 8, "")
    return pages.to_json(Report([verdict], "", 0, 0.01, {}, False, {}, statements=[OWN]))


@pytest.mark.parametrize(
    ("status", "words"), [(Status.SUPPORTED, "TRUE"), (Status.INCONCLUSIVE, "UNDECIDED"), (Status.ERROR, "NOT RUN")]
)
def test_a_statement_of_one_s_own_stands_as_its_run_found(ran, tmp_path, inside, status, words):
    (tmp_path / "mine").mkdir(parents=True)
    (tmp_path / "mine" / pages.NUMBERS).write_text(run_of(status))
    for name in ("fair", "continual.fair", "mine.fair"):
        printed = ran("why", name, "--from", "mine").out
        assert f"\n{words}." in printed
        assert "From the run in mine." in printed
    assert re.search(rf"\n {re.escape(words)} +continual\.fair  ", ran("statements", "--from", "mine").out)
    (known,) = json.loads(ran("statements", "fair", "--from", "mine", "--json").out)
    assert known["from"] == "mine"


def test_a_statement_of_one_s_own_that_was_not_judged_is_not_open(ran, tmp_path, inside, forgotten):
    (tmp_path / "mine.py").write_text(OWN_CLAIM)
    told = r"\n NOT RUN  continual\.fair  Loads are fair\.\n+1 statement: 1 NOT RUN"
    assert re.search(told, ran("statements", "--module", "mine.py").out)


OWN_CLAIM = """
from moe_theory import statement
from moe_theory.continual.experiments import HISTORY
from moe_theory.verification.statement import bound

FAIR = statement("fair", paper="continual", where="my notes", claim="Loads are fair.")


@FAIR.claim("mine.fair", HISTORY.at("M = 5"), bound(at_most=1), role="charitable", says="No expert has more than all.")
def share(run):
    return run.records.update_norm[-1]
"""


def test_a_folder_of_one_s_own_holds_a_disproof_that_is_run(ran, refused, tmp_path, within_folder, forgotten):
    """Would catch "proved" for whatever file a statement names, and a program that is lost with its run."""
    proof = tmp_path / "mine" / "proofs" / "fair.py"
    proof.parent.mkdir(parents=True)
    fair = OWN_CLAIM.replace('fair."', 'fair.", disproof="fair.py", module=__name__')
    (tmp_path / "mine" / "__init__.py").write_text(fair)
    program = '"""Fair: one is not.\n\nSee 2."""\n\nimport sys\n\nis_violated = 2 > {}\nprint(2)\n'
    proof.write_text(program.format(1) + 'print("violated: 2")\nsys.exit(not is_violated)\n')
    words = ["verify", "--module", "mine/__init__.py", "--reading", "unit-signal", "--replicates", "512"]
    assert "FALSE   continual.fair" in ran(*words).out
    assert "has no proof" not in ran("why", "fair", "--from", "runs/verify").out
    del sys.modules["moe_theory_claims___init__"]
    for table in (claim._REGISTERED, statement._DECLARED):
        table.popitem()
    proof.write_text(program.format(2) + 'print("violated: 2")\nsys.exit(not is_violated)\n')
    assert "continual.fair is not proved: its disproof" in refused(*words)


def test_what_is_not_there_is_one_line(refused):
    assert "Did you mean 'continual.lemma-4'" in refused("why", "continual.lemma-44")
    assert "Did you mean 'edge'" in refused("statements", "egde")
    assert "no script. Its programs: disproof, proof." in refused("why", "edge.lemma-1", "--script")
    assert "has no verdicts.json" in refused("why", "continual.lemma-4", "--from", "runs/missing")
