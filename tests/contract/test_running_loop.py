"""Functions that block, inside a running event loop, as every notebook has one: catches `asyncio.run` in the caller's
thread. `Sweep.run(dask=...)` has its test beside Dask's.
"""

import asyncio

import pytest

import moe_theory as mt
from moe_theory import continual, deep
from moe_theory.runs.progress import quiet

CLAIM = "generalization.theorem-1.fixed-router"
SMALL = {"rounds": 2, "samples": 8, "batch": 8, "epochs": 1, "test_images": 50, "replicates": 2}
SWEEP = mt.Sweep(system="continual", rounds=4, replicates=16)
SYSTEM = continual.system(continual.Dims(max_experts=4, num_tasks=4, num_features=6, num_samples=2))
PARAMS = continual.Params(num_experts=2)
CALLS = {
    "simulate": lambda folder: mt.simulate(SYSTEM, mt.root_key(0), PARAMS, 4),
    "simulate_batch": lambda folder: mt.simulate_batch(SYSTEM, mt.root_key(0), 2, PARAMS, 4),
    "vary": lambda folder: mt.vary(SYSTEM, PARAMS, 4, 2, num_experts=[1, 2], progress=quiet),
    "Sweep.run": lambda folder: SWEEP.run(folder, progress=quiet),
    "check": lambda folder: mt.check(CLAIM),
    "verify": lambda folder: mt.verify(CLAIM, replicates=64, folder=folder, progress=quiet),
    "explore": lambda folder: mt.explore(CLAIM, "delta=0.05,0.5", replicates=64, refine=0, progress=quiet),
    "challenge": lambda folder: mt.challenge(
        "continual.lemma-11-more-experts", seconds=0.1, reading="orthogonal-signal", progress=quiet
    ),
    "judge": lambda folder: deep.judge(deep.plan("edge-mnist-small", **SMALL), progress=quiet),
}
DEAR = ("challenge", "judge")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] if name in DEAR else []) for name in CALLS]
)
def test_it_runs_where_an_event_loop_does(name, tmp_path):
    async def cell():
        return CALLS[name](tmp_path)

    asyncio.run(cell())
