"""Searches of planted regions, whose truth is known: catches a flip that is none, one that is missed, and a setting
that means nothing. Runs are made by NumPy, so that a search takes a moment.
"""

import contextlib
import dataclasses
import functools
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from refusals import refusal

import moe_theory as mt
from moe_theory.cli import verify as command
from moe_theory.core.errors import DamagedError, DeclarationError, InvalidValueError
from moe_theory.report.challenge import headline
from moe_theory.runs import Progress, Run, quiet
from moe_theory.runs.store import Store
from moe_theory.verification import Experiment, recorded, session
from moe_theory.verification import claim as claims
from moe_theory.verification.challenge import FOLDER, Challenge, challenge, saved_searches, search_each
from moe_theory.verification.challenged import Looked
from moe_theory.verification.claim import Measured
from moe_theory.verification.explore import explore
from moe_theory.verification.region import Choice, Order, Scale, Size, varies
from moe_theory.verification.statement import Declared, Hypothesis, bound, identity
from moe_theory.verification.verdict import Status

from . import planted_region
from .planted_region import PAPER as PAPER  # claims of this file are judged under its readings

ERROR, LONG = 1e-5, 1e6  # seconds that no search takes
FREE = (Scale("scale", 0.0, 2.0), Scale("tilt", 0.0, 1.0), Size("count", 1, 8))
PLAIN = "plain"
BEYOND, WITHIN = 0.3, -0.2  # of a margin of 1 that noise of 0.1 is seen in
Truth = Callable[[Any, str], float]  # (parameters, law) -> by how much the statement is violated


def experiment(truth: Truth, setting: Mapping[str, Any] = MappingProxyType({})) -> Experiment:
    law = setting.get("law", PLAIN)

    def measure(cells, first, count, seed):
        noise = 0.1 * np.random.default_rng([seed, first]).standard_normal((1, count))
        about = np.array([1]), np.arange(first, first + count), None
        return {each.name: Run(each.params, *about, truth(each.params, law) + noise) for each in cells}

    return dataclasses.replace(
        planted_region.EXPERIMENT,
        name="planted region",
        cells={"only": {"fixed": 1.0, "count": setting.get("count", 3)}},
        measured=Measured(measure),
        of=functools.partial(experiment, truth),
    )


@pytest.fixture
def declare(forgotten) -> Callable[..., Declared]:
    """Declares a planted statement, which is gone after the test."""

    def declare(truth: Truth, free=FREE, **about) -> Declared:
        declared = mt.statement("region", paper="planted", where="here", claim="Small.", free=free, **about)
        of = experiment(truth)

        @declared.charitable(
            "planted.small", of.at("only"), bound(at_most=0, scale=1, margin=0), says="It is at most 0."
        )
        def value(run):
            return run.records[-1]

        return declared

    return declare


def search(seed: int = 0, **about) -> Challenge:
    about = {"reading": PLAIN, **about}
    return challenge("planted.region", LONG, seed=seed, error=ERROR, progress=quiet, **about)


def where(condition: Callable[[Any], bool]) -> Truth:
    return lambda params, law: BEYOND if condition(params) else WITHIN


def sizes(params: Any) -> int:
    return int(params.count)


REGIONS = {  # by what is planted: the truth and the axes that a flip has to move
    "one corner": (where(lambda p: p.scale > 1.7 and p.tilt > 0.8), {"scale", "tilt"}),
    "two axes that meet": (where(lambda p: p.tilt > 0.6 and sizes(p) == 1), {"tilt", "count"}),
    "one end of a size": (where(lambda p: sizes(p) == 8), {"count"}),
    "one law": (lambda params, law: BEYOND if law == "slow" else WITHIN, {"law"}),
}
LAWS = Choice("law", {PLAIN: PLAIN, "slow": "slow"})


