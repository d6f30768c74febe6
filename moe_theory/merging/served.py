"""Slots of a trained MoE as an experiment: accuracies of policies that merge and of methods that do not.

The model is trained, or read from where it was kept, when an experiment runs, not when it is declared. Replicates are
streams: task mixes and requests; the model is one and the same for all of them, so that a verdict is about this model.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from moe_theory.core.random import root_key
from moe_theory.merging import evaluation, testbed_reward
from moe_theory.merging.params import Dims
from moe_theory.merging.reward import Reward
from moe_theory.merging.serving.deployed import deployed
from moe_theory.merging.serving.methods import Deployment, named
from moe_theory.merging.system import system
from moe_theory.merging.testbed.tasks import VALIDATION, Setting, examples
from moe_theory.runs import Run, run_cells
from moe_theory.runs.cells import Cell
from moe_theory.verify.claim import Measure, Runs


def accuracies(
    dims: Dims, chosen: Mapping[str, str], slot_size: int, late: int, setting: Setting | None = None
) -> Measure:
    """Slots served by policies (`chosen`, cell -> policy), and by methods in the cells that are named after them.

    Every cell meets the same mixes; a method's requests are drawn anew. Records are `evaluation.Served`, of all slots
    and, for methods, which learn nothing from slot to slot, of the `late` last ones.
    """
    of = Setting() if setting is None else setting

    def measure(cells: Sequence[Cell], first: int, count: int, seed: int) -> Runs:
        reward = _reward(of, slot_size)
        by_policy = [
            dataclasses.replace(cell, system=system(dims, reward, chosen[cell.name]))
            for cell in cells
            if cell.name in chosen
        ]
        any_policy = by_policy or [dataclasses.replace(cells[0], system=system(dims, reward, "average"))]
        runs = dict(run_cells(any_policy, count, first=first, seed=seed))
        mixes = np.moveaxis(np.asarray(next(iter(runs.values())).records.mix), -1, 0)[:, -late:]  # (B, late, V)
        for cell in cells:
            if cell.name not in chosen:
                runs[cell.name] = _served(cell, mixes, of, slot_size, first, count, seed)
        return {cell.name: runs[cell.name] for cell in cells}

    return measure


def _served(
    cell: Cell,
    mixes: Float[np.ndarray, "B late V"],
    setting: Setting,
    slot_size: int,
    first: int,
    count: int,
    seed: int,
) -> Run:
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(root_key(seed), jnp.arange(first, first + count))
    data, loaded = examples(setting, VALIDATION), named(cell.name).prepare(_deployment(setting))
    hits = [
        evaluation.serve_slots(cell.name, loaded, data, jnp.asarray(mix[None]), slot_size, key)[0]
        for key, mix in zip(keys, mixes, strict=True)
    ]
    records = evaluation.Served(np.stack(hits, axis=-1), np.moveaxis(mixes, 0, -1))  # pyright: ignore[reportArgumentType]
    rounds = cell.rounds[-mixes.shape[1] :]
    return Run(cell.params, rounds, np.arange(first, first + count), None, records)


@functools.cache
def _deployment(setting: Setting) -> Deployment:
    return deployed(setting)


@functools.cache
def _reward(setting: Setting, slot_size: int) -> Reward:
    # Its `value` is looked at by nobody here: as few inputs as can be.
    model = _deployment(setting).model
    return testbed_reward.of_model(model, examples(setting, VALIDATION), setting.num_tasks, slot_size, num_valued=1)
