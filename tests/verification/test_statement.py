"""Statements and their claims: catches runs, components, roles and hypotheses that go astray between the two."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
from judging import judge
from refusals import refusal

from moe_theory.core.errors import DeclarationError
from moe_theory.runs import Run
from moe_theory.verification import Status, claim, evidence, statement
from moe_theory.verification.claim import registered
from moe_theory.verification.statement import Hypothesis, alike, bound, identity, probability, rate
from moe_theory.verification.verdict import Role

from .declarations import experiment

B = 40
CELLS = {"two": {"size": 2}, "four": {"size": 4}, "four, slow": {"size": 4, "speed": 1}}
RUNS = experiment(cells=CELLS)
PAIR = RUNS.over(["two", "four"])


class Params(NamedTuple):
    size: int


def run_of(size: int) -> Run:
    """Records (R, B): size + replicate in the first round, size * replicate in the second."""
    records = np.stack([size + np.arange(B), size * np.arange(B)]).astype(np.float64)
    return Run(Params(size), np.array([1, 2]), np.arange(B), None, records)


MADE = {name: run_of(overrides["size"]) for name, overrides in CELLS.items()}
TWO, FOUR = MADE["two"].records, MADE["four"].records


@pytest.fixture(autouse=True)
def nothing_is_declared(forgotten):
    claim._REGISTERED.clear()
    statement._DECLARED.clear()


def made(**changes) -> statement.Declared:
    about = {"where": "Lemma 0", "claim": "Something falls.", "paper": "continual"} | changes
    return statement.statement("lemma-0", **about)


def claimed(runs, criterion, function, of: statement.Declared | None = None, **options):
    """The claim that a function makes about a selection of the runs."""
    (of or made()).claim("mine.claim", runs, criterion, **{"role": "literal"} | options, says="It falls.")(function)
    return registered()["mine.claim"]


def samples(runs, criterion, function, **options) -> evidence.Samples:
    return evidence.collect(claimed(runs, criterion, function, **options), MADE, B)


def first(run: Run) -> np.ndarray:
    return run.records[0]


@pytest.mark.parametrize(
    ("axis", "values", "cells", "abscissa"),
    [
        ("speed", (), ("four, slow",), (1.0,)),
        ("size", (2,), ("two",), (2.0,)),
        ({"four": 4, "two": 2}, (), ("four", "two"), (4.0, 2.0)),
        (["two", "four, slow"], (), ("two", "four, slow"), None),
    ],
)
def test_cells_are_selected_with_labels_and_abscissa_at_once(axis, values, cells, abscissa):
    chosen = RUNS.over(axis, *values)
    assert (chosen.cells, chosen.labels, chosen.abscissa) == (cells, cells, abscissa)


def test_cells_that_are_not_there_are_refused():
    for choose in (
        lambda: RUNS.over("siz"),
        lambda: RUNS.over("size", 3),
        lambda: RUNS.over("size"),  # whose cells differ in more
        lambda: RUNS.over("size", 4),  # which two cells set
        lambda: RUNS.over(["too"]),
        lambda: RUNS.at("too"),
        lambda: RUNS.together("two", "too"),
        lambda: RUNS.together(),
    ):
        refusal(DeclarationError, choose)


@pytest.mark.parametrize(
    ("runs", "function", "expected"),
    [
        (PAIR, first, [TWO[0], FOUR[0]]),
        (RUNS.at("two"), first, [TWO[0]]),
        (RUNS.at("two"), lambda run: run.records, TWO),
        (PAIR, lambda run: run.records, [*TWO, *FOUR]),
        (RUNS.together("four", "two"), lambda four, two: four.records - two.records, FOUR - TWO),
        (RUNS, lambda runs: runs["two"].records, TWO),
        (PAIR, lambda run: alike(run, run.params.size), [np.full(B, 2), np.full(B, 4)]),
    ],
    ids=["over", "at", "components", "over components", "together", "mapping", "alike"],
)
def test_a_function_of_a_run_gives_a_row_a_replicate_and_a_column_a_component(runs, function, expected):
    np.testing.assert_array_equal(samples(runs, identity(within=0), function).observed, np.transpose(expected))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7.0, np.full((B, 2), 7.0)),
        ([3.0, 5.0], np.tile([3.0, 5.0], (B, 1))),
        (lambda run: run.params.size, np.tile([2.0, 4.0], (B, 1))),
        (lambda run: run.records[1], np.stack([TWO[1], FOUR[1]], axis=1)),
    ],
    ids=["number", "one a component", "number a run", "one a replicate"],
)
def test_what_is_claimed_may_be_a_function_of_the_same_run(value, expected):
    found = samples(PAIR, bound(at_most=value, margin=0.5, scale=value, trivial=value), first)
    for part in (found.predicted, found.scale, found.trivial):
        np.testing.assert_array_equal(part, expected)
    claim = registered()["mine.claim"]
    allowed = claim.criterion.compared(found, {}, is_computed=False).allowed
    np.testing.assert_array_equal(allowed, 0.5 * np.asarray(expected))


@pytest.mark.parametrize(
    ("runs", "labels", "expected"),
    [
        (PAIR, None, ["two", "four"]),
        (PAIR, ["M", "2 M"], ["M", "2 M"]),
        (RUNS.at("two"), None, ["t = 1", "t = 2"]),
        (RUNS.at("two"), lambda run: [f"{run.params.size}, {time}" for time in run.rounds], ["2, 1", "2, 2"]),
    ],
    ids=["selection", "given", "rounds", "function"],
)
def test_components_have_names(runs, labels, expected):
    made = claimed(runs, bound(at_most=1.0), first, labels=labels)
    assert evidence.labels_of(made, MADE, 2) == expected


def test_a_rate_is_over_the_selection_s_abscissa():
    found = claimed(RUNS.over({"two": 2, "four": 4}), rate(at_least=1, margin=0.2), first).criterion
    assert (found.abscissa, found.kind, found.side, found.margin) == ((2.0, 4.0), "rate", "at_least", 0.2)


@pytest.mark.parametrize(
    ("runs", "function", "shape"),
    [
        (RUNS.at("two"), lambda run: run.records.T, (B, 2)),
        (PAIR, lambda run: run.records[None], (1, 2, B)),
        (PAIR, lambda run: run.records.mean(), ()),
        (RUNS, lambda runs: runs["two"].records.T, (B, 2)),
    ],
    ids=["transposed", "too many axes", "number", "mapping"],
)
def test_a_wrong_shape_is_told_as_the_function_gave_it(runs, function, shape):
    cell = "" if runs is RUNS else " of 'two'"  # which of the cells the message is about
    refused = str(refusal(DeclarationError, samples, runs, identity(within=0), function))
    assert f"<lambda> returned shape {shape} for {B} replicates{cell}. The last axis is for replicates" in refused


SMALL = Hypothesis("M is at most 2", lambda dims, run: run.params.size <= 2)
FLAT = Hypothesis("one sample", lambda dims, run: dims.num_samples == 1)


@pytest.mark.parametrize(
    ("runs", "own", "reason"),
    [
        (PAIR, [], "fails here: M is at most 2 (not for four)"),
        (RUNS.at("four"), [], "fails here: M is at most 2"),
        (RUNS, [], "fails here: M is at most 2 (not for four, four, slow)"),
        (RUNS.at("two"), [Hypothesis("M is large", lambda dims, run: run.params.size > 9)], "fails here: M is large"),
        (RUNS.at("two"), [Hypothesis("late", lambda dims, run: run.replicates > 0)], "fails here: late"),
        (RUNS.at("two"), [], ""),
    ],
    ids=["some cells", "the cell", "mapping", "the claim's own", "some replicates", "met"],
)
def test_runs_that_break_a_hypothesis_are_named(runs, own, reason):
    """Of the runs that the claim looks at, and no others."""
    of = made(hypotheses=[FLAT, SMALL])
    assert of.plain.hypotheses == ["one sample", "M is at most 2"]
    about = claimed(runs, identity(within=1e9), lambda run: np.zeros(B), of, hypotheses=own)
    verdict = judge(about, "unit-signal", MADE, 0, 0.01)
    if reason:
        assert (verdict.status, verdict.reason) == (Status.INAPPLICABLE, reason)
    else:
        assert verdict.status is not Status.INAPPLICABLE


def test_claims_of_one_function_have_roles_in_their_order():
    of = made(formula="x", where="Lemma 0, Eq. (1)")
    options: dict[str, Any] = {"where": "Lemma 0, at 4", "instead": "mine.three", "exact": True}

    @of.claim("mine.one", PAIR, bound(at_most=1.0), role="charitable", says="It falls.", formula=r"y \le 1")
    @of.step("mine.two", PAIR, probability(at_least=0.9), **options, says="It falls at 4.", formula="z")
    def falls(run):
        return first(run)

    of.cite("theirs.three", role="corrected")
    expected = {"mine.two": Role.STEP, "mine.one": Role.CHARITABLE, "theirs.three": Role.CORRECTED}
    assert list(of.plain.roles.items()) == list(expected.items())
    one, two = registered()["mine.one"], registered()["mine.two"]
    assert (one.statement, one.formula, one.where) == ("It falls.", r"y \le 1", "Lemma 0, Eq. (1)")
    assert (two.statement, two.formula, two.where) == ("It falls at 4.", "z", "Lemma 0, at 4")
    assert (one.is_computed, two.is_computed, two.replaced_by) == (False, True, "mine.three")
    assert one.function is two.function is falls
    assert [each.id for each in statement.statements_tested_by(["mine.one", "mine.two"])] == ["lemma-0"]


def test_an_incomplete_claim_is_refused_and_has_no_role():
    of = made()
    claimed(PAIR, bound(at_most=1), first, of)
    for declare in (
        lambda: of.claim("mine.a", PAIR, rate(), role="step"),  # of no side
        lambda: bound(at_most=1, at_least=0),
        lambda: of.claim("mine.a", PAIR, bound(at_most=1), role="steps"),
        lambda: of.claim("mine.a", PAIR, bound(at_most=1), role="step"),  # which says nothing
        lambda: claimed(PAIR, bound(at_most=1), first, of),  # twice
    ):
        refusal(DeclarationError, declare)
    assert list(of.roles) == ["mine.claim"]


def test_a_claim_without_a_formula_has_that_of_its_statement():
    """Would catch a formula of what holds instead beside a claim of what is printed, or one that is lost."""
    of = made(formula=r"y \le 1", correction="It falls to 2.", correction_formula=r"y \le 2")
    for role in Role:
        of.claim(f"mine.{role}", RUNS.at("two"), bound(at_most=1), role=role, says="It falls.")(first)
    of.claim("mine.own", RUNS.at("two"), bound(at_most=1), role="corrected", says="It stays.", formula="y = 3")(first)
    formulas = {id: claim.formula for id, claim in registered().items()}
    assert formulas == {f"mine.{role}": r"y \le 1" for role in Role} | {
        "mine.corrected": r"y \le 2",
        "mine.own": "y = 3",
    }


def test_what_is_measured_on_a_run_that_is_not_read_is_computed():
    """Would catch a formula's claim that counts as simulated, or a simulated one that does not."""
    of = made()
    for name, runs in (("read", RUNS.at("two")), ("unread", dataclasses.replace(RUNS.at("two"), is_computed=True))):
        of.claim(f"mine.{name}", runs, bound(at_most=1), role="step", says="It is 1.")(lambda run: alike(run, 1.0))
    assert [claim.is_computed for claim in registered().values()] == [False, True]
