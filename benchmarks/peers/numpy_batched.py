"""Algorithm 1 of the continual paper in batched NumPy: all replicates at once, one Python loop over the rounds.

The replicates are the last axis of every array, so that each call is long contiguous arithmetic, and what does not
depend on the models (arrivals, gate inputs, orthonormal bases of the samples) is made for a block of rounds at once.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from benchmarks.contenders import Run, Setting
from benchmarks.peers.rounds import Constants, Trajectory, constants_of, draw_truths
from moe_theory.continual import Params

BLOCK_WIDTH = 1024  # replicate-rounds drawn together: enough to hide what a call costs, few enough for the cache


class Block(NamedTuple):
    """What all replicates meet in K rounds."""

    tasks: Int[np.ndarray, "K B"]  # n_t
    features: Float[np.ndarray, "s d K B"]  # X_t
    perturbations: Float[np.ndarray, "K M B"]  # r_t


def prepare(setting: Setting) -> Run:
    """All replicates of a setting together, each with a pool of its own, from one generator."""
    constants = constants_of(Params(num_experts=setting.num_experts))

    def run() -> np.ndarray:
        # The fastest of NumPy's bit generators.
        generator = np.random.Generator(np.random.SFC64(setting.seed))
        truths = np.ascontiguousarray(draw_truths(generator, setting, constants).transpose(2, 1, 0))
        blocks = draw_blocks(generator, setting, constants, truths)
        (last,) = deque(play_blocks(constants, truths, blocks), maxlen=1)  # the last round
        return last.generalization_error

    return run


def play(
    constants: Constants,
    truths: Float[np.ndarray, "B N d"],
    tasks: Int[np.ndarray, "T B"],
    features: Float[np.ndarray, "T B d s"],
    perturbations: Float[np.ndarray, "T B M"],
) -> Trajectory:
    """All replicates' rounds on given arrivals, in the precision of `truths`."""
    block = Block(tasks, np.ascontiguousarray(features.transpose(3, 2, 0, 1)), perturbations.transpose(0, 2, 1))
    rounds = play_blocks(constants, np.ascontiguousarray(truths.transpose(2, 1, 0)), [block])
    return Trajectory(*map(np.stack, zip(*rounds, strict=True)))  # each field over all rounds


def draw_blocks(
    generator: np.random.Generator, setting: Setting, constants: Constants, truths: Float[np.ndarray, "d N B"]
) -> Iterator[Block]:
    """The arrivals of Definition 1 and the perturbations of (1), block by block."""
    B, M, dtype = setting.batch, setting.num_experts, truths.dtype
    length = max(BLOCK_WIDTH // B, 1)
    for start in range(0, setting.num_rounds, length):
        K = min(length, setting.num_rounds - start)
        tasks = generator.integers(setting.num_tasks, size=(K, B))
        slots = generator.integers(setting.num_samples, size=(K, B))
        strengths = generator.uniform(constants.min_strength, constants.max_strength, (K, B)).astype(dtype)
        features = generator.standard_normal((setting.num_samples, setting.num_features, K, B), dtype)
        features *= dtype.type(constants.noise_scale)
        rounds, replicates = np.ogrid[:K, :B]
        signals = strengths * dtype.type(constants.signal_scale) * truths[:, tasks, replicates]
        features[slots, :, rounds, replicates] = signals.transpose(1, 2, 0)
        perturbations = generator.random((K, M, B), dtype) * dtype.type(constants.perturbation_scale)
        yield Block(tasks, features, perturbations)


def play_blocks(
    constants: Constants, truths: Float[np.ndarray, "d N B"], blocks: Iterable[Block]
) -> Iterator[Trajectory]:
    """What each round shows, leaves (B,).

    Source: Eqs. (1)-(9), (14)-(16) and Algorithm 1 of `continual`, flags accumulating and q = 1 in (6).
    """
    M, (d, N, B), dtype = constants.num_experts, truths.shape, truths.dtype
    # Experts and replicates share an axis: one flat index of the chosen expert then serves every look-up.
    experts, served, visits = np.zeros((d, M * B), dtype), np.zeros((N, M * B), dtype), np.zeros(M * B, dtype)
    gates, converged, is_terminated = np.zeros((d, M, B), dtype), np.zeros((M, B), bool), np.zeros(B, bool)
    forgotten, remaining = np.zeros(B, dtype), np.zeros(B, dtype)
    balance, replicates, t = constants.balance_weight * M, np.arange(B), 0
    flat_truths = truths.reshape(d, N * B)

    for block in blocks:
        gate_inputs, bases = block.features.sum(axis=0), orthonormal(block.features)
        places = block.tasks * B + replicates
        for k, task in enumerate(block.tasks):
            t += 1
            gate_input, basis, truth = gate_inputs[:, k], bases[:, :, k], flat_truths.take(places[k], axis=1)
            outputs = np.einsum("dmb,db->mb", gates, gate_input)
            expert = (outputs + block.perturbations[k]).argmax(axis=0)
            chosen = expert * B + replicates

            before = experts.take(chosen, axis=1)
            gap = truth - before
            change = np.einsum("sdb,sb->db", basis, np.einsum("sdb,db->sb", basis, gap))
            after = before + change
            experts[:, chosen] = after
            visits[chosen] += 1

            weights = np.exp(outputs - outputs.max(axis=0))
            probabilities = weights / weights.sum(axis=0)
            cost = np.sqrt(np.einsum("db,db->b", change, change)) + balance / t**2 * visits.take(chosen)
            pull = constants.learning_rate * cost * probabilities.take(chosen)
            slopes = -pull * probabilities
            slopes.ravel()[chosen] += pull
            if t > constants.exploration_rounds:
                converged |= np.abs(outputs - outputs.take(chosen)) < constants.termination_threshold
                is_terminated |= constants.terminate & converged.all(axis=0)
                slopes *= ~is_terminated
            gates -= slopes * gate_input[:, None]

            # Only this expert's errors on past tasks change: |w' - w_n|^2 - |w - w_n|^2 in centred form.
            shifts = np.einsum("db,db->b", change, before + after) - 2 * np.einsum("dnb,db->nb", truths, change)
            total = np.einsum("nb,nb->b", served.take(chosen, axis=1), shifts)
            missing = gap - change
            served[task, chosen] += 1
            forgotten += total
            remaining += total + np.einsum("db,db->b", missing, missing)
            yield Trajectory(expert, remaining / t, forgotten / max(t - 1, 1))


def orthonormal(features: Float[np.ndarray, "s d K B"]) -> Float[np.ndarray, "s d K B"]:
    """Orthonormal bases of the samples by modified Gram-Schmidt, so that P = sum_i q_i q_i' is the projector of (5)."""
    s, d, K, B = features.shape
    basis = features.reshape(s, d, K * B).copy()
    for i in range(s):
        pivot, later = basis[i], basis[i + 1 :]
        pivot /= np.sqrt(np.einsum("dw,dw->w", pivot, pivot))
        later -= np.einsum("dw,jdw->jw", pivot, later)[:, None] * pivot
    return basis.reshape(s, d, K, B)
