"""Counterexample to Lemma 15 and Proposition 3: sets (11) do not order the experts.

Algorithm 1, 60 runs at once, 24 experts, six orthonormal clusters. A cluster has one task (M > N = 6), or five tasks
within sigma_0^1.5 and with one signal (M < N = 30). Exits 0 if at every sigma_0 (40) fails at round T1 + 1 in most
runs, and if many arrivals with a set that is not empty go to an expert of another set once the gates are fixed.
"""

import sys

import numpy as np

RUNS, CLUSTERS, EXPERTS, FEATURES = 60, 6, 24, 8  # R, K, M, d; s = 2 samples, signal and noise
AXES = np.eye(FEATURES)


def is_ordered(outputs: np.ndarray) -> np.ndarray:
    """Whether (40) holds for all pairs of experts of different sets, run by run, for the signals alone."""
    is_own = np.argmax(outputs, axis=2)[:, :, None] == np.arange(CLUSTERS)
    others = np.where(is_own, -np.inf, outputs).max(axis=1)
    return np.all(np.where(is_own, outputs, np.inf).min(axis=1) > others, axis=1)


def after_exploration(rng: np.random.Generator, scale: float, number: int) -> tuple[np.ndarray, ...]:
    """Whether (40) holds at T1 + 1, and which arrivals at fixed gates go elsewhere, up to 1.5 T1."""
    run, rate, end = np.arange(RUNS), scale**0.5, int(np.ceil(EXPERTS / scale**0.5))  # rate: eta and alpha, end: T1
    gates, models = np.zeros((2, RUNS, EXPERTS, FEATURES))  # models, and truths below, over sigma_0
    visits, flags = np.zeros((RUNS, EXPERTS)), np.zeros((RUNS, EXPERTS), bool)
    ordered, outside = np.zeros(RUNS, bool), []
    for time in range(1, end + end // 2):
        cluster, place = rng.integers(CLUSTERS, size=RUNS), rng.integers(number, size=RUNS) / 5
        signal, noise = AXES[cluster], scale / 4 * rng.standard_normal((RUNS, FEATURES))
        inputs = signal + noise
        outputs = np.einsum("rmd,rd->rm", gates, inputs)
        chosen = np.argmax(outputs + rng.uniform(0, scale**1.25, (RUNS, EXPERTS)), axis=1)  # (1)
        error = signal + scale**0.5 * place[:, None] * AXES[-1] - models[run, chosen]
        beside = noise * (1 - signal)  # orthogonal to the signal, an axis
        beside /= np.linalg.norm(beside, axis=1, keepdims=True)
        move = signal * error + beside * np.sum(beside * error, axis=1, keepdims=True)  # (5)
        models[run, chosen], visits[run, chosen] = models[run, chosen] + move, visits[run, chosen] + 1
        ordered = is_ordered(gates[:, :, :CLUSTERS]) if time == end + 1 else ordered
        if time > end:
            is_own = np.argmax(gates[:, :, :CLUSTERS], axis=2) == cluster[:, None]
            outside.append(~is_own[run, chosen][flags.all(axis=1) & is_own.any(axis=1)])
            flags |= np.abs(outputs - outputs[run, chosen][:, None]) < scale**1.25  # Gamma
        softmax = np.exp(outputs) / np.sum(np.exp(outputs), axis=1, keepdims=True)  # (2)
        slopes = softmax[run, chosen][:, None] * ((np.arange(EXPERTS) == chosen[:, None]) - softmax)
        cost = scale * np.linalg.norm(move, axis=1) + rate * EXPERTS * visits[run, chosen] / time**2
        gates -= (rate * cost * ~flags.all(axis=1))[:, None, None] * slopes[:, :, None] * inputs[:, None]  # (9)
    return ordered, np.concatenate(outside)


is_violated = True
for number in (1, 5):  # tasks in a cluster
    print("M > N:" if number == 1 else "M < N:")
    for scale in (1e-2, 1e-3, 1e-4):
        ordered, outside = after_exploration(np.random.default_rng(0), scale, number)
        print(f"    sigma_0 = {scale:g}: (40) holds in {ordered.mean():.0%} of runs (claimed: 1 - o(1)),", end=" ")
        print(f"{outside.mean():.0%} of arrivals go elsewhere (claimed: none)")
        is_violated &= ordered.mean() < 0.4 and outside.mean() > 0.2
sys.exit(0 if is_violated else 1)
