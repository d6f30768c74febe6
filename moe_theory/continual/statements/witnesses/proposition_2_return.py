"""Proposition 2, (13): how far apart all outputs are at t2 if the gates never stop learning, for ever smaller sigma_0.

Algorithm 1 without its end, 20 runs at once: 6 experts and three orthonormal clusters, of one task each (M > N = 3) or
of three tasks within sigma_0^1.5 and with one signal (M < N = 9). Taken is the largest gap of two experts' outputs, in
mean over runs and the 20 rounds up to t2. Exits 0 if it outgrows any multiple of sigma_0^1.75.
"""

import sys

import numpy as np

RUNS, CLUSTERS, EXPERTS, FEATURES = 20, 3, 6, 5  # R, K, M, d; s = 2 samples, signal and noise
AXES = np.eye(FEATURES)


def spread(rng: np.random.Generator, scale: float, number: int) -> float:
    """The mean of the largest gap, with `number` tasks in a cluster."""
    run, rate, end = np.arange(RUNS), scale**0.5, int(np.ceil(EXPERTS / scale**1.25))  # rate: eta and alpha, end: t2
    gates, models = np.zeros((2, RUNS, EXPERTS, FEATURES))  # models, and truths below, over sigma_0
    visits, found = np.zeros((RUNS, EXPERTS)), []
    for time in range(1, end + 1):
        cluster, place = rng.integers(CLUSTERS, size=RUNS), rng.integers(number, size=RUNS) / 3
        signal, noise = AXES[cluster], scale / 4 * rng.standard_normal((RUNS, FEATURES))
        inputs = signal + noise
        outputs = np.einsum("rmd,rd->rm", gates, inputs)
        if time > end - 20:
            found.append(np.ptp(outputs, axis=1))
        chosen = np.argmax(outputs + rng.uniform(0, scale**1.25, (RUNS, EXPERTS)), axis=1)  # (1)
        error = signal + scale**0.5 * place[:, None] * AXES[-1] - models[run, chosen]
        beside = noise * (1 - signal)  # of the noise, what is orthogonal to the signal, an axis
        beside /= np.linalg.norm(beside, axis=1, keepdims=True)
        move = signal * error + beside * np.sum(beside * error, axis=1, keepdims=True)  # (5)
        models[run, chosen] += move
        visits[run, chosen] += 1
        softmax = np.exp(outputs) / np.sum(np.exp(outputs), axis=1, keepdims=True)  # (2)
        slopes = softmax[run, chosen][:, None] * ((np.arange(EXPERTS) == chosen[:, None]) - softmax)
        cost = scale * np.linalg.norm(move, axis=1) + rate * EXPERTS * visits[run, chosen] / time**2
        gates -= (rate * cost)[:, None, None] * slopes[:, :, None] * inputs[:, None]  # (9)
    return float(np.mean(np.concatenate(found)))


is_violated = True
for number in (1, 3):
    print(f"{'M > N' if number == 1 else 'M < N'}, stated: O(sigma_0^1.75)")
    gaps = []
    for scale in (1e-2, 4e-3, 2e-3):
        gaps.append(spread(np.random.default_rng(0), scale, number) / scale**1.75)
        print(f"    sigma_0 = {scale:g}: the largest gap is {gaps[-1]:.2f} sigma_0^1.75")
    is_violated &= min(np.diff(gaps)) > 0 and gaps[-1] > 1.6 * gaps[0]
sys.exit(0 if is_violated else 1)