@pytest.mark.parametrize(
    "name", ["one corner", "one law", *(pytest.param(name, marks=pytest.mark.thorough) for name in [*REGIONS][1:3])]
)
def test_a_break_is_found_shrunk_and_repeated_by_its_command(name, declare):
    truth, axes = REGIONS[name]
    declare(truth, (*FREE, LAWS))
    found = [search(seed) for seed in range(2)]
    assert [each.sought for each in found] == ["break"] * 2
    assert sum(bool(each.flips) for each in found) == 2
    for each in found:
        assert set(each.flips[0].setting) == axes
        assert all(verdict.status is Status.REFUTED for verdict in each.flips[0].verdicts)
        words = shlex.split(each.flips[0].command)[2:]
        with command.verify.make_context("verify", words) as context:
            asked = {name: context.params[name] for name in ("patterns", "readings", "settings", "replicates", "seed")}
        (again,) = mt.verify(
            asked["patterns"][0],
            readings=asked["readings"],
            settings=dict(text.split("=") for text in asked["settings"]),
            replicates=asked["replicates"],
            seed=asked["seed"],
            error=context.params["error"],
            progress=quiet,
        )
        assert (again.status, again.observed) == (Status.REFUTED, each.flips[0].verdicts[0].observed)


@pytest.mark.parametrize("violation", [WITHIN, 0.0])  # 0 is the least favourable truth
def test_what_is_true_everywhere_is_unbroken(violation, declare):
    declare(lambda params, law: violation)
    for seed in range(2):
        found = search(seed)
        assert not found.flips
        assert found.settings > 40
        assert found.shapes == 0


def test_what_is_false_but_in_a_corner_is_rescued_there(declare):
    declare(where(lambda p: p.scale > 0.5 or p.tilt < 0.5))
    found = search()
    assert found.sought == "rescue"
    (flip,) = found.flips
    assert set(flip.setting) == {"scale", "tilt"}
    assert flip.setting["scale"] <= 0.5 <= flip.setting["tilt"]
    low, high = flip.borders["scale"]
    assert high <= 0.5 <= low
    recorded_at = {"scale": 1.0, "tilt": 0.0, "count": 3}
    assert found.clause is not None
    assert not all(bound.allows(recorded_at[bound.name]) for bound in found.clause.bounds)


def test_a_clause_is_found_under_which_it_holds(declare):
    declare(where(lambda p: p.tilt > 0.6 and sizes(p) <= 2))
    for seed in range(2):
        found = search(seed)
        clause = found.clause
        assert clause is not None
        assert len(clause.bounds) <= 2
        assert clause.settings >= 16
        values = {"tilt": [0.7, 1.0], "count": [1, 2]}
        assert all(
            any(not bound.allows({"tilt": tilt, "count": count, "scale": 1.0}[bound.name]) for bound in clause.bounds)
            for tilt in values["tilt"]
            for count in values["count"]
        )


def test_a_flip_is_judged_under_the_other_readings_as_well(declare):
    declare(where(lambda p: p.scale > 1.5 and p.tilt < 0.5))
    found = search(reading=None)
    assert found.readings == ["plain", "tilted"]
    (flip,) = [each for each in found.flips if set(each.setting) == {"scale"}]
    assert {each.reading.partition(", ")[0] for each in flip.verdicts} == {"plain", "tilted"}
    assert found.flips_under("plain") == [flip]
    assert found.flips_under("tilted") == []


@pytest.mark.parametrize(("border", "standing"), [(1.6, {"plain", "tilted"}), (1.2, {"plain"})])
def test_a_clause_stands_under_the_readings_in_which_it_was_looked_into(border, standing, declare):
    def truth(params: Any, law: str) -> float:  # the reading "tilted" has a tilt
        beyond, start = (BEYOND, border) if params.tilt else (2 * BEYOND, 1.6)
        return beyond if params.scale > start else WITHIN

    declare(truth, (Scale("scale", 0.0, 2.0),))
    found = search(reading=None)
    assert found.clause is not None
    assert found.reading == "plain"
    assert set(found.clause.readings) == standing
    assert found.restores("tilted") == ("tilted" in standing)


def test_a_search_is_read_as_it_was_written(declare):
    declare(where(lambda p: p.tilt > 0.6))
    found = search()
    (again,) = recorded.parse_searches(recorded.searches_text([found]), "here", claims.registered())
    assert again.to_json() == found.to_json()
    assert again.flips_under("plain")[0].setting == found.flips[0].setting
    refusal(DamagedError, recorded.parse_searches, '[{"schema": "other"}]', "here", claims.registered())


