"""Counterexample to Proposition 1 (models), Lemmas 12 and 16: experts keep moving by a share of sigma_0.

This makes 100 runs of Algorithm 1 with 12 experts and six orthonormal clusters. A cluster has one task (M > N = 6), or
four tasks within sigma_0^1.5 and with one signal (M < N = 24). It prints the least over runs of the largest drift from
round T1 + 1 on. It also prints two medians: the locality loss's gradient at an expert of the task's set (11), and the
change of a late arrival's squared error from T1. Units are sigma_0 and sigma_0^2. Exits 0 if none of these fades.
"""

import sys

import numpy as np

RUNS, CLUSTERS, EXPERTS, FEATURES = 100, 6, 12, 8  # R, K, M, d; s = 2 samples, signal and noise
AXES = np.eye(FEATURES)


def after_exploration(rng: np.random.Generator, scale: float, truths: np.ndarray) -> list[np.ndarray]:
    """Drift, gradient and change of squared errors, over sigma_0 or its square, like truths and models."""
    run, rate, end = np.arange(RUNS), scale**0.5, int(np.ceil(EXPERTS / scale**0.5))  # rate: eta and alpha, end: T1
    gates, models = np.zeros((2, RUNS, EXPERTS, FEATURES))
    visits, flags = np.zeros((RUNS, EXPERTS)), np.zeros((RUNS, EXPERTS), bool)
    late, gradients, kept = [], [], []
    for time in range(1, end + end // 2):
        task, noise = rng.integers(len(truths), size=RUNS), scale / 4 * rng.standard_normal((RUNS, FEATURES))
        signal = AXES[task * CLUSTERS // len(truths)]
        inputs = signal + noise
        outputs = np.einsum("rmd,rd->rm", gates, inputs)
        chosen = np.argmax(outputs + rng.uniform(0, scale**1.25, (RUNS, EXPERTS)), axis=1)  # (1)
        error = truths[task] - models[run, chosen]
        beside = noise * (1 - signal)  # the signal is an axis, and noise is orthogonal to it
        beside /= np.linalg.norm(beside, axis=1, keepdims=True)
        move = signal * error + beside * np.sum(beside * error, axis=1, keepdims=True)  # (5)
        models[run, chosen] += move
        visits[run, chosen] += 1
        softmax = np.exp(outputs) / np.sum(np.exp(outputs), axis=1, keepdims=True)  # (2)
        slopes = softmax[run, chosen][:, None] * ((np.arange(EXPERTS) == chosen[:, None]) - softmax)
        size, kept = np.linalg.norm(move, axis=1), [*kept, models.copy()] if time in (end, end + 1) else kept
        if time > end:
            flags |= np.abs(outputs - outputs[run, chosen][:, None]) < scale**1.25  # Gamma
            late.append((task, chosen))
            is_right = np.argmax(gates[run, chosen, :CLUSTERS], axis=1) == task * CLUSTERS // len(truths)
            gradients.append((size * np.abs(slopes).max(axis=1) * np.abs(inputs).max(axis=1))[is_right])
        step = rate * (scale * size + rate * EXPERTS * visits[run, chosen] / time**2) * ~flags.all(axis=1)
        gates -= step[:, None, None] * slopes[:, :, None] * inputs[:, None]  # (9)
    now, before = (np.array([np.sum((truths[t] - w[run, m]) ** 2, axis=1) for t, m in late]) for w in (models, kept[0]))
    return [np.abs(models - kept[1]).max(axis=(1, 2)), np.concatenate(gradients), np.abs(now - before)]


is_violated = True
for number in (1, 4):  # tasks in a cluster
    print("M > N, claimed: 0, 0 and 0" if number == 1 else "M < N, claimed: O(sigma_0^1.5) for the first two")
    found, places = [], np.outer(np.tile(np.arange(number) / 4, CLUSTERS), AXES[-1])
    for scale in (1e-2, 1e-3, 1e-4):
        truths = np.repeat(AXES[:CLUSTERS], number, axis=0) + scale**0.5 * places
        drift, gradients, changes = after_exploration(np.random.default_rng(0), scale, truths)
        found.append(np.array([np.min(drift), np.median(gradients), np.median(changes)]))
        print(f"    sigma_0 = {scale:g}: drift, gradient, change: {found[-1].round(3)}")
    is_violated &= np.all(found[-1] > 0.7 * found[0]) and found[-1][0] > 1
sys.exit(0 if is_violated else 1)
