"""Ten thousand replicates of each paper, against numbers that another engine left: catches a rebuild that changes them.

`engine_reference.json` was made by running this file as a script with the package of commit 0116a34, whose engine had
no rounds known ahead, no chains of additions, no barriers and no hash of its own, only `jax.random`:

    git worktree add ../before 0116a34
    PYTHONPATH=../before python tests/statistical/test_engine_statistics.py

It holds, for a seed that no test draws from, means and deviations of all replicates; for the seed of the tests a digest
of all tasks drawn, and what the first replicates ended with. Runs are chaotic, so a last bit may send a task elsewhere
after some rounds: of the same seed 98.9 % (M = 5), 99.4 % (M = 10) and 100 % (edge) of replicates agreed within 1e-4
when the present engine was measured against that one; 90 % are demanded.
"""

import functools
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual, edge

pytestmark = pytest.mark.usefixtures("compiled_to_run")

REFERENCE = Path(__file__).with_name("engine_reference.json")
SEED, OTHER_SEED = 2, 1
NUM_REPLICATES, NUM_ROUNDS = 10_000, 60
NUM_LISTED = 500  # replicates whose own results are kept
WIDTH = 500  # that run in one call
# Of some 90 comparisons with a normal limit, at |z| < 6: a true one fails with probability 2e-9, all with below 1e-6.
LARGEST_Z = 6.0


class Case(NamedTuple):
    """A system, and what to look at of a round."""

    system: mt.System
    params: Any
    observe: Any


def learned(state: Any, info: Any) -> dict[str, Any]:
    return {
        "task": info.task,
        "generalization_error": info.generalization_error,
        "forgetting": info.forgetting,
        "terminated": state.terminated,
        "loads": state.visits,
    }


def served(state: Any, info: Any) -> dict[str, Any]:
    return {"task": info.task, "generalization_error": info.generalization_error, "loads": state.visits}


LEARNING = continual.system(continual.Dims(10, 6, 10, 6))  # one program for both numbers of experts
CASES = {
    "continual-5": Case(LEARNING, continual.Params(num_experts=5), learned),
    "continual-10": Case(LEARNING, continual.Params(num_experts=10), learned),
    "edge-10": Case(edge.system(edge.Dims(10, 10, 15, 10, max_delay=10)), edge.Params(num_experts=10), served),
}


@functools.cache
def simulated(name: str, seed: int) -> dict[str, np.ndarray]:
    """Records (rounds, ..., replicates)."""
    case, parts = CASES[name], []
    for first in range(0, NUM_REPLICATES, WIDTH):
        names = np.arange(first, first + WIDTH)
        _, records = mt.simulate_batch(
            case.system, mt.root_key(seed), names, case.params, NUM_ROUNDS, observe=case.observe
        )
        parts.append(jax.device_get(records))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=-1), *parts)


def statistics(records: dict[str, np.ndarray]) -> dict[str, list[list[float]]]:
    """For each quantity after a third of the rounds, and at their end: mean, variance, and the variance of that.

    A row a number: of the loads one an expert.
    """
    rows = {}
    for name in records.keys() - {"task"}:
        samples = np.asarray(records[name], float)[[NUM_ROUNDS // 3 - 1, NUM_ROUNDS - 1]].reshape(-1, NUM_REPLICATES)
        deviations = samples - samples.mean(axis=1, keepdims=True)
        variance, fourth = np.mean(deviations**2, axis=1), np.mean(deviations**4, axis=1)
        rows[name] = np.stack([samples.mean(axis=1), variance, fourth - variance**2], axis=1).tolist()
    return rows


def tasks_digest(records: dict[str, np.ndarray]) -> str:
    return hashlib.sha256(np.ascontiguousarray(records["task"], dtype="<i4").tobytes()).hexdigest()


@functools.cache
def reference() -> dict[str, Any]:
    return json.loads(REFERENCE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_replicates_are_distributed_as_before(name: str) -> None:
    """Would catch a change of any statistic that 10,000 replicates show: a mean by a tenth of a deviation, say.

    The seeds differ, so that it also finds what is wrong in the draws themselves.
    """
    before, now = reference()[name]["statistics"], statistics(simulated(name, SEED))
    assert before.keys() == now.keys()
    for quantity in now:
        one, other = np.array(now[quantity]), np.array(before[quantity])
        assert one.shape == other.shape
        for column in (0, 1):  # the mean by its variance, the variance by its own
            gaps = one[:, column] - other[:, column]
            errors = np.sqrt((one[:, column + 1] + other[:, column + 1]) / NUM_REPLICATES)
            assert np.all(np.abs(gaps) <= LARGEST_Z * errors + 1e-12), (quantity, gaps / errors)


@pytest.mark.parametrize("name", CASES)
def test_the_same_seed_gives_the_same_replicates(name: str) -> None:
    """Would catch other draws for the same names, and arithmetic that differs by more than the order of a sum."""
    before, records = reference()[name], simulated(name, SEED)
    assert tasks_digest(records) == before["tasks"]
    listed = records["generalization_error"][-1, :NUM_LISTED].astype(float)
    expected = np.array(before["generalization_error"])
    assert np.mean(np.abs(listed - expected) <= 1e-4 * np.abs(expected)) >= 0.9
    early = records["generalization_error"][4, :NUM_LISTED].astype(float)  # before a last bit can have grown
    expected = np.array(before["early_generalization_error"])
    assert np.mean(np.abs(early - expected) <= 1e-4 * (np.abs(expected) + 1e-3)) >= 0.99


@pytest.mark.parametrize("name", CASES)
def test_the_comparison_could_fail(name: str) -> None:
    """Would catch a reference without spread, or so coarse that everything agrees with it."""
    records = simulated(name, SEED)
    assert len(set(reference()[name]["generalization_error"])) > 0.9 * NUM_LISTED
    shifted = {**records, "generalization_error": 1.1 * records["generalization_error"]}
    one = np.array(statistics(shifted)["generalization_error"])
    other = np.array(reference()[name]["statistics"]["generalization_error"])
    z = (one[:, 0] - other[:, 0]) / np.sqrt((one[:, 1] + other[:, 1]) / NUM_REPLICATES)
    assert np.all(np.abs(z) > LARGEST_Z)


def make_reference() -> None:
    """Write the numbers of the engine that is on the path."""
    found = {}
    for name in CASES:
        records = simulated(name, SEED)
        found[name] = {
            "statistics": statistics(simulated(name, OTHER_SEED)),
            "tasks": tasks_digest(records),
            "generalization_error": [float(f"{x:.7g}") for x in records["generalization_error"][-1, :NUM_LISTED]],
            "early_generalization_error": [float(f"{x:.7g}") for x in records["generalization_error"][4, :NUM_LISTED]],
        }
    REFERENCE.write_text(json.dumps(found, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make_reference()
