"""Every registered claim from end to end, with few replicates: catches one that raises, or cannot be written down."""

import json

import pytest

from moe_theory.report import pages
from moe_theory.report.markdown import to_markdown
from moe_theory.sweep import run_cells
from moe_theory.verify import Status, registry
from moe_theory.verify.session import judge, plan
from moe_theory.verify.verdict import Report

FEW = 4


@pytest.mark.parametrize("paper", registry.PAPERS)
def test_every_claim_is_judged_and_written_down(paper):
    claims = registry.select_claims([paper])
    reading = registry.QUICK_READINGS[paper][0]
    judged = []
    for job in plan(claims, [reading]):
        runs = run_cells(job.cells(), FEW, seed=0, width=FEW)
        judged += [judge(claim, reading, runs, 0, 1e-4) for claim in job.claims]
    assert sorted(verdict.claim for verdict in judged) == sorted(claim.id for claim in claims)
    for verdict in judged:
        assert verdict.status not in (Status.ERROR, Status.INAPPLICABLE), f"{verdict.claim}: {verdict.reason}"
        assert verdict.curve is not None
        assert verdict.at in verdict.curve.labels or verdict.kind == "rate"
    report = Report(judged, "a command", 0, 0.01, {}, False, {})
    document = json.loads(pages.to_json(report))
    assert len(document["verdicts"]) == len(judged)
    page = to_markdown(report)
    assert all(f"</a>`{claim.id}`\n" in page for claim in claims)


def test_a_wrong_statement_names_a_claim_that_exists():
    ids = {claim.id for claim in registry.claims()}
    assert {claim.replaced_by for claim in registry.claims()} - {None} <= ids
