"""What an interpreter and a notebook show: short lines, tables, pictures, pages."""

import dataclasses
import json

import pytest
from refusals import refusal

import moe_theory as mt
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.notebook import LONGEST_LINE
from moe_theory.verification.verdict import Status


@pytest.fixture(scope="module")
def verdicts():
    return mt.verify("generalization.lemma-6.*", readings="quick", replicates=64)


def test_lines_are_short_and_say_what_matters(verdicts):
    for thing in (verdicts[0], mt.claims("continual.lemma-8*")[0], mt.statements("continual.lemma-8")[0]):
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 2 * LONGEST_LINE
    assert verdicts[0].claim in repr(verdicts[0])
    assert str(verdicts[0].status) in repr(verdicts[0])
    assert repr(verdicts).splitlines()[1:] == [f"  {verdict!r}" for verdict in verdicts]  # with the reason, its end
    assert len(repr(mt.claims("continual")).splitlines()) < 20  # of hundreds


def test_lists_are_tables_with_a_row_each(verdicts):
    frame = verdicts.to_frame()
    assert list(frame["claim"]) == [verdict.claim for verdict in verdicts]
    assert list(frame["status"]) == [verdict.status.value for verdict in verdicts]
    assert list(frame["difference_high"]) == [verdict.interval[1] for verdict in verdicts]
    page = verdicts._repr_html_()
    assert page.count("<tr") == 1 + len(verdicts)
    assert all(verdict.claim in page for verdict in verdicts)
    assert verdicts[:1].to_frame().shape[0] == 1
    assert "<tr" in mt.statements("edge")._repr_html_()


def test_a_page_of_one_has_no_script_and_typesets_formulas(verdicts):
    assert "<script" not in verdicts[0]._repr_html_()
    assert "<img" in next(verdict for verdict in verdicts if verdict.curve)._repr_html_()
    assert "<math" in mt.claims("continual.lemma-4")[0]._repr_html_()
    card = mt.statements("continual.lemma-8")[0]._repr_html_()
    assert "<h4>How we know</h4>" in card
    assert "<svg" not in card  # which needs the page's style


def test_a_verdict_has_a_picture_or_says_that_it_has_none(verdicts):
    drawn = next(verdict for verdict in verdicts if verdict.curve).plot()
    assert drawn._repr_png_().startswith(b"\x89PNG")
    assert drawn.axes[0].lines
    refusal(InvalidValueError, dataclasses.replace(verdicts[0], curve=None, status=Status.ERROR).plot)


def test_a_report_is_what_the_command_writes(verdicts, tmp_path):
    paths = verdicts.report(tmp_path / "out")
    assert [path.name for path in paths] == ["report.html", "verdicts.json"]
    kept = json.loads(paths[-1].read_text())
    assert [each["claim"] for each in kept["verdicts"]] == [verdict.claim for verdict in verdicts]
