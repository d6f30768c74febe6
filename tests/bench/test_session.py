"""Worker processes: catches events that are lost, errors without their cause, workers that outlive a run."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
from bench_samples import TINY, record

from moe_theory.bench import engine, history, session, worker
from moe_theory.bench.setting import timed_systems
from moe_theory.core.errors import InvalidRunError, UnknownNameError

ORDER = {
    "kind": "groups",
    "cores": "one",
    "effort": {"passes": 2, "seconds": 0.001},
    "groups": [
        {
            "part": "peers",
            "title": "tiny",
            "members": [{"contender": engine.NAME, "setting": dataclasses.asdict(TINY), "is_automatic": False}],
        }
    ],
}


class Watched:
    def __init__(self):
        self.units = self.sum = 0
        self.told = []

    def planned(self, units):
        self.units = units

    def under_way(self, what):
        self.told.append(what)

    def done(self, units):
        self.sum += units


def test_a_worker_measures_what_it_is_ordered_to(monkeypatch):
    monkeypatch.setattr(session, "orders", lambda request, programs: [session.Order(ORDER, 1, {})])
    measured, watch = record(provenance={}, is_complete=False), Watched()
    session.carry_out(session.Request(), measured, watch)
    (each,) = measured.measurements
    assert (each.contender, each.setting, each.cores, len(each.seconds)) == (engine.NAME, TINY, "one", 2)
    assert measured.is_complete
    assert measured.provenance["backend"] == "cpu"
    assert measured.provenance["cores"] == session.available_cores()
    assert watch.sum == watch.units == 1
    assert watch.told == [f"tiny: preparing {engine.NAME}", "tiny: timing"]


def test_a_failing_worker_is_quoted():
    broken = session.Order({**ORDER, "groups": [{**ORDER["groups"][0], "members": [{"setting": {}}]}]}, 1, {})
    with pytest.raises(session.WorkerFailedError, match=r"ended with code 1: .*TypeError") as failure:
        list(session.events(broken))
    assert "\n" not in str(failure.value)


def test_no_worker_outlives_its_run(monkeypatch):
    started = []
    start = subprocess.Popen

    def remember(*arguments, **options):
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", remember)
    events = session.events(session.Order(ORDER, 1, {}))
    assert "facts" in next(events)
    events.close()
    assert started[0].returncode is not None


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system cannot pin a process")
def test_one_core_is_the_last_that_may_be_used():
    code = (
        "import os; before = os.sched_getaffinity(0); from moe_theory.bench.worker import choose_cores;"
        "print(choose_cores('all') == len(before), os.sched_getaffinity(0) == before,"
        "choose_cores('one'), os.sched_getaffinity(0) == {max(before)})"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True", "True", "1", "True"]


def test_cores_are_chosen_before_jax_is_there():
    code = "import sys, moe_theory.bench.worker; print('jax' in sys.modules, 'numpy' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False", "False"]


def test_where_there_is_no_accelerator_it_says_so():
    told = []
    order = {"kind": "accelerator", "systems": ["continual"], "precision": "float32", "effort": {**ORDER["effort"]}}
    worker.carry_out(order, 1, lambda name, content: told.append({name: json.loads(json.dumps(content))}))
    (content,) = [event["accelerator"] for event in told if "accelerator" in event]
    each = history.on_accelerator(content)
    assert (each.setting.batch, each.skipped) == (100_000, "JAX sees no accelerator here")


def parts(request, tmp_path):
    """Of each order: its cores and the parts of its groups, or which cache it compiles with."""
    orders = session.orders(request, tmp_path)
    return [
        (order.document["cores"], order.document.get("cache") or {each["part"] for each in order.document["groups"]})
        for order in orders
    ]


def test_orders_are_what_was_asked_for(tmp_path):
    everything = {"peers", "precision", "grid", *(f"scaling {axis}" for axis in "MNdsT")}
    caches = [history.COLD, history.FILLING, history.KEPT]
    assert parts(session.Request(is_quick=True), tmp_path) == [("one", {"peers"}), ("all", {"peers"})]
    assert parts(session.Request(cores="one"), tmp_path) == [("one", everything), *(("one", each) for each in caches)]
    assert parts(session.Request(cores="all", compilation=False), tmp_path) == [("all", everything)]
    both = parts(session.Request(compilation=False), tmp_path)
    assert both == [("one", everything), ("all", {"peers", "precision", "grid"})]
    (quick,) = session.orders(session.Request(("edge",), True, "one", "float64", (32,)), tmp_path)
    (group,) = quick.document["groups"]
    assert {member["setting"]["batch"] for member in group["members"]} == {32}
    assert {member["setting"]["precision"] for member in group["members"]} == {"float64"}
    (wide,) = session.orders(session.Request(accelerator=True), tmp_path)
    assert wide.document["systems"] == timed_systems()


def test_compiling_is_cold_once_and_kept_from_the_run_before(tmp_path):
    cold, filling, kept = session.compilations("one", tmp_path)
    assert "JAX_COMPILATION_CACHE_DIR" not in cold.environment
    assert filling.environment == kept.environment
    assert kept.environment["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"systems": ("contnual",)}, UnknownNameError, "continual"),
        ({"cores": "two"}, UnknownNameError, "unknown cores 'two'"),
        ({"precision": "float16"}, UnknownNameError, "float32"),
        ({"batches": (0,)}, InvalidRunError, "batch=0"),
    ],
)
def test_what_cannot_be_measured_is_refused(options, error, said):
    with pytest.raises(error, match=said):
        session.Request(**options)
