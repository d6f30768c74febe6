"""Algorithm 1 of the continual paper as a plain NumPy loop: one replicate after another, one round after another."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from benchmarks.contenders import Run, Setting
from benchmarks.peers.rounds import Constants, Trajectory, constants_of, draw_truths
from moe_theory.continual import Params


class Arrivals(NamedTuple):
    """What one replicate meets in all its rounds."""

    tasks: Int[np.ndarray, " T"]  # n_t
    features: Float[np.ndarray, "T d s"]  # X_t
    perturbations: Float[np.ndarray, "T M"]  # r_t


def prepare(setting: Setting) -> Run:
    """All replicates of a setting, each with a pool of its own, from one generator."""
    constants = constants_of(Params(num_experts=setting.num_experts))

    def run() -> np.ndarray:
        generator = np.random.default_rng(setting.seed)
        errors = np.empty(setting.batch, setting.precision)
        for replicate, truths in enumerate(draw_truths(generator, setting, constants)):
            arrivals = draw(generator, setting, constants, truths)
            errors[replicate] = play(constants, truths, arrivals).generalization_error[-1]
        return errors

    return run


def draw(
    generator: np.random.Generator, setting: Setting, constants: Constants, truths: Float[np.ndarray, "N d"]
) -> Arrivals:
    """The arrivals of Definition 1 and the perturbations of (1), for all rounds of one replicate."""
    T, dtype = setting.num_rounds, truths.dtype
    tasks = generator.integers(len(truths), size=T)
    slots = generator.integers(setting.num_samples, size=T)
    strengths = generator.uniform(constants.min_strength, constants.max_strength, (T, 1)).astype(dtype)
    features = generator.standard_normal((T, setting.num_features, setting.num_samples), dtype)
    features *= dtype.type(constants.noise_scale)
    features[np.arange(T), :, slots] = strengths * dtype.type(constants.signal_scale) * truths[tasks]
    perturbations = generator.random((T, setting.num_experts), dtype) * dtype.type(constants.perturbation_scale)
    return Arrivals(tasks, features, perturbations)


def play(constants: Constants, truths: Float[np.ndarray, "N d"], arrivals: Arrivals) -> Trajectory:
    """One replicate's rounds on given arrivals, in the precision of `truths`.

    Source: Eqs. (1)-(9), (14)-(16) and Algorithm 1 of `continual`, flags accumulating and q = 1 in (6).
    """
    M, (N, d) = constants.num_experts, truths.shape
    T, dtype = len(arrivals.tasks), truths.dtype
    experts, gates = np.zeros((M, d), dtype), np.zeros((M, d), dtype)
    visits, served = np.zeros(M, int), np.zeros((M, N), dtype)
    converged, is_terminated = np.zeros(M, bool), False
    exploration_rounds = constants.exploration_rounds
    learning_rate, balance = dtype.type(constants.learning_rate), constants.balance_weight * M
    forgotten = remaining = 0.0
    course = Trajectory(np.empty(T, int), np.empty(T), np.empty(T))

    for t in range(1, T + 1):
        task, features = arrivals.tasks[t - 1], arrivals.features[t - 1]
        gate_input = features.sum(axis=1)
        outputs = gates @ gate_input
        expert = int((outputs + arrivals.perturbations[t - 1]).argmax())

        before, truth = experts[expert].copy(), truths[task]
        change = features @ np.linalg.solve(features.T @ features, features.T @ (truth - before))
        experts[expert] += change
        visits[expert] += 1

        if t > exploration_rounds:
            converged |= np.abs(outputs - outputs[expert]) < constants.termination_threshold
            is_terminated = constants.terminate and (is_terminated or converged.all())
        if not is_terminated:
            weights = np.exp(outputs - outputs.max())
            probabilities = weights / weights.sum()
            cost = math.sqrt(change @ change) + balance * visits[expert] / t**2
            slopes = -probabilities[expert] * probabilities
            slopes[expert] += probabilities[expert]
            gates -= np.outer(learning_rate * dtype.type(cost) * slopes, gate_input)

        # Only this expert's errors on past tasks change: |w' - w_n|^2 - |w - w_n|^2 in centred form.
        total = float(served[expert] @ ((2 * before + change - 2 * truths) @ change))
        missing = experts[expert] - truth
        served[expert, task] += 1
        forgotten += total
        remaining += total + float(missing @ missing)
        course.experts[t - 1] = expert
        course.forgetting[t - 1] = forgotten / max(t - 1, 1)
        course.generalization_error[t - 1] = remaining / t
    return course
