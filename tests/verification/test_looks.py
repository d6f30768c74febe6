"""Looks: catches errors spent twice, verdicts that depend on batches, order or interruption, and budgets overrun."""

import contextlib
import dataclasses
import itertools
import json
import sqlite3
import threading

import numpy as np
import pytest

from moe_theory import continual
from moe_theory.runs import Run
from moe_theory.runs.runner import has_abandoned
from moe_theory.verification import Status, session
from moe_theory.verification.archive import Archive
from moe_theory.verification.claim import Measured
from moe_theory.verification.criteria import Identity, Samples, UpperBound
from moe_theory.verification.interim import SequentialTest, alpha_spent, look_sizes
from moe_theory.verification.ranges import Range
from moe_theory.verification.request import blank_verdict, resolve
from moe_theory.verification.settings import Group
from moe_theory.verification.verdict import Report, Stop

from .declarations import experiment, make

NOISE = np.random.default_rng(12).standard_normal((4096, 3))
CELLS = {"M=1": {"num_experts": 1}, "other": {"num_experts": 1}}


def run_of(first, last):
    return Run(continual.Params(), np.array([1, 2]), np.arange(first, last), None, None)


def noise_of(shift):
    """Observes noise of the replicates that a run has, whichever they are."""
    return lambda runs: shift + NOISE[runs["M=1"].replicates]


def one_test_of(claim, error=1e-3):
    return SequentialTest(claim, blank_verdict(claim, "unit-signal", 5, error), 1024)


class Calls(list):
    """Which replicates of which cells were run. What is in it counts in no key."""

    def __fingerprint__(self):
        return "calls"


CALLS = Calls()


def measure(cells, first, count, seed):
    """Runs in place of simulations."""
    CALLS.append((tuple(cell.name for cell in cells), first, first + count))
    return {cell.name: run_of(first, first + count) for cell in cells}


@pytest.fixture
def ran():
    CALLS.clear()
    return CALLS


def request_for(*claims, replicates=None, budget=None, error=1e-3, seed=5):
    group = Group(claims[0].experiment, continual.reading("unit-signal"), claims)
    return resolve([group], replicates, seed, error, budget)


SHARED = experiment(cells=CELLS, replicates=1024, measured=Measured(measure))
TRUE = make(id="test.true", experiment=SHARED, observe=noise_of(0.0), predict=lambda runs: 0.0, kind="upper_bound")
# This one takes more replicates than the first look has.
NEAR = dataclasses.replace(TRUE, id="test.near", criterion=UpperBound(lambda runs: 0.3))
# Of a declared range, so that it is decided at the first look.
RANGES = {"observed": Range(-9, 9), "predicted": Range(is_constant=True)}
FAR = dataclasses.replace(TRUE, id="test.far", criterion=UpperBound(lambda runs: 5.0), ranges=RANGES)
OPEN = dataclasses.replace(TRUE, id="test.open", criterion=UpperBound(lambda runs: NOISE[:1024].mean(axis=0)))


def test_replicates_double_up_to_the_limit():
    assert look_sizes(1024, 1024) == (64, 128, 256, 512, 1024)
    assert look_sizes(1024, 300) == (64, 128, 256)
    assert look_sizes(1024, 30) == (30,)
    assert look_sizes(1024)[:6] == (64, 128, 256, 512, 1024, 2048)
    assert look_sizes(32768, 32768)[0] == 1024


def test_looks_spend_no_more_than_the_error_however_many_there_are():
    spent = [alpha_spent(0.01, number) for number in range(1, 100_000)]
    assert 0.00999 < sum(spent) < 0.01
    assert spent == sorted(spent, reverse=True)


def test_a_verdict_stops_at_its_own_look_and_carries_all(ran):
    report = session.carry_out(request_for(FAR, NEAR, OPEN))
    far, near, still_open = report.verdicts
    assert (far.status, far.replicates, len(far.looks), far.stopped) == (Status.SUPPORTED, 64, 1, Stop.DECIDED)
    assert near.status is Status.SUPPORTED
    assert 64 < near.replicates < 1024
    assert [look.replicates for look in near.looks] == [64 * 2**k for k in range(len(near.looks))]
    assert near.command.endswith(f"--replicates {near.replicates}")
    assert (still_open.status, still_open.stopped) == (Status.INCONCLUSIVE, Stop.REPLICATES)
    assert len(still_open.looks) == 5
    errors = [look.error for look in still_open.looks]
    assert errors == pytest.approx([1e-3 / 3 / (k * (k + 1)) for k in range(1, 6)])
    assert sum(errors) < still_open.error


