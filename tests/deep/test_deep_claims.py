"""Claims on the deep experiments, on numbers made up here: catches one that raises, mixes up its sides, or looks away.

Their own runs take minutes: that the systems give such records at all is tested beside them, and in the contract.
"""

import functools
import types

import numpy as np
import pytest
from written_down import check_written_down

from moe_theory.deep import continual, edge, reading
from moe_theory.deep.experiments import DRIVE, claims_for
from moe_theory.deep.params import Params
from moe_theory.deep.presets import EDGE, PRESETS, STRONG, expert_cell, preset
from moe_theory.runs import Run
from moe_theory.verification import Status, registry
from moe_theory.verification.session import judge

REPLICATES, ROUNDS = 256, np.arange(1, 4)
CLAIMS = registry.select_claims(["deep"])


def level_of(cell: str, params: Params) -> float:
    """An error that is as the papers say: less with more experts, with termination, by the adaptive gate. And as
    we say: least against a baseline.
    """
    if params.baseline_weight:
        return 0.1
    if "scale" in cell:
        return 0.1 if params.terminate or params.gate_scale == STRONG else 0.2
    if params.num_experts == 1:
        return 0.5
    if any(name in cell for name in ("nearest", "fastest", "uniform")):
        return 0.4
    if "adaptive" in cell:
        return 0.38 if params.num_experts == 5 else 0.2
    return (0.4 if not params.terminate else 0.3) - 0.01 * params.num_experts


def made_up(cell: str, params: Params, rng: np.random.Generator, kind: type) -> types.SimpleNamespace:
    shape = (len(ROUNDS), REPLICATES)
    errors = level_of(cell, params) + rng.normal(0, 0.005, shape)
    about = {"variance": np.full(shape, 0.002), "total_variance": np.full(shape, 0.9)}
    drives = np.full(shape, 0.01 * params.gate_scale**2)
    known = {"generalization_error": errors, "forgetting": errors / 2, "accuracy": 1 - errors, "drive": drives, **about}
    assert known.keys() <= {*kind._fields, "forgetting"}
    return types.SimpleNamespace(**known)


@functools.cache
def runs_of(experiment, under: str):
    kind = edge.Info if "edge" in experiment.name else continual.Info
    runs = {}
    for number, (cell, own) in enumerate(experiment.cells.items()):
        params = reading(under).params(**own)
        records = made_up(cell, params, np.random.default_rng(number), kind)
        runs[cell] = Run(params, ROUNDS, np.arange(REPLICATES), None, records)
    return runs


@functools.cache
def judged():
    return {claim.id: judge(claim, "balanced", runs_of(claim.experiment, "balanced"), 0, 1e-3) for claim in CLAIMS}


def test_every_claim_is_judged_and_written_down():
    check_written_down(list(judged().values()), CLAIMS)


def test_orders_are_the_right_way_round():
    """Where everything is as the papers say, only what contradicts itself, or these numbers, is refuted."""
    refuted = {id for id, verdict in judged().items() if verdict.status is Status.REFUTED}
    assert refuted == {
        "deep.drive.strong",  # here the router freezes by itself
        "deep.table-1.below-one",  # here any router beats one expert
        "deep.table-2.below-one",
        "deep.table-2.order",  # 10 experts are better than 8 here, as Table 1 and not Table 2 has it
        "deep.edge-figure-4.sigma-0",
        "deep.edge-figure-4.sigma-0-deviation",
    }
    assert {verdict.status for id, verdict in judged().items() if id not in refuted} == {Status.SUPPORTED}


@pytest.mark.parametrize(
    ("name", "scale", "drive"), [("weak", 20, 30.0), ("strong", 100, 5.0), ("superfluous", 100, 5.0)]
)
def test_another_drive_than_a_claim_is_about_makes_it_inapplicable(name, scale, drive):
    claim = next(claim for claim in CLAIMS if claim.id == f"deep.drive.{name}")
    runs = dict(runs_of(DRIVE, "balanced"))
    cell = expert_cell(4, terminate=False, gate_scale=scale)
    records = types.SimpleNamespace(**{**vars(runs[cell].records), "drive": np.full((len(ROUNDS), REPLICATES), drive)})
    runs[cell] = runs[cell]._replace(records=records)
    assert judge(claim, "balanced", runs, 0, 1e-3).status is Status.INAPPLICABLE


@pytest.mark.parametrize(
    "name", [name for name, each in PRESETS.items() if not (name.endswith("-small") or each.others)]
)
def test_a_figure_s_claims_go_with_its_preset_and_name_its_data(name):
    of = preset(name)
    claims = claims_for(of, "MNIST")
    assert claims
    assert {claim.experiment.data for claim in claims} == {"MNIST"}
    assert set(claims[0].experiment.cells) == set(of.cells())
    source = "edge" if of.paper == EDGE else "continual"
    assert all(source in claim.where for claim in claims)
    verdict = judge(claims[0], "balanced", runs_of(claims[0].experiment, "balanced"), 0, 1e-3)
    assert verdict.setting == "balanced on MNIST"


def test_the_small_presets_name_the_digits():
    assert {verdict.setting for verdict in judged().values()} == {"balanced on digits"}
