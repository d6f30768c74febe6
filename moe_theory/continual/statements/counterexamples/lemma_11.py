"""Counterexample to Lemma 11: with M = N ln(N / 0.05) experts, tasks are left without a specialist.

Algorithm 1 explores with orthonormal signals and w_n = sigma_0 v_n. For M < N the N "tasks" are K clusters of five
equal tasks each, which a router cannot tell apart.

Exits 0 if tasks are left without an expert in far more than 5 % of runs, even with four times as many experts.
"""

import sys

import numpy as np

TASKS, FEATURES, SAMPLES, RUNS = 6, 10, 6, 12  # N, d, s
SCALE = 0.01  # sigma_0. Algorithm 1 requires the orders below
RATE = WEIGHT = SCALE**0.5  # eta, alpha
PERTURBATION, NOISE = SCALE**1.25, SCALE / 4  # lambda, sigma_t
ENOUGH = int(np.ceil(TASKS * np.log(TASKS / 0.05)))


def explored_sets(rng: np.random.Generator, num_experts: int) -> np.ndarray:
    """Number of experts in each task's set (11) after T1 = ceil(M / eta) rounds."""
    signals = np.eye(TASKS, FEATURES)
    gates, experts = np.zeros((2, num_experts, FEATURES))
    visits = np.zeros(num_experts)
    for time in range(1, int(np.ceil(num_experts / RATE)) + 1):
        task = rng.integers(TASKS)
        noise = NOISE * rng.standard_normal((FEATURES, SAMPLES - 1))
        features = np.column_stack([signals[task], noise])
        outputs = gates @ features.sum(axis=1)
        chosen = np.argmax(outputs + rng.uniform(0, PERTURBATION, num_experts))  # (1)
        basis, _ = np.linalg.qr(features)
        move = basis @ (basis.T @ (SCALE * signals[task] - experts[chosen]))  # (5)
        experts[chosen] += move
        visits[chosen] += 1
        softmax = np.exp(outputs - outputs.max()) / np.sum(np.exp(outputs - outputs.max()))  # (2)
        cost = np.linalg.norm(move) + WEIGHT * num_experts * visits[chosen] / time**2  # (6) and (7)
        slopes = softmax[chosen] * ((np.arange(num_experts) == chosen) - softmax)
        gates -= RATE * cost * slopes[:, None] * features.sum(axis=1)  # (9)
    return np.bincount(np.argmax(gates @ signals.T, axis=1), minlength=TASKS)


def main() -> int:
    rng = np.random.default_rng(0)
    print(f"N = {TASKS}: with M >= {ENOUGH} every task should have an expert in 95 % of runs")
    covered = []
    for num_experts in (ENOUGH, 4 * ENOUGH):
        sizes = np.array([explored_sets(rng, num_experts) for _ in range(RUNS)])
        covered.append(np.sum(np.all(sizes > 0, axis=1)))
        empty, shared = np.sum(sizes == 0, axis=1).mean(), np.mean(sizes.max(axis=1)) / num_experts
        print(f"M = {num_experts}: in {covered[-1]} of {RUNS} runs; {empty:.1f} tasks have none on average,")
        print(f"    and {shared:.0%} of the experts specialise in the same one")
    return 0 if max(covered) < RUNS / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
