"""What must be true of verdicts on claims, however they came about: each is complete and is in every report."""

import json
from collections.abc import Sequence

from moe_theory.report import pages
from moe_theory.report.rendering import to_markdown
from moe_theory.verification import Claim, Status, Verdict
from moe_theory.verification.verdict import Report


def check_written_down(judged: Sequence[Verdict], claims: Sequence[Claim]) -> None:
    """Every claim has its verdict, with a curve and a place in it, and stands in the JSON document and on the page."""
    assert sorted(verdict.claim for verdict in judged) == sorted(claim.id for claim in claims)
    for verdict in judged:
        assert verdict.status not in (Status.ERROR, Status.INAPPLICABLE), f"{verdict.claim}: {verdict.reason}"
        assert verdict.curve is not None
        assert verdict.at in verdict.curve.labels or verdict.kind in ("rate", "limit_rate")
    report = Report(list(judged), "a command", 0, 0.01, {}, False, {})
    document = json.loads(pages.to_json(report))
    assert len(document["verdicts"]) == len(judged)
    page = to_markdown(report)
    assert all(f"</a>`{claim.id}`\n" in page for claim in claims)
