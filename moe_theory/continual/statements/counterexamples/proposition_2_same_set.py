"""Counterexample to (12), first case: at t1 two specialists' outputs are of order sigma_0^1.5 apart.

Algorithm 1 without termination, 200 runs at once, M = 2 experts and one set. The set is of one task (M > N = 1), or of
a cluster of three tasks within sigma_0^1.5 and with one signal (M < N = 3). By Lemma 4 the gates are theta and -theta.
At t1 a round moves their gap by about sigma_0^1.75, and perturbations are sigma_0^1.25. So the gap stays near the
geometric mean, sigma_0^1.5. Exits 0 if the gap outgrows any multiple of sigma_0^1.75.
"""

import sys

import numpy as np

RUNS, EXPERTS, FEATURES = 200, 2, 3  # R, M, d; s = 2 samples, signal and noise
SIGNAL, SPREAD = np.eye(FEATURES)[[0, 2]]


def mean_gap(rng: np.random.Generator, scale: float, number: int) -> float:
    """|h_1 - h_2| at t1, with `number` tasks; truths and models over sigma_0."""
    run, rate, perturbation = np.arange(RUNS), scale**0.5, scale**1.25  # rate: eta and alpha
    gates, models, visits = np.zeros((RUNS, FEATURES)), np.zeros((RUNS, EXPERTS, FEATURES)), np.zeros((RUNS, EXPERTS))
    gap = np.zeros(RUNS)
    for time in range(1, int(np.ceil(EXPERTS / scale**0.75)) + 1):
        noise = scale / 4 * rng.standard_normal((RUNS, FEATURES))
        inputs = SIGNAL + noise
        gap = 2 * np.sum(gates * inputs, axis=1)
        first, second = rng.uniform(0, perturbation, (2, RUNS))
        chosen = np.where(gap + first > second, 0, 1)  # (1)
        error = SIGNAL + scale**0.5 * rng.integers(number, size=(RUNS, 1)) / 3 * SPREAD - models[run, chosen]
        beside = noise * (1 - SIGNAL)  # orthogonal to the signal, an axis
        along = np.sum(beside * error, axis=1) / np.sum(beside**2, axis=1)
        move = SIGNAL * error + along[:, None] * beside  # (5)
        models[run, chosen] += move
        visits[run, chosen] += 1
        cost = scale * np.linalg.norm(move, axis=1) + rate * EXPERTS * visits[run, chosen] / time**2
        slope = 1 / (2 + 2 * np.cosh(gap))  # pi_1 pi_2 of (2)
        gates -= (rate * cost * slope * (1 - 2 * chosen))[:, None] * inputs  # (9)
    return float(np.mean(np.abs(gap)))


is_violated = True
for number in (1, 3):
    print(f"{'M > N' if number == 1 else 'M < N'}, claimed: O(sigma_0^1.75)")
    ratios = []
    for scale in (1e-2, 1e-3, 1e-4, 1e-5):
        gap = mean_gap(np.random.default_rng(0), scale, number)
        ratios.append(gap / scale**1.75)
        print(f"    sigma_0 = {scale:g}: {ratios[-1]:.2f} sigma_0^1.75, or {gap / scale**1.5:.2f} sigma_0^1.5")
    is_violated &= min(np.diff(ratios)) > 0 and ratios[-1] > 3 * ratios[0]
sys.exit(0 if is_violated else 1)