def test_only_new_replicates_of_the_cells_that_undecided_claims_look_at_are_run(ran):
    everything = dataclasses.replace(
        FAR, id="test.all", hypotheses=lambda dims, runs: [("", len(runs["other"].rounds) > 0)]
    )
    session.carry_out(request_for(everything, NEAR))
    assert ran[0] == (("M=1", "other"), 0, 64)
    assert {cells for cells, *_ in ran[1:]} == {("M=1",)}
    assert [(first, last) for _, first, last in ran[1:]] == [(64 * 2**k, 128 * 2**k) for k in range(len(ran) - 1)]


@pytest.mark.parametrize("cuts", [[0, 64, 128], [0, 10, 64, 100, 128], [0, 128]])
def test_verdicts_do_not_depend_on_batches(cuts):
    parts, whole = one_test_of(NEAR), one_test_of(NEAR)
    for first, last in itertools.pairwise(cuts):
        parts.extend({"M=1": run_of(first, last)}, overflows={})
    whole.extend({"M=1": run_of(0, 128)}, overflows={})
    for each in (parts, whole):
        each.look(64)
        each.look(128)
    assert parts.latest == whole.latest


def test_an_identity_waits_for_its_replicates_and_is_refuted_at_once(ran):
    def errors(runs):
        return np.zeros(len(runs["M=1"].replicates))

    holds = dataclasses.replace(TRUE, id="test.holds", criterion=Identity(margin=0.1), observe=errors)
    fails = dataclasses.replace(holds, id="test.fails", observe=lambda runs: errors(runs) + 1.0)
    verdicts = session.carry_out(request_for(holds, fails)).verdicts
    assert [(each.status, each.replicates) for each in verdicts] == [(Status.SUPPORTED, 1024), (Status.REFUTED, 64)]


def test_a_failing_claim_stops_nothing_else(ran):
    broken = dataclasses.replace(FAR, id="test.broken", observe=lambda runs: 1 / 0)
    late = dataclasses.replace(
        NEAR,
        id="test.late",
        observe=lambda runs: np.where(runs["M=1"].replicates[:, None] > 100, np.nan, 0 * NOISE[runs["M=1"].replicates]),
    )
    late = dataclasses.replace(late, criterion=UpperBound(lambda runs: 5.0), ranges=RANGES)
    verdicts = session.carry_out(request_for(broken, late, FAR)).verdicts
    assert [each.status for each in verdicts] == [Status.ERROR, Status.SUPPORTED, Status.SUPPORTED]
    assert "ZeroDivisionError" in verdicts[0].reason


@pytest.fixture
def set_clock(monkeypatch):
    """Let each look at the session's clock add these seconds."""

    def set_step(seconds: int) -> None:
        clock = itertools.count(0, seconds)
        monkeypatch.setattr(session.time, "monotonic", lambda: float(next(clock)))

    return set_step


def test_what_a_budget_leaves_undecided_says_so(ran, set_clock):
    set_clock(1)
    report = session.carry_out(request_for(FAR, OPEN, budget=6.0))
    far, still_open = report.verdicts
    assert far.status is Status.SUPPORTED
    assert (still_open.status, still_open.stopped) == (Status.INCONCLUSIVE, Stop.BUDGET)
    assert report.budget == 6.0
    assert ran  # it did begin


def test_a_verification_goes_on_where_it_stopped(ran, tmp_path):
    archive = Archive(tmp_path)
    whole = session.carry_out(request_for(FAR, OPEN)).verdicts
    ran.clear()
    first = session.carry_out(request_for(FAR, OPEN, replicates=256), archive=archive).verdicts
    assert first[1].status is Status.INCONCLUSIVE
    assert max(last for *_, last in ran) == 256
    ran.clear()
    second = session.carry_out(request_for(FAR, OPEN), archive=archive).verdicts
    assert min(first for _, first, _ in ran) == 256
    assert [each.to_json() for each in second] == [each.to_json() for each in whole]
    ran.clear()
    session.carry_out(request_for(FAR, OPEN), archive=archive)
    assert not ran


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 6},
        {"claim": dataclasses.replace(OPEN, observe=noise_of(0.001))},
        {"claim": dataclasses.replace(OPEN, experiment=dataclasses.replace(SHARED, num_rounds=3))},
    ],
    ids=["seed", "claim", "rounds"],
)
def test_samples_of_anything_else_are_taken_anew(ran, tmp_path, other):
    archive = Archive(tmp_path)
    session.carry_out(request_for(OPEN), archive=archive)
    ran.clear()
    session.carry_out(request_for(other.get("claim", OPEN), seed=other.get("seed", 5)), archive=archive)
    assert ran[0][1] == 0
    assert len(archive.store.keys()) == 1, "stale samples of the same claim and setting go"


