"""The unit of work: a fixed number of replicates of one cell.

At a fixed width no number depends on order or threads; between widths, draws agree and roundings may not.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PyTree

from moe_theory.core import engine
from moe_theory.core.engine import BLOCK_WIDTH
from moe_theory.core.random import replicate_keys, root_key
from moe_theory.core.system import Observe, Params, State, System, observe_info, recorded_rounds

Start = Callable[[Any, np.ndarray, Params], State]  # (root key, replicates, params) -> initial states (..., B)


@dataclasses.dataclass(frozen=True)
class Cell:
    """One setting of the parameters of a system, and what to record of it."""

    name: str
    system: System
    params: Params
    num_rounds: int
    record_every: int = 1
    observe: Observe = observe_info
    start: Start | None = None  # initial states other than the system's own, say on shared pools
    keep: tuple[int, ...] | None = None  # which of the recorded rounds, by their places, stay in memory; None: all
    keeps_state: bool = True  # whether final states stay in memory; where they are large, None takes their place

    @property
    def rounds(self) -> Int[np.ndarray, " R"]:
        """The recorded rounds that are kept.

        Raises: InvalidRunError for rounds or a recording that cannot be run.
        """
        rounds = recorded_rounds(self.num_rounds, self.record_every)
        return rounds if self.keep is None else rounds[list(self.keep)]


class Run(NamedTuple):
    """A cell's replicates, on the host; every leaf of state and records ends in the replicate axis B."""

    params: Params
    rounds: Int[np.ndarray, " R"]  # the recorded rounds, 1-based
    replicates: Int[np.ndarray, " B"]
    state: PyTree  # final states (..., B); None for a cell that does not keep them
    records: PyTree  # what `observe` kept (R, ..., B)


class Chunk(NamedTuple):
    """Replicates of one cell that run together."""

    cell: Cell
    replicates: Int[np.ndarray, " width"]  # padded to the chunk's width
    num_kept: int  # replicates that count; the rest is padding

    @property
    def replicate_rounds(self) -> int:
        """The work in it that counts."""
        return self.num_kept * self.cell.num_rounds


def chunk(cell: Cell, index: int, num_replicates: int, width: int = BLOCK_WIDTH, first: int = 0) -> Chunk:
    """Chunk `index` of `num_replicates` replicates from `first` on; the last is padded with further ones."""
    start = index * width
    return Chunk(cell, np.arange(first + start, first + start + width), min(width, num_replicates - start))


def compute(chunk: Chunk, seed: int) -> tuple[PyTree, PyTree]:
    """Final states and records of a chunk, on the host, without its padding."""
    cell, root = chunk.cell, root_key(seed)
    state = None if cell.start is None else cell.start(root, chunk.replicates, cell.params)
    keys = replicate_keys(root, jnp.asarray(chunk.replicates, jnp.uint32))
    # Not `simulate_batch`: the runner has checked the cell once, and a check costs as much as a short chunk.
    state, records = engine.run(
        cell.system, keys, state, cell.params, cell.num_rounds, cell.record_every, cell.observe, None, True
    )
    kept = slice(None) if cell.keep is None else list(cell.keep)
    state = state if cell.keeps_state else None
    return (
        jax.tree.map(lambda leaf: np.asarray(leaf)[..., : chunk.num_kept], state),
        jax.tree.map(lambda leaf: np.asarray(leaf)[kept][..., : chunk.num_kept], records),
    )


def join(cell: Cell, parts: list[tuple[PyTree, PyTree]], first: int = 0) -> Run:
    """One run from a cell's computed chunks, in chunk order, of replicates from `first` on."""
    state, records = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=-1), *parts)
    num_replicates = jnp.shape(jax.tree.leaves(records)[0])[-1]
    return Run(cell.params, cell.rounds, np.arange(first, first + num_replicates), state, records)
