"""From runs to verdicts: catches verdicts whose numbers, status or command do not follow from the runs."""

import json
import math

import numpy as np
import pytest
from judging import judge
from refusals import refusal

from moe_theory import continual
from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.core.papers import Reading
from moe_theory.runs import Run
from moe_theory.verification import Status, registry, session
from moe_theory.verification.request import check_request, resolve
from moe_theory.verification.settings import Group

from .declarations import experiment, make

NUM_REPLICATES = 400
RUNS = {"M=1": Run(continual.Params(), np.array([1, 2]), np.arange(NUM_REPLICATES), None, None)}
NOISE = np.random.default_rng(7).standard_normal((NUM_REPLICATES, 2))


def judged(**changes):
    return judge(make(**changes), "unit-signal", RUNS, seed=5, error=1e-3)


def test_a_verdict_carries_its_numbers():
    verdict = judged(observe=lambda runs: 10 + NOISE, predict=lambda runs: 10.0, margin=0.1)
    assert verdict.status is Status.SUPPORTED
    assert verdict.replicates == NUM_REPLICATES
    assert verdict.margin == pytest.approx(1.0)
    assert verdict.predicted == 10
    low, high = verdict.interval
    assert low < verdict.observed - verdict.predicted < high
    assert verdict.standard_error == pytest.approx(NOISE[:, 0].std(ddof=1) / 20, rel=0.2)
    assert verdict.smallest_discrepancy > verdict.margin
    repeat = "moe-theory verify test.claim --reading unit-signal --seed 5 --error 0.001 --replicates 400"
    assert verdict.command == repeat
    assert verdict.curve is not None
    assert verdict.curve.labels == ["t = 1", "t = 2"]
    assert json.loads(json.dumps(verdict.to_json(), allow_nan=False))["status"] == "SUPPORTED"


ZEROS = np.zeros(NUM_REPLICATES)


@pytest.mark.parametrize(
    ("kind", "observed", "predicted", "status"),
    [
        ("equality", 10 + NOISE, 10.0, Status.SUPPORTED),
        ("equality", 11 + NOISE, 10.0, Status.INCONCLUSIVE),
        ("equality", 12 + NOISE, 10.0, Status.REFUTED),
        *[
            (kind, NOISE, sign * gap, status)
            for kind, sign in (("upper_bound", 1), ("ordering", 1), ("lower_bound", -1))
            for gap, status in ((1.0, Status.SUPPORTED), (-1.0, Status.REFUTED), (0.0, Status.INCONCLUSIVE))
        ],
        ("ordering", 1 + ZEROS, 1 + ZEROS, Status.INCONCLUSIVE),
        ("identity", ZEROS, None, Status.SUPPORTED),
        ("identity", ZEROS - 5.0, None, Status.REFUTED),
    ],
)
def test_a_kind_is_judged_by_its_side_and_margin(kind, observed, predicted, status):
    """Catches a margin left out, bounds that are two-sided, and signed errors that cancel or count as none."""
    predict = None if predicted is None else lambda runs: predicted
    margin = {"equality": 0.1, "identity": 1e-6}.get(kind, 0.0)
    assert judged(kind=kind, margin=margin, observe=lambda runs: observed, predict=predict).status is status


def test_identity_is_refuted_by_a_single_replicate():
    errors = np.zeros(NUM_REPLICATES)
    rare = judged(kind="identity", margin=1e-6, predict=None, observe=lambda runs: errors)
    # The exact bound on the frequency of violations when none is seen in n trials.
    assert rare.smallest_discrepancy == pytest.approx(1 - 1e-3 ** (1 / NUM_REPLICATES))
    broken = np.where(np.arange(NUM_REPLICATES) == 3, 1.0, errors)
    assert judged(kind="identity", margin=1e-6, predict=None, observe=lambda runs: broken).status is Status.REFUTED


def test_a_failing_hypothesis_makes_a_claim_inapplicable():
    verdict = judged(hypotheses=lambda dims, runs: [("M > N", False), ("s < d", True)])
    assert verdict.status is Status.INAPPLICABLE
    assert "M > N" in verdict.reason
    assert "s < d" not in verdict.reason


@pytest.mark.parametrize(
    ("kind", "bound", "status"),
    [
        ("upper_bound", 5.0, Status.VACUOUS),
        ("lower_bound", -5.0, Status.VACUOUS),
        ("lower_bound", -1.5, Status.SUPPORTED),
    ],
)
def test_a_bound_beyond_the_trivial_one_is_vacuous(kind, bound, status):
    parts = {"observe": lambda runs: NOISE, "predict": lambda runs: bound}
    verdict = judged(kind=kind, margin=0.0, trivial=lambda runs: np.copysign(2.0, bound), **parts)
    assert verdict.status is status
    assert abs(verdict.trivial) == 2 or status is Status.SUPPORTED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observe": lambda runs: 1 / 0}, "ZeroDivisionError"),
        ({"observe": lambda runs: np.full(NUM_REPLICATES, np.nan)}, "not finite"),
        ({"observe": lambda runs: np.ones((NUM_REPLICATES, 2, 2))}, "returned shape"),
        ({"observe": lambda runs: NOISE, "predict": lambda runs: np.ones(3)}, "does not broadcast"),
        ({"observe": lambda runs: NOISE, "predict": lambda runs: np.nan}, "not finite"),
        ({"observe": lambda runs: NOISE, "labels": lambda runs: ["one"]}, "1 labels for 2 components"),
    ],
)
def test_a_claim_that_fails_is_an_error_of_its_own(changes, message):
    verdict = judged(**changes)
    assert verdict.status is Status.ERROR
    assert message in verdict.reason
    assert math.isnan(verdict.observed)