def test_searches_are_kept_and_made_again_where_code_or_error_are_others(declare, tmp_path):
    declare(where(lambda p: p.tilt > 0.6))
    about = {"reading": PLAIN, "folder": tmp_path, "progress": quiet}
    (first,) = search_each(["planted.region"], LONG, error=ERROR, **about)
    (again,) = search_each(["planted.region"], LONG, error=ERROR, **about)
    assert again.to_json() == first.to_json()  # with the seconds that it took
    (other,) = search_each(["planted.region"], LONG, error=2 * ERROR, **about)
    assert other.error == 2 * ERROR
    assert [each.statement for each in saved_searches(tmp_path)] == ["planted.region"]
    store = Store(tmp_path / FOLDER)
    assert len(store.keys()) == 1, "one search a statement"
    store.put({"of other code": b'{"schema": "earlier"}'})
    refusal(DamagedError, saved_searches, tmp_path)


def test_progress_names_the_statement_and_counts_settings(declare):
    lines = []

    class Listener(Progress):
        running = lines.append
        at = lines.append

    declare(lambda params, law: WITHIN)
    challenge("planted.region", 90, reading=PLAIN, error=ERROR, progress=Listener())
    assert lines[0] == "the search on planted.region"
    assert lines[1].startswith("1 setting tried, ")
    assert re.fullmatch(r"\d+ settings tried, \d+ of 90 s", lines[-1])


def test_settings_that_break_a_hypothesis_are_inadmissible_and_not_unbroken(declare):
    small = Hypothesis("scale is below 1.5", lambda dims, run: run.params.scale < 1.5)
    declare(where(lambda p: p.scale >= 1.5), hypotheses=[small])
    found = search()
    assert not found.flips
    assert found.inadmissible > 0


def test_what_is_beyond_its_margin_and_not_shown_to_break_is_not_called_unbroken_alone(declare):
    declare(lambda params, law: -0.2)
    found = search()
    beyond = dataclasses.replace(found, nearest=Looked({"tilt": 1.0}, 3.0, 64))
    assert headline(found) == f"no counterexample at {found.settings} settings"
    assert "but beyond its margin and undecided at tilt = 1" in headline(beyond)
    assert "too few for the ends of all axes" in headline(dataclasses.replace(found, settings=3))


def test_axes_that_change_nothing_are_named(declare):
    declare(where(lambda p: p.tilt > 0.9))
    assert search().idle == ["scale", "count"]


def test_a_region_that_is_none_is_refused(declare):
    labels = {"one": 1, "two, or so": 2}
    for free in (Scale("scale", 2, 1), Choice("law", {"one": 1}), Choice("law", labels), "scale"):
        refusal(DeclarationError, declare, where(bool), (free,))


def test_what_an_experiment_cannot_vary_is_refused(declare):
    declare(where(bool), ())
    of = dataclasses.replace(experiment(where(bool)), of=None, dims=SimpleNamespace(num_samples=6))
    other = mt.statement("other", paper="planted", where="there", claim="Small.", free=[Size("num_samples", 1, 9)])
    with pytest.raises(DeclarationError, match=r"built with num_samples=6 only.*of="):
        other.charitable("planted.other", of.at("only"), identity(within=1), says="Small.")


def test_a_setting_outside_the_region_is_refused_and_one_inside_reaches_the_cells(declare):
    declare(lambda params, law: float(params.scale) - 2)
    with pytest.raises(InvalidValueError, match=r"scale=3 must be in \[0, 2\]: its statement leaves only this range"):
        session.check_request("planted.small", PLAIN, settings={"scale": 3})
    (verdict,) = mt.verify("planted.small", readings=PLAIN, settings={"scale": "0.5"}, replicates=64, progress=quiet)
    assert verdict.reading == "plain, scale=0.5"
    assert verdict.observed == pytest.approx(-1.5, abs=0.1)


def test_claims_whose_runs_cannot_be_had_at_a_setting_are_refused_there(declare):
    declared = declare(where(lambda p: p.scale > 1.5), (LAWS,))
    fixed = dataclasses.replace(experiment(where(bool)), name="fixed", of=None)
    declared.competitor("planted.rival", fixed.at("only"), bound(at_most=0, scale=1, margin=0), says="It is, too.")(
        lambda run: run.records[-1]
    )
    (found,) = mt.verify("planted.small", readings=PLAIN, settings={"law": "slow"}, replicates=64, progress=quiet)
    assert found.reading == "plain, law=slow"
    asked = {"readings": PLAIN, "progress": quiet}
    refusal(InvalidValueError, mt.verify, "planted.region", **asked, settings={"law": "slow"})
    refusal(InvalidValueError, mt.verify, "planted.small", **asked, settings={"lew": "slow"})


