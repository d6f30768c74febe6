"""Readings that cannot matter: catches verdicts that are paid for twice, and readings judged as one that differ."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.core.papers import Reading
from moe_theory.core.system import System
from moe_theory.verify import Status, session
from moe_theory.verify.archive import Archive
from moe_theory.verify.request import resolve

from .declarations import experiment, make


class Params(NamedTuple):
    begun: float = 1.0  # initial states depend on it
    used: float = 1.0  # records do
    looped: float = 1.0  # they do, by way of a loop
    shown: float = 1.0  # an info that is not recorded does
    read: float = 1.0  # a claim reads it
    idle: float = 1.0  # nothing does


class State(NamedTuple):
    round: jax.Array
    place: jax.Array


class Info(NamedTuple):
    place: jax.Array
    shown: jax.Array


def init(key, params):
    return State(jnp.int32(0), jnp.asarray(params.begun) * 1.0)


def step(key, state, params):
    loop = jax.lax.fori_loop(0, state.round, lambda _, value: value * 0.5 + params.looped, 0.0)
    place = state.place + params.used * jax.random.normal(key) + loop
    return State(state.round + 1, place), Info(place, place + params.shown)


WALK = System(init, step)
WALKS = experiment(system=WALK, cells={"a": {}, "b": {}}, observe=lambda state, info: info.place, replicates=64)


def places(runs):
    return runs["a"].records[-1]


def counted(runs):
    return np.ones(len(runs["a"].replicates))


def with_its_parameter(runs):
    return places(runs) + runs["a"].params.read


def as_a_tuple(runs):
    return places(runs) + sum(runs["a"].params) * 0


def as_a_key(runs):
    return places(runs) + {runs["a"].params: 0.0}.get(Params(), 0.0)


def compiled(runs):
    return places(runs) + np.asarray(jax.jit(lambda params: params.read)(runs["a"].params))


def at_a_threshold(runs):
    return places(runs) + (runs["a"].params.read if np.any(places(runs) != 1) else 0.0)


def swallowed(runs):
    try:
        return at_a_threshold(runs)
    except Exception:
        return places(runs)


def of_real_numbers(runs):
    if np.all(places(runs) == 1):
        raise ValueError("no run is like this")
    return places(runs)


def request_for(field, observe, of=WALKS, error=1e-3):
    claim = make(kind="upper_bound", observe=observe, predict=lambda runs: 100.0, experiment=of)
    readings = [Reading("one", "", Params()), Reading("two", "", Params(), {field: 2.0})]
    return resolve([(of, reading, [claim]) for reading in readings], None, 5, error)


@pytest.mark.parametrize(
    ("field", "observe", "is_once"),
    [
        *((field, places, False) for field in ("begun", "used", "looped")),
        *((field, places, True) for field in ("shown", "read", "idle")),
        ("used", counted, True),
        ("idle", with_its_parameter, True),
        *(("read", observe, False) for observe in (with_its_parameter, as_a_tuple, as_a_key, compiled)),
        ("idle", of_real_numbers, False),
    ],
)
def test_a_claim_is_judged_once_exactly_if_it_cannot_tell_its_readings_apart(field, observe, is_once):
    request = request_for(field, observe)
    verdicts = session.carry_out(request).verdicts
    assert [verdict.settings for verdict in verdicts] == ([["one", "two"]] if is_once else [["one"], ["two"]])
    assert all(verdict.error == 1e-3 / len(verdicts) for verdict in verdicts)
    assert {*request.readings} == {"continual.one", "continual.two"}
    apart = [
        session.carry_out(resolve([(WALKS, Reading(name, "", Params(), choices), [claim])], None, 5, verdict.error))
        for claim, verdict in [(request.studies[0].claims[0], verdicts[0])]
        for name, choices in {"one": {}, "two": {field: 2.0}}.items()
    ]
    one, two = ({**report.verdicts[0].to_json(), "reading": "", "command": ""} for report in apart)
    assert one == {**verdicts[0].to_json(), "reading": "", "command": "", "also": []}
    assert one == two or not is_once


@pytest.mark.parametrize(
    "changes",
    [{"start": lambda root, replicates, params: None}, {"measure": lambda *asked: {}}, {"cells": {"a": {"idle": 3.0}}}],
)
def test_runs_that_no_program_makes_from_the_start_differ_unless_all_parameters_agree(changes):
    request = request_for("idle", places, experiment(**{**vars(WALKS), **changes}))
    assert request.num_verdicts == (1 if "cells" in changes else 2)


@pytest.mark.parametrize("observe", [at_a_threshold, swallowed])
def test_what_a_claim_reads_only_of_real_runs_is_an_error_and_no_silent_merger(observe):
    (verdict,) = session.carry_out(request_for("read", observe)).verdicts
    assert verdict.status is Status.ERROR
    assert "reads read of params of 'a', in which one and two differ" in verdict.reason


def test_three_readings_are_judged_by_what_sets_them_apart():
    claim = make(kind="upper_bound", observe=places, predict=lambda runs: 100.0, experiment=WALKS)
    choices = {"one": {}, "two": {"used": 2.0}, "three": {"idle": 2.0}, "four": {"used": 2.0, "idle": 2.0}}
    groups = [(WALKS, Reading(name, "", Params(), chosen), [claim]) for name, chosen in choices.items()]
    verdicts = session.carry_out(resolve(groups, None, 5, 1e-3)).verdicts
    assert [verdict.settings for verdict in verdicts] == [["one", "three"], ["two", "four"]]


def test_samples_count_for_the_readings_that_they_were_taken_for(tmp_path):
    archive, request = Archive(tmp_path), request_for("read", places)
    (study,) = request.studies
    alone = resolve([(WALKS, study.reading, study.claims)], None, 5, 1e-3)
    session.carry_out(alone, archive=archive)
    assert archive.load(study.claims[0], study.reading, 5) is not None
    assert archive.load(study.claims[0], study.reading, 5, ["two"]) is None
    session.carry_out(request, archive=archive)
    assert archive.load(study.claims[0], study.reading, 5, ["two"]) is not None
