"""A run's file: its records so far and, until it is complete, the state that its next round begins from."""

import enum
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from moe_theory.runs.files import pack, unpack, write_whole

WAY_OUT = "make room or name another --out"
_RECORD, _STATE = "record.", "state."  # what the names of arrays begin with


class Found(enum.StrEnum):
    """What there was of a run before it was run."""

    NOTHING = "nothing"
    PART = "part"
    WHOLE = "whole"
    OTHER = "other"  # a run of something else: other settings, data, versions or seeds
    DAMAGED = "damaged"


class Checkpoint(NamedTuple):
    """A run after `done` rounds, on the host."""

    done: int
    records: dict[str, Shaped[np.ndarray, "done ..."]]
    state: list[np.ndarray]  # leaves of the state; none once the run is complete


def load(path: Path, identity: str, num_rounds: int) -> tuple[Found, Checkpoint | None]:
    """What there is of the run that this is the identity of; the checkpoint if it can be gone on from."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Found.NOTHING, None
    except OSError:
        return Found.DAMAGED, None
    try:
        task, arrays = unpack(data)
        if task["identity"] != identity:
            return Found.OTHER, None
        records = {name.removeprefix(_RECORD): array for name, array in arrays.items() if name.startswith(_RECORD)}
        state = [arrays[f"{_STATE}{place}"] for place in range(len(arrays) - len(records))]
        found = Checkpoint(task["done"], records, state)
    except (ValueError, KeyError, TypeError):
        return Found.DAMAGED, None
    return (Found.WHOLE if found.done == num_rounds else Found.PART), found


def save(path: Path, identity: str, checkpoint: Checkpoint) -> None:
    """Keep a run in place of what there is. Raises: OutputError where it cannot be written."""
    arrays = {_RECORD + name: array for name, array in checkpoint.records.items()}
    arrays |= {f"{_STATE}{place}": leaf for place, leaf in enumerate(checkpoint.state)}
    write_whole(path, pack({"identity": identity, "done": checkpoint.done}, arrays), WAY_OUT)


def packed(state: Any) -> list[np.ndarray]:
    """The leaves of a state without its pool, which is the same in all runs."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(state._replace(pool=None))]


def restored(leaves: list[np.ndarray], like: Any) -> Any:
    """The state of which these are the leaves, with the pool of `like`, a state of the same system."""
    structure = jax.tree.structure(like._replace(pool=None))
    return jax.tree.unflatten(structure, map(jnp.asarray, leaves))._replace(pool=like.pool)
