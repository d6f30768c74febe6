"""Counterexample to Theorem 2: 200 runs of Algorithm 1 on 24 tasks in six clusters with 12 experts.

The scale sigma_0 is small, and clusters are orthonormal. (19) bounds forgetting up to T1. Later (21) bounds forgetting
and (22) the overall generalization error. Ground truths of a cluster are within sigma_0^1.5 of each other and have one
signal. Exits 0 if all three bounds are exceeded at every sigma_0.
"""

import sys

import numpy as np

RUNS, CLUSTERS, EXPERTS, FEATURES = 200, 6, 12, 8  # R, K, K ln K <= M < N, d; s = 2 samples, signal and noise
SIGNALS, RATIO = np.repeat(np.eye(CLUSTERS, FEATURES), 4, axis=0), 1 - 2 / FEATURES  # v_n, r


def metrics(rng: np.random.Generator, scale: float, truths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """F_t and G_t at T1 and at 2 T1, and the loads then. Truths, models and metrics are in units of sigma_0."""
    run, rate, end = np.arange(RUNS), scale**0.5, int(np.ceil(EXPERTS / scale**0.5))  # rate: eta and alpha, end: T1
    gates, models = np.zeros((2, RUNS, EXPERTS, FEATURES))
    arrived, flags = np.zeros((RUNS, EXPERTS, len(truths))), np.zeros((RUNS, EXPERTS), bool)
    when_learned, loads, found = np.zeros(RUNS), [], []  # errors right after each task, summed
    for time in range(1, 2 * end + 1):
        task, noise = rng.integers(len(truths), size=RUNS), scale / 4 * rng.standard_normal((RUNS, FEATURES))
        inputs = SIGNALS[task] + noise
        outputs = np.einsum("rmd,rd->rm", gates, inputs)
        chosen = np.argmax(outputs + rng.uniform(0, scale**1.25, (RUNS, EXPERTS)), axis=1)  # (1)
        error = truths[task] - models[run, chosen]
        beside = noise * (1 - SIGNALS[task])  # the part of the noise orthogonal to the signal, an axis
        beside /= np.linalg.norm(beside, axis=1, keepdims=True)
        move = SIGNALS[task] * error + beside * np.sum(beside * error, axis=1, keepdims=True)  # (5)
        models[run, chosen] += move
        arrived[run, chosen, task] += 1
        when_learned += np.sum((error - move) ** 2, axis=1)
        if time in (end, 2 * end):
            now = np.sum(arrived * np.sum((models[:, :, None] - truths) ** 2, axis=3), axis=(1, 2))
            found, loads = [*found, (now - when_learned) / (time - 1), now / time], [*loads, arrived.sum(axis=2)]
        if time > end:
            flags |= np.abs(outputs - outputs[run, chosen][:, None]) < scale**1.25  # Gamma
        softmax = np.exp(outputs) / np.sum(np.exp(outputs), axis=1, keepdims=True)  # (2)
        cost = scale * np.linalg.norm(move, axis=1) + rate * EXPERTS * arrived[run, chosen].sum(axis=1) / time**2
        slopes = softmax[run, chosen][:, None] * ((np.arange(EXPERTS) == chosen[:, None]) - softmax)
        gates -= (rate * cost * ~flags.all(axis=1))[:, None, None] * slopes[:, :, None] * inputs[:, None]  # (9)
    return np.array(found), np.array(loads)


is_violated = True
for scale in (1e-2, 1e-3, 1e-4):
    truths = SIGNALS + scale**0.5 * np.outer(np.tile([-0.5, -0.2, 0.2, 0.5], CLUSTERS), np.eye(FEATURES)[-1])
    (early, _, late, error), (old, new) = metrics(np.random.default_rng(0), scale, truths)
    norm, gaps = np.mean(np.sum(truths**2, axis=1)), np.sum((truths[:, None] - truths) ** 2, axis=2)  # W
    gap, near, kept = gaps.mean(), gaps[:4, :4].mean(), RATIO ** (new - old)  # Delta = Psi_2, Psi_1, r^(L_T - L_T1)
    first, later = (RATIO * (1 - RATIO**L) / (1 - RATIO) - L * RATIO**L for L in (old, new))  # sums of r^L_tau - r^L_t
    other = norm * new * RATIO**new + gap * (old * (1 - kept) + new * kept * (1 - RATIO**old)) + near * (new - old)
    sums = [(gap - norm) * first, gap * first - norm * later + near * (new - old) / RATIO, other]  # at most
    print(f"sigma_0 = {scale:g}, in units of its square, means of {RUNS} runs:")
    for name, found, terms in zip(["F_T1", "F_2T1", "G_2T1"], [early, late, error], sums, strict=True):
        bound = terms.sum(axis=1) / ((old if name == "F_T1" else new)[0].sum() - 1)
        print(f"    {name} = {found.mean():.2f} (claimed: below {bound.mean():.2f})")
        is_violated &= np.mean(found - bound) > 6 * np.std(found - bound) / RUNS**0.5
sys.exit(0 if is_violated else 1)