def test_a_request_is_refused_before_anything_runs():
    for argument, changes, error in (
        ("replicates", {"replicates": 5}, InvalidValueError),
        ("error", {"error": 0.0}, InvalidValueError),
        ("error", {"error": 1.0}, InvalidValueError),
        ("seed", {"seed": -1}, InvalidValueError),
        ("budget", {"budget": 0.0}, InvalidValueError),
        ("reading", {"readings": "unit-sigal"}, UnknownNameError),
        ("claim", {"patterns": "continual.lemma-99"}, UnknownNameError),
    ):
        assert refusal(error, check_request, **{"patterns": "continual.lemma-4", **changes}).argument == argument


def test_the_error_is_split_over_verdicts_and_experiments_run_once_a_reading():
    claims, readings = ["lemma-3", "lemma-3.contraction", "lemma-12.tasks"], ["unit-signal", "independent-signal"]
    request = check_request([f"continual.{id}" for id in claims], readings, error=0.06)
    blanks = [blank for study in request.studies for blank in study.blanks]
    assert len(blanks) == 6  # three claims under two readings
    assert len(request.studies) == 4  # two experiments under two readings
    assert all(blank.error == pytest.approx(0.01) for blank in blanks)


@pytest.mark.parametrize("most_verdicts", [1_000, 40, 2])
def test_a_verdict_s_share_is_its_paper_s_whatever_else_is_judged(most_verdicts, monkeypatch):
    """Catches shares that a claim more would move, and shares that are more than the whole together."""
    monkeypatch.setattr(registry, "most_verdicts", {"generalization": most_verdicts, "edge": 1_000}.get)
    one = "generalization.lemma-6.growth"

    def shares(*patterns):
        request = check_request(patterns, "quick")
        return {blank.claim: blank.error for study in request.studies for blank in study.blanks}

    alone, many = shares(one)[one], shares("generalization", "edge.lemma-1*")
    assert alone == 0.01 / most_verdicts
    assert sum(many.values()) <= 0.01 * (1 + 1e-9)
    is_within = most_verdicts >= len(many)
    assert (many[one] == alone) == is_within
    assert many["edge.lemma-1.least-change"] / many[one] == pytest.approx(most_verdicts / 1_000)
    assert is_within or sum(many.values()) == pytest.approx(0.01)


def test_readings_that_give_the_same_parameters_are_judged_once():
    """Catches a verdict that is paid for twice, and readings judged as one that differ, if only in a value's type."""
    of = experiment(cells={"a": {"num_experts": 1, "learning_rate": 0.5}, "b": {"num_experts": 1}}, replicates=64)
    claim = make(kind="upper_bound", experiment=of, observe=lambda runs: runs["a"].records[-1], predict=lambda _: 1e3)
    scale = continual.Params().signal_scale
    choices = {
        "as it is": {},
        "overridden": {"num_experts": 3},
        "in one cell": {"learning_rate": 0.1},
        "in the same": {"learning_rate": 0.1, "num_experts": 2},
        "as an array": {"signal_scale": np.float32(scale)},
    }
    groups = {
        name: Group(of, Reading(name, "", continual.Params(), choice), [claim]) for name, choice in choices.items()
    }
    verdicts = session.carry_out(resolve(list(groups.values()), None, 5, 3e-3)).verdicts
    assert [verdict.settings for verdict in verdicts] == [[*choices][:2], [*choices][2:4], [*choices][4:]]
    assert {verdict.error for verdict in verdicts} == {1e-3}
    (alone,) = session.carry_out(resolve([groups["overridden"]], None, 5, 1e-3)).verdicts
    names = {"reading": "", "command": "", "also": []}
    assert {**alone.to_json(), **names} == {**verdicts[0].to_json(), **names}


def test_runs_that_overflow_are_an_error_whatever_a_claim_looks_at():
    """Would catch shares of experts, or ends of runs, that are judged after the gates have become NaN."""
    gates = np.where(np.arange(NUM_REPLICATES) < 3, np.nan, np.ones((5, NUM_REPLICATES)))
    runs = {"lost": RUNS["M=1"]._replace(state={"gates": gates}), "sound": RUNS["M=1"]}
    for cell, status in (("lost", Status.ERROR), ("sound", Status.SUPPORTED)):
        observe = lambda runs, cell=cell: 10 + NOISE * len(runs[cell].rounds)  # noqa: E731
        verdict = judge(make(observe=observe, predict=lambda runs: 10.0, margin=0.1), "mine", runs, 5, 1e-3)
        assert verdict.status is status
        assert ("3 of 400 replicates of 'lost' are NaN at the end" in verdict.reason) == (cell == "lost")


def test_one_bad_component_refutes_and_is_named():
    verdict = judged(
        kind="upper_bound", margin=0.0, observe=lambda runs: NOISE + np.array([0.0, 3.0]), predict=lambda runs: 1.0
    )
    assert verdict.status is Status.REFUTED
    assert verdict.at == "t = 2"
