"""`statements` and `why` as a theorist meets them: catches a status that is not that of the recorded runs, a why that
does not fit on half a screen, and a witness that is not printed whole."""

import json

import pytest

from moe_theory.verify import recorded
from moe_theory.verify.statement import statements

HALF_A_SCREEN = 26


def test_a_line_a_statement(ran):
    lines = ran("statements", "edge").out.splitlines()
    names = [each.name for each in statements("edge")]
    assert len(lines) == len(names) + 1
    for line, name in zip(lines, names, strict=False):
        assert name in line
    assert lines[-1].startswith(f"{len(names)} statements: ")


def test_json_has_the_whole_statement(ran):
    (known,) = json.loads(ran("statements", "generalization.theorem-1", "--json").out)
    assert known["where"].startswith("Theorem 1")
    assert known["formula"]
    assert known["status"]
    assert set(known["roles"]) >= {"generalization.theorem-1.fixed-router"}


def test_why_says_what_fails_why_and_what_holds_instead(ran):
    printed = ran("why", "generalization.theorem-1").out
    assert len(printed.splitlines()) <= HALF_A_SCREEN
    for heading in ("says", "status", "found", "why", "smallest", "instead", "repeat", "witness"):
        assert any(line.startswith(heading) for line in printed.splitlines()), heading
    of_a_claim = json.loads(ran("why", "generalization.theorem-1.fixed-router", "--json").out)
    assert "generalization.theorem-1" in {f"{each['paper']}.{each['id']}" for each in of_a_claim}


@pytest.mark.parametrize("name", ["edge.lemma-1", "edge.theorem-1"])
def test_why_is_there_for_every_status(ran, name):
    (known,) = recorded.judged_statements(name)
    assert known.words in ran("why", name).out.replace("\n        ", " ")


def test_the_witness_is_printed_as_it_is(ran):
    (theorem,) = statements("generalization.theorem-1")
    assert ran("why", theorem.name, "--script").out == theorem.script()


def test_what_is_not_there_is_one_line(refused):
    assert "Did you mean 'continual.lemma-4'" in refused("why", "continual.lemma-44")
    assert "Did you mean 'edge'" in refused("statements", "egde")
    assert "no witness" in refused("why", "edge.lemma-1", "--script")
