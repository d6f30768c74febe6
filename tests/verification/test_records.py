"""Reports and searches as JSON: catches numbers that change, and values that are taken for something else."""

import copy
import functools
import json
import math
import operator
from pathlib import Path

import pytest
from refusals import refusal

import moe_theory
from moe_theory.core.errors import DamagedError
from moe_theory.core.papers import all_papers
from moe_theory.verification import recorded
from moe_theory.verification.registry import declared_claims
from moe_theory.verification.verdict import Curve, Look, Report, Status, Stop, Verdict

PACKAGE = Path(moe_theory.__file__).parent
LARGEST = 2**63 - 1


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.fixture(scope="module", autouse=True)
def claims():
    for paper in all_papers().values():
        paper.import_claims()


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*/recorded*.json")), ids=relative)
def test_recorded_verdicts_are_read_and_written_as_they_are(path):
    run = recorded.record_at(path)
    assert recorded.record_text(run) == path.read_text(encoding="utf-8")
    report = Report(run.whole(), run.command, run.seed, run.error, run.versions, is_x64=True, readings=run.readings)
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    again = Report.from_json(document)
    assert again.to_json() == document
    assert [verdict.record for verdict in again.verdicts] == run.verdicts


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*/challenged.json")), ids=relative)
def test_recorded_searches_are_read_and_written_as_they_are(path):
    text = path.read_text(encoding="utf-8")
    assert recorded.searches_text(recorded.parse_searches(text, str(path), declared_claims())) == text


@pytest.fixture
def document():
    verdict = Verdict(
        claim="a.b",
        paper="a",
        where="Lemma 1",
        statement="It holds.",
        kind="identity",
        reading="plain",
        status=Status.REFUTED,
        reason="it does not",
        replicates=LARGEST,
        command="verify a.b",
        observed=0.1,
        interval=(-math.inf, 1.0),
        stopped=Stop.DECIDED,
        looks=[Look(1, "x", 1.0, 0.5, math.nan, 0.01)],
        curve=Curve(["x"], [1.0], [2.0], [math.nan], [3.0], [0.0]),
    )
    report = Report([verdict], "verify a", 3, 0.01, {"jax": "1"}, False, {"a.plain": "as printed"})
    return json.loads(json.dumps(report.to_json(), allow_nan=False))


def test_numbers_that_json_lacks_are_read_as_nan(document):
    (verdict,) = Report.from_json(document).verdicts
    assert verdict.replicates == LARGEST
    assert verdict.observed == 0.1
    assert isinstance(verdict.interval, tuple)
    assert verdict.curve is not None
    numbers = [verdict.predicted, verdict.interval[0], verdict.looks[0].high, verdict.curve.low[0]]
    assert all(math.isnan(number) for number in numbers)
    assert verdict.curve.abscissa is None
    assert Report.from_json(document).budget is None


def test_a_wrong_value_is_refused_with_its_field(document):
    for place, value, words in (
        (["seed"], True, "seed=True must be a whole number"),
        (["seed"], -1, "seed=-1 must be greater than or equal to 0"),
        (["seed"], 2**63, f"seed={2**63} must be less than or equal to {LARGEST}"),
        (["error"], math.inf, "error=inf must be a finite number"),
        (["error"], "1", "error='1' must be a number"),
        (["is_x64"], 1, "is_x64=1 must be a boolean"),
        (["versions", "jax"], 1, "versions.jax=1 must be a string"),
        (["verdicts"], 3, "verdicts=3 must be a list"),
        (["verdicts", 0, "status"], "GOOD", "verdicts[0].status='GOOD' must be 'SUPPORTED', 'REFUTED', "),
        (["verdicts", 0, "interval"], [0.0], "verdicts[0].interval[1] is missing"),
        (["verdicts", 0, "looks", 0, "low"], [], "verdicts[0].looks[0].low=[] must be a number"),
        (["verdicts", 0, "curve"], [], "verdicts[0].curve=[] must be a dictionary or an instance of Curve"),
    ):
        damaged = copy.deepcopy(document)
        *path, name = place
        functools.reduce(operator.getitem, path, damaged)[name] = value
        assert str(refusal(DamagedError, Report.from_json, damaged)).startswith(words)


def test_a_field_that_is_missing_is_refused_though_it_has_a_default(document):
    for name in document["verdicts"][0].keys() - {"unseen", *Verdict.LATER}:
        damaged = copy.deepcopy(document)
        del damaged["verdicts"][0][name]
        assert str(refusal(DamagedError, Report.from_json, damaged)) == f"verdicts[0].{name} is missing"


def test_numbers_of_a_limit_are_kept_and_older_documents_lack_them(document):
    assert Report.from_json(document).verdicts[0].record.keys().isdisjoint(Verdict.LATER)
    document["verdicts"][0] |= {"doubt": "too few", "trend": {"at": "", "value": 0.5, "low": None, "high": 1.0}}
    (verdict,) = Report.from_json(document).verdicts
    assert verdict.doubt == "too few"
    assert verdict.record["trend"] == document["verdicts"][0]["trend"]
    for name in Verdict.LATER:
        del document["verdicts"][0][name]
    (verdict,) = Report.from_json(document).verdicts
    assert (verdict.doubt, verdict.trend) == ("", None)


def test_a_search_with_a_wrong_number_is_refused_with_its_field():
    path = PACKAGE / "edge" / "challenged.json"
    searches = json.loads(path.read_text(encoding="utf-8"))
    searches[0]["recorded"]["violation"] = None
    with pytest.raises(DamagedError) as failure:
        recorded.parse_searches(json.dumps(searches), "here", declared_claims())
    assert str(failure.value) == "here is damaged (recorded.violation=None must be a number). Search again."
