"""Lemma 8: the largest share of the tasks at T1, in Algorithm 1's exploration with 8 to 64 experts, 200 runs each.

N = 6, d = 10, s = 2, sigma_0 = 0.04, signals of normal entries, w_n = sigma_0 v_n, orders of Algorithm 1 with constants
of 1. The proof bounds the shares of all experts at once. Exits 0 if in half of the runs their largest distance from
1/M outgrows any multiple of eta^0.5 / M as M grows.
"""

import sys

import numpy as np

RUNS, TASKS, FEATURES, SCALE = 200, 6, 10, 0.04  # R, N, d, sigma_0; s = 2 samples, signal and noise
RATE, PERTURBATION = SCALE**0.5, SCALE**1.25  # eta and alpha, lambda


def shares(rng: np.random.Generator, num_experts: int) -> np.ndarray:
    """f_T1 of every expert (R, M)."""
    run, end = np.arange(RUNS), int(np.ceil(num_experts / RATE))  # end: T1
    signals = rng.standard_normal((RUNS, TASKS, FEATURES))
    gates, models = np.zeros((2, RUNS, num_experts, FEATURES))
    visits = np.zeros((RUNS, num_experts))
    for time in range(1, end + 1):
        signal = signals[run, rng.integers(TASKS, size=RUNS)]
        noise = SCALE / 4 * rng.standard_normal((RUNS, FEATURES))
        inputs = signal + noise
        outputs = np.einsum("rmd,rd->rm", gates, inputs)
        chosen = np.argmax(outputs + rng.uniform(0, PERTURBATION, (RUNS, num_experts)), axis=1)  # (1)
        bases, _ = np.linalg.qr(np.stack([signal, noise], axis=2))
        error = SCALE * signal - models[run, chosen]
        move = np.einsum("rds,res,re->rd", bases, bases, error)  # (5)
        models[run, chosen] += move
        visits[run, chosen] += 1
        softmax = np.exp(outputs) / np.sum(np.exp(outputs), axis=1, keepdims=True)  # (2)
        slopes = softmax[run, chosen][:, None] * ((np.arange(num_experts) == chosen[:, None]) - softmax)
        cost = np.linalg.norm(move, axis=1) + RATE * num_experts * visits[run, chosen] / time**2
        gates -= (RATE * cost)[:, None, None] * slopes[:, :, None] * inputs[:, None]  # (9)
    return visits / end


medians = []
print("Stated: all shares are within O(eta^0.5 / M) of 1/M, with a probability of 1 - delta.")
for num_experts in (8, 16, 32, 64):
    found = shares(np.random.default_rng(0), num_experts)
    gaps = np.abs(found - 1 / num_experts) * num_experts / RATE**0.5
    medians.append(np.median(gaps.max(axis=1)))
    print(f"M = {num_experts}: largest distance {medians[-1]:.1f} eta^0.5 / M in median, ", end="")
    print(f"of the first expert {np.median(gaps[:, 0]):.1f}; largest share {np.median(found.max(axis=1)):.3f}")
sys.exit(0 if min(np.divide(medians[1:], medians[:-1])) > 1.5 else 1)
