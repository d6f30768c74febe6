"""Large batches in blocks: catches replicates that a block loses, doubles, pads into the result or starts anew."""

import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual
from moe_theory.core import blocks

SYSTEM = continual.system(continual.Dims(max_experts=3, num_tasks=2, num_features=4, num_samples=2))
PARAMS = continual.Params(num_experts=3)
ROOT = mt.root_key(5)
NUM_ROUNDS = 6


def run(replicates, **options):
    state, info = mt.simulate_batch(SYSTEM, ROOT, replicates, PARAMS, NUM_ROUNDS, 3, **options)
    return jax.tree.map(np.asarray, (state, info))


def assert_equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("count", [65, 128, 130])
def test_a_replicate_is_the_same_in_any_large_batch(count):
    names = np.arange(count)[::-1] * 3 + 1
    whole, least = run(names), run(names[-blocks.BLOCK_WIDTH :])
    assert all(leaf.shape[-1] == count for leaf in jax.tree.leaves(whole))
    assert_equal(jax.tree.map(lambda leaf: leaf[..., -blocks.BLOCK_WIDTH :], whole), least)


def test_a_checkpoint_of_blocks_goes_on():
    half, first = run(130)
    end, second = run(130, state=half)
    straight, info = mt.simulate_batch(SYSTEM, ROOT, 130, PARAMS, 2 * NUM_ROUNDS, 3)
    assert_equal(end, jax.tree.map(np.asarray, straight))
    joined = jax.tree.map(lambda one, other: np.concatenate([one, other]), first, second)
    assert_equal(joined, jax.tree.map(np.asarray, info))


def test_widths_fit_the_state():
    def width(count):
        return blocks.width_for({"x": jax.ShapeDtypeStruct((count,), np.float32)})

    assert [width(count) for count in (1, 2**17, 2**17 + 1, 2**18 + 1, 2**30)] == [64, 64, 32, 16, 8]
