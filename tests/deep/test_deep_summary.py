"""What runs of a preset come to: paired differences, baselines and warnings, on records made up here."""

import dataclasses
import io
import json

import numpy as np
import pytest
from rich.console import Console

from moe_theory.deep import datasets, reading, runs
from moe_theory.deep import report as deep
from moe_theory.deep.presets import preset
from moe_theory.deep.summary import summarize
from moe_theory.plot.markdown import terminal
from moe_theory.runs import Run

ROUNDS, REPLICATES = 20, 5


def plan_of(name, rounds=ROUNDS, **changes):
    chosen = preset(name)
    chosen = dataclasses.replace(chosen, dims=dataclasses.replace(chosen.dims, max_rounds=rounds))
    request = {"reading": reading("balanced"), "replicates": REPLICATES} | changes
    return runs.Plan(chosen, datasets.load("digits"), **request)


def made_up(plan, seed=0, **fixed):
    """Runs whose records are uniform numbers, but for those that are fixed."""
    rng = np.random.default_rng(seed)
    info = runs.paper_of(plan.preset).Info
    shape = (plan.preset.num_rounds, plan.replicates)
    made = {}
    for cell, params in plan.params().items():
        leaves = {name: rng.uniform(0.5, 1, shape).astype(np.float32) for name in info._fields}
        leaves["expert"] = rng.integers(0, params.num_experts, shape)
        leaves |= {name: np.broadcast_to(value, shape) for name, value in fixed.items()}
        made[cell] = Run(params, np.arange(1, shape[0] + 1), np.arange(shape[1]), None, info(**leaves))
    return made


def printed(tables, width):
    stream = io.StringIO()
    console = Console(file=stream, width=width)
    for table in tables:
        for part in terminal(table):
            console.print(part)
    return stream.getvalue()


def test_differences_are_paired():
    plan = plan_of("continual-mnist-small")
    made = made_up(plan)
    cells = {cell.name: cell for cell in summarize(plan, made).cells}
    assert cells["M = 1"].baseline is None
    assert not cells["M = 1"].differences
    ours, single = made["M = 7"].records, made["M = 1"].records
    gaps = ours.generalization_error[-1].astype(float) - single.generalization_error[-1]
    found = cells["M = 7"].differences["generalization_error"]
    assert found.mean == pytest.approx(gaps.mean())
    assert found.standard_error == pytest.approx(np.sqrt(np.var(gaps, ddof=1) / REPLICATES))
    accuracy = cells["M = 7"].measures["accuracy"]
    assert accuracy.mean == pytest.approx(np.mean([ours.accuracy[:, seed].sum() / ROUNDS for seed in range(5)]))
    assert cells["M = 7"].measures["forgetting"].mean == pytest.approx(ours.forgetting[-1].mean())


def test_servers_are_compared_with_as_many_under_the_adaptive_policy():
    plan = plan_of("edge-mnist-small")
    made = made_up(plan)
    summary = summarize(plan, made)
    cells = {cell.name: cell for cell in summary.cells}
    assert cells["M = 10, nearest"].baseline == "M = 10, adaptive"
    assert cells["M = 5, fastest"].baseline == "M = 5, adaptive"
    assert cells["M = 10, adaptive"].baseline is None
    drives = np.concatenate([made[f"M = {number}, adaptive"].records.drive for number in (5, 10)])
    assert summary.drive == pytest.approx(np.median(drives))
    assert summary.drive_quantile == pytest.approx(np.quantile(drives, 0.95))
    assert "dropped" in printed(deep.tables(summary), 80)


def test_tasks_that_were_dropped_moved_no_expert():
    plan = plan_of("edge-mnist-small")
    expert = np.where(np.arange(ROUNDS) % 2, 3, -1)[:, None]
    summary = summarize(
        plan, made_up(plan, expert=expert, locality=np.where(expert < 0, 0, 1.0), drive=3.0 * (expert > 0))
    )
    assert summary.drive == 3
    assert not any(cell.num_unmoved for cell in summary.cells)
    assert {cell.num_learned for cell in summary.cells} == {ROUNDS * REPLICATES // 2}


@pytest.mark.parametrize(("drive", "said"), [(3.0, None), (21.0, "freezes by itself"), (0.1, "hardly specialise")])
def test_the_drive_is_warned_of_where_it_decides(drive, said):
    plan = plan_of("continual-mnist-small")
    summary = summarize(plan, made_up(plan, drive=drive))
    assert f"median {drive:g}" in deep.magnitudes(summary)[1]
    warnings = deep.warnings_of(summary)
    assert len(warnings) == (said is not None)
    assert said is None or said in warnings[0]


def test_servers_terminate_nothing_and_need_more_drive():
    """A router of servers that freezes by itself is what the paper's figure needs; one below 10 tells nothing apart."""
    plan = plan_of("edge-mnist-small")
    assert deep.warnings_of(summarize(plan, made_up(plan, drive=60.0))) == []
    assert "hardly specialise" in deep.warnings_of(summarize(plan, made_up(plan, drive=3.0)))[0]
    assert not any(
        "median" in line
        for line in deep.warnings_of(
            summarize(plan_of("gate-drive-small"), made_up(plan_of("gate-drive-small"), drive=90.0))
        )
    )


def test_dead_experts_are_named():
    plan = plan_of("continual-mnist-small")
    made = made_up(plan)
    run = made["M = 4"]
    locality, expert = run.records.locality.copy(), run.records.expert.copy()
    locality[3, 1], expert[3, 1] = 0.9e-3, 2
    made["M = 4"] = run._replace(records=run.records._replace(locality=locality, expert=expert))
    (warning,) = deep.warnings_of(summarize(plan, made))
    assert "dead experts in M = 4: 1 of 100 tasks" in warning
    assert "(experts 2)" in warning


def test_exploration_that_never_ends_is_warned_of():
    plan = plan_of("continual-mnist-small", rounds=14)  # ceil(7 / 0.5) = 14, and ceil(4 / 0.5) = 8
    (warning,) = deep.warnings_of(summarize(plan, made_up(plan)))
    assert "in M = 7 in 14 rounds" in warning
    assert "M = 4" not in warning
    assert not deep.warnings_of(summarize(plan_of("continual-mnist-small", rounds=15), made_up(plan)))


def test_a_single_seed_has_no_error():
    plan = plan_of("continual-mnist-small", replicates=1)
    summary = summarize(plan, made_up(plan))
    assert "±" not in printed(deep.tables(summary), 140)
    document = json.loads(json.dumps(deep.summary_json(plan, summary, [], []), allow_nan=False))
    assert document["cells"][1]["measures"]["accuracy"]["standard_error"] is None
    assert "there are no verdicts" in deep.verdict_warnings(summary)[0]
