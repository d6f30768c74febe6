"""Proof of Proposition 1, (35): how far an expert's probabilities for two tasks differ after exploration.

Algorithm 1 up to T1 = M / eta, 100 runs at once: 6 experts, three orthonormal tasks, for ever smaller sigma_0. Taken is
the largest difference of all experts and pairs of tasks. Exits 0 if even that falls below any multiple of sigma_0^0.5.
"""

import sys

import numpy as np

RUNS, TASKS, EXPERTS, FEATURES = 100, 3, 6, 5  # R, N, M, d; s = 2 samples, signal and noise
AXES = np.eye(FEATURES)


def largest_difference(rng: np.random.Generator, scale: float) -> float:
    run, rate = np.arange(RUNS), scale**0.5  # eta and alpha
    gates, models = np.zeros((2, RUNS, EXPERTS, FEATURES))  # models over sigma_0
    visits = np.zeros((RUNS, EXPERTS))
    for time in range(1, int(np.ceil(EXPERTS / rate)) + 1):
        signal, noise = AXES[rng.integers(TASKS, size=RUNS)], scale / 4 * rng.standard_normal((RUNS, FEATURES))
        inputs = signal + noise
        outputs = np.einsum("rmd,rd->rm", gates, inputs)
        chosen = np.argmax(outputs + rng.uniform(0, scale**1.25, (RUNS, EXPERTS)), axis=1)  # (1)
        error = signal - models[run, chosen]
        beside = noise * (1 - signal)  # of the noise, what is orthogonal to the signal, an axis
        beside /= np.linalg.norm(beside, axis=1, keepdims=True)
        move = signal * error + beside * np.sum(beside * error, axis=1, keepdims=True)  # (5)
        models[run, chosen] += move
        visits[run, chosen] += 1
        softmax = np.exp(outputs) / np.sum(np.exp(outputs), axis=1, keepdims=True)  # (2)
        slopes = softmax[run, chosen][:, None] * ((np.arange(EXPERTS) == chosen[:, None]) - softmax)
        cost = scale * np.linalg.norm(move, axis=1) + rate * EXPERTS * visits[run, chosen] / time**2
        gates -= (rate * cost)[:, None, None] * slopes[:, :, None] * inputs[:, None]  # (9)
    weights = np.exp(gates[:, :, :TASKS])  # the outputs for the signals alone
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    return float(np.mean(np.ptp(probabilities, axis=2).max(axis=1)))


print("stated: at least of order sigma_0^0.5")
ratios = []
for scale in (1e-1, 1e-2, 1e-3, 1e-4):
    found = largest_difference(np.random.default_rng(0), scale)
    ratios.append(found / scale**0.5)
    print(f"    sigma_0 = {scale:g}: the largest is {ratios[-1]:.4f} sigma_0^0.5, or {found / scale:.2f} sigma_0")
sys.exit(0 if max(np.divide(ratios[1:], ratios[:-1])) < 0.5 else 1)