def test_damaged_samples_are_named_and_taken_anew(ran, tmp_path):
    first = Archive(tmp_path)
    verdicts = [verdict.to_json() for verdict in session.carry_out(request_for(FAR, OPEN), archive=first).verdicts]
    key = first.keys.of(OPEN, request_for(OPEN).studies[0].reading, 5)
    with contextlib.closing(sqlite3.connect(first.store.file, isolation_level=None)) as database:
        database.execute("UPDATE results SET data = zeroblob(length(data)) WHERE key = ?", (key,))
    ran.clear()
    again = Archive(tmp_path)
    report = session.carry_out(request_for(FAR, OPEN), archive=again)
    assert [*again.damaged] == [key]
    assert [verdict.to_json() for verdict in report.verdicts] == verdicts
    assert [(first, last) for _, first, last in ran] == [(0, 64), *((64 * 2**k, 128 * 2**k) for k in range(4))]
    assert again.read_keys == first.written_keys - {key}
    assert again.written_keys == {key}


def test_fewer_samples_take_the_place_of_no_more(tmp_path):
    """Would catch a process that is behind another one in the same folder, and is then interrupted."""
    reading = request_for(OPEN).studies[0].reading
    ahead, behind = Archive(tmp_path), Archive(tmp_path)
    for archive, count in ((ahead, 128), (behind, 64)):
        archive.save(OPEN, reading, 5, Samples(NOISE[:count], NOISE[:count]), ["one", "two", "three"])
    samples, labels = behind.load(OPEN, reading, 5)
    np.testing.assert_array_equal(samples.observed, NOISE[:128])
    assert labels == ["one", "two", "three"]


def test_a_report_is_read_as_it_was_written(ran):
    report = session.carry_out(request_for(FAR, NEAR, OPEN), command="a command")
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert Report.from_json(document).to_json() == report.to_json()
    assert report.versions["jax"]
    assert report.readings["continual.unit-signal"]


def test_the_command_of_an_identity_cut_short_asks_for_all_its_replicates(ran, set_clock):
    set_clock(2)
    holds = dataclasses.replace(
        TRUE, id="test.holds", criterion=Identity(margin=0.1), observe=lambda runs: 0 * NOISE[runs["M=1"].replicates]
    )
    (verdict,) = session.carry_out(request_for(holds, budget=12.0)).verdicts
    assert (verdict.status, verdict.stopped) == (Status.INCONCLUSIVE, Stop.BUDGET)
    assert verdict.replicates > 0
    assert "--replicates" not in verdict.command


def test_without_time_nothing_is_looked_at(ran, set_clock):
    set_clock(100)
    (verdict,) = session.carry_out(request_for(FAR, budget=6.0)).verdicts
    assert (verdict.status, verdict.stopped, verdict.replicates) == (Status.INCONCLUSIVE, Stop.BUDGET, 0)
    assert "budget" in verdict.reason
    assert not ran


def test_measured_runs_that_outlast_the_budget_are_abandoned():
    """Catches a budget that waits for one long measurement."""
    may_end = threading.Event()

    def measure_long(cells, first, count, seed):
        may_end.wait()
        return measure(cells, first, count, seed)

    long = dataclasses.replace(FAR, experiment=experiment(cells=CELLS, measured=Measured(measure_long)))
    try:
        (verdict,) = session.carry_out(request_for(long, budget=0.1)).verdicts
        assert (verdict.status, verdict.stopped, verdict.replicates) == (Status.INCONCLUSIVE, Stop.BUDGET, 0)
        assert has_abandoned()
    finally:
        may_end.set()
