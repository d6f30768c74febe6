"""Where a planted claim holds: catches a boundary that is misplaced, and verdicts other than `verify` gives."""

import dataclasses
import inspect
import shlex

import numpy as np
import pytest
from refusals import refusal

from moe_theory import verify
from moe_theory.cli import verify as command
from moe_theory.core.errors import InvalidValueError, MoeTheoryError, UnknownNameError
from moe_theory.verification import Status, session
from moe_theory.verification import claim as claim_module
from moe_theory.verification.explore import carry_out_search, explore, plan_search

from .planted_region import BOUND, CLAIM

ID = CLAIM.id
SQUARE = ["scale=0,2,4", "tilt=-2,0,2"]
MANY = [f"{name}={','.join(map(str, range(101)))}" for name in ("scale", "tilt")]


@pytest.fixture(autouse=True)
def planted(forgotten):
    claim_module._REGISTERED[ID] = CLAIM


@pytest.mark.parametrize(
    ("text", "values", "is_log"),
    [
        ("scale=-1,1", (-1.0, 1.0), False),
        ("scale = 1e-2 , 1e2", (0.01, 100.0), True),
        ("scale=3,1,2,1", (1.0, 2.0, 3.0), False),
        ("count=1,16", (1, 16), True),
        ("is_doubled=true,False", (False, True), False),
    ],
)
def test_an_axis_is_read(text, values, is_log):
    (axis,) = plan_search(ID, text).axes
    assert axis.values == values
    assert {type(value) for value in axis.values} == {type(values[0])}
    assert axis.is_log is is_log


@pytest.mark.parametrize(
    ("over", "parts"),
    [
        (["sclae=0,4"], ["unknown parameter 'sclae'", "Did you mean 'scale'"]),
        (["scale"], ["--over scale has no value"]),
        (["scale=0,"], ["scale= must be a number"]),
        (["scale=1,1"], ["at least two different values"]),
        (["scale=1,inf"], ["finite"]),
        (["count=1,2.5"], ["count=2.5 must be a whole number"]),
        (["scale=0,4", "scale=0,2"], ["scale is already"]),
        (["scale=0,4", "tilt=0,1", "count=1,3"], ["3 axes", "once or twice"]),
        (["fixed=0,4"], ["fixed cannot be set", "every cell of the experiment planted sets it", "'only' sets 1"]),
        (["scale=0,2000"], ["scale=2000.0 must be at most 1000"]),
    ],
)
def test_an_axis_that_means_nothing_is_refused_before_anything_runs(over, parts):
    refused = str(refusal(MoeTheoryError, plan_search, ID, over))
    assert [part for part in parts if part not in refused] == []


def test_a_search_that_cannot_be_made_is_refused():
    for changes, error, argument in (
        ({"over": MANY}, InvalidValueError, ""),
        ({"replicates": 3}, InvalidValueError, "replicates"),
        ({"error": 1.0}, InvalidValueError, "error"),
        ({"reading": "plian"}, UnknownNameError, "reading"),
        ({"reading": "all"}, UnknownNameError, "reading"),
        ({"pattern": "planted.regoin"}, UnknownNameError, "claim"),
        ({"pattern": "continual.lemma-3*"}, InvalidValueError, ""),
    ):
        refused = refusal(error, plan_search, **{"pattern": ID, "over": "scale=0,4", **changes})
        assert refused.argument == argument, changes


def test_points_are_told_where_they_are():
    found = explore(ID, "scale=0,2.5,5,7.5,10")
    assert [point.coordinates[0] for point in found.points] == [0, 2.5, 5, 7.5, 10]
    for point in found.points:
        right = Status.SUPPORTED if point.coordinates[0] < BOUND else Status.REFUTED
        assert point.verdict.status is right
    assert found.summary() == [
        "SUPPORTED at 2 of 5 points: scale = 0, 2.5",
        "REFUTED at 3 of 5 points: scale = 5, 7.5, 10",
    ]
    assert 0.98 * 0.01 < found.point_error * 5 <= 0.01


def test_a_point_is_what_verify_says_there_and_its_command_repeats_it(tmp_path):
    found = explore(ID, ["scale=1.5,2.5,3.5", "is_doubled=false,true"], reading="tilted", seed=4)
    for point in found.points:
        settings = dict(zip(("scale", "is_doubled"), point.coordinates, strict=True))
        (verdict,) = verify(ID, readings="tilted", settings=settings, seed=4, error=found.point_error)
        assert verdict == point.verdict
        given = command.verify.make_context("verify", shlex.split(point.verdict.command)[2:]).params
        request = command.request_of(**{name: given[name] for name in inspect.signature(command.request_of).parameters})
        (again,) = session.carry_out(request).verdicts
        assert again == point.verdict
        assert point.verdict.reading.startswith("tilted, scale=")


def mapped(over, **changes):
    """The map of the planted claim with these changes."""
    claim_module._REGISTERED[ID] = dataclasses.replace(CLAIM, **changes)
    return carry_out_search(plan_search(ID, over))


def test_a_failing_claim_is_mapped_as_an_error():
    found = mapped("scale=0,1,2,3,4", observe=lambda runs: 1 / 0)
    (failure,) = found.failures()
    assert failure.startswith("ERROR: ZeroDivisionError: division by zero (test_explore.py, line ")
    assert found.summary() == ["ERROR at 5 of 5 points: scale = 0, 1, 2, 3, 4"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("over", ["scale=0,100", "scale=90,100"], ids=["in part", "everywhere"])
def test_numbers_that_overflow_are_left_undecided(over):
    """Would catch a map that is lost because an interval at one of its points is infinite."""

    def enormous(runs):
        values = np.asarray(runs["only"].records[-1], np.float64)
        spread = np.exp(7.0 * runs["only"].params.scale) * np.linspace(-1, 1, len(values))
        return np.stack([values + spread, values + 0.7 * np.roll(spread, 9), 0 * values], axis=1)

    found = mapped(over, observe=enormous)
    assert found.points[-1].verdict.status is Status.INCONCLUSIVE


def test_cells_that_keep_their_own_value_are_named():
    cells = {"only": {}, "still": {"scale": 1.0}}
    found = mapped("scale=0,4", experiment=dataclasses.replace(CLAIM.experiment, cells=cells))
    assert found.kept == {"scale": ["still"]}