def test_a_map_of_a_choice_is_of_its_labels(declare):
    """Catches labels that are drawn, told or kept as their places, and a law that is not built with."""
    declare(lambda params, law: float(params.fixed) - (2 if law == "plain" else 0), (Scale("fixed", 0.0, 4.0), LAWS))
    over = ["law=slow,plain", "fixed=1,3"]
    found = explore("planted.small", over, progress=quiet)
    statuses = {tuple(row["at"].values()): row["verdict"]["status"] for row in found.to_json()["points"]}
    assert statuses == {
        ("slow", 1.0): "REFUTED", ("slow", 3.0): "REFUTED", ("plain", 1.0): "SUPPORTED", ("plain", 3.0): "REFUTED"
    }  # fmt: skip
    assert found.summary() == ["SUPPORTED at 1 of 4 points", "REFUTED at 3 of 4 points"]
    line = explore("planted.small", "law=plain,slow", progress=quiet)
    assert line.summary() == ["SUPPORTED at 1 of 2 points: law = plain", "REFUTED at 1 of 2 points: law = slow"]


def test_an_order_keeps_the_grid_of_a_limit():
    params = [planted_region.Params(scale=scale, tilt=2 * scale**0.5) for scale in (0.1, 0.01)]
    tilt = Order("tilt", of="scale", recorded=0.5)
    assert [tilt.into(each, 1.5).tilt / each.scale**1.5 for each in params] == pytest.approx([2, 2])


def test_axes_are_filled_evenly():
    for axis, values in (
        (Scale("a", 0.0, 8.0), [0, 4, 8]),
        (Scale("a", 0.01, 1.0), [0.01, 0.1, 1]),
        (Size("a", 1, 3), [1, 2, 3]),
    ):
        assert [axis.at(place) for place in (0.0, 0.5, 1 - 1e-9)] == pytest.approx(values)
    labels = Choice("a", {"x": 0, "y": 1, "z": 2})
    assert [labels.at(place) for place in (0.0, 0.5, 1 - 1e-9)] == ["x", "y", "z"]


def test_an_axis_of_a_paper_is_of_experiments_whose_cells_agree_in_it():
    ratio, level = Scale("tilt", 0.0, 1.0, of="scale"), Scale("tilt", 0.0, 1.0)
    cells = {"one": {"scale": 1.0, "tilt": 0.5}, "two": {"scale": 2.0, "tilt": 1.0}, "three": {"scale": 3.0}}
    of = dataclasses.replace(planted_region.EXPERIMENT, cells=cells)
    assert varies(ratio, of, ("one", "two"))
    assert not varies(level, of, ("one", "two"))
    assert not varies(ratio, of)
    assert not varies(ratio, dataclasses.replace(of, cells={"one": {"scale": 1.0}, "two": {"scale": 2.0}}))
    assert varies(level, dataclasses.replace(of, cells={"one": {"scale": 1.0}, "two": {"scale": 2.0}}))


def test_damaged_searches_are_named_and_made_again(declare, tmp_path, caplog):
    declare(where(lambda p: p.tilt > 0.6))
    about = {"reading": PLAIN, "folder": tmp_path, "progress": quiet}
    (first,) = search_each(["planted.region"], LONG, **about)
    file = tmp_path / FOLDER / "results.sqlite"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("UPDATE results SET data = zeroblob(length(data))")
    refusal(DamagedError, saved_searches, tmp_path)
    (again,) = search_each(["planted.region"], LONG, **about)
    assert "results.sqlite was changed after it was written" in caplog.text
    assert again.flips == first.flips


def test_challenge_in_a_process_that_has_imported_no_paper():
    """Catches claims that are looked up before they are declared."""
    code = "import moe_theory; moe_theory.challenge('generalization.lemma-9', seconds=0)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "InvalidValueError: seconds=0" in process.stderr
