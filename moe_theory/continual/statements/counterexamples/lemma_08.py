"""Counterexample to Lemma 8: the experts' shares at T1 in 100 runs for each sigma_0, as sigma_0 falls.

M = 8, N = 6, d = 10, s = 2, signals of normal entries, w_n = sigma_0 v_n, orders of Algorithm 1 with constants of 1.
Experts are exchangeable, so the mean distance of their shares from 1/M equals the distance for an expert fixed
beforehand. Exits 0 if this distance outgrows any multiple of eta^0.5 / M.
"""

import sys

import numpy as np

RUNS, TASKS, EXPERTS, FEATURES = 100, 6, 8, 10  # R, N, M, d; s = 2 samples, signal and noise


def shares(rng: np.random.Generator, scale: float) -> np.ndarray:
    """f_T1 of every expert (R, M)."""
    run, rate = np.arange(RUNS), scale**0.5  # eta and alpha
    signals = rng.standard_normal((RUNS, TASKS, FEATURES))
    gates, models = np.zeros((2, RUNS, EXPERTS, FEATURES))
    visits, end = np.zeros((RUNS, EXPERTS)), int(np.ceil(EXPERTS / rate))  # end: T1
    for time in range(1, end + 1):
        signal = signals[run, rng.integers(TASKS, size=RUNS)]
        noise = scale / 4 * rng.standard_normal((RUNS, FEATURES))
        inputs = signal + noise
        outputs = np.einsum("rmd,rd->rm", gates, inputs)
        chosen = np.argmax(outputs + rng.uniform(0, scale**1.25, (RUNS, EXPERTS)), axis=1)  # (1)
        bases, _ = np.linalg.qr(np.stack([signal, noise], axis=2))
        error = scale * signal - models[run, chosen]
        move = np.einsum("rds,res,re->rd", bases, bases, error)  # (5)
        models[run, chosen] += move
        visits[run, chosen] += 1
        softmax = np.exp(outputs) / np.sum(np.exp(outputs), axis=1, keepdims=True)  # (2)
        slopes = softmax[run, chosen][:, None] * ((np.arange(EXPERTS) == chosen[:, None]) - softmax)
        cost = np.linalg.norm(move, axis=1) + rate * EXPERTS * visits[run, chosen] / time**2
        gates -= (rate * cost)[:, None, None] * slopes[:, :, None] * inputs[:, None]  # (9)
    return visits / end


ratios = []
print("Stated: a share is within O(eta^0.5 / M) of 1/M, with a probability of 1 - delta.")
for scale in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
    gap = float(np.mean(np.abs(shares(np.random.default_rng(0), scale) - 1 / EXPERTS)))
    ratios.append(gap * EXPERTS / scale**0.25)
    print(f"sigma_0 = {scale:g}: in mean {gap:.4f} from 1/{EXPERTS}, which is {ratios[-1]:.2f} eta^0.5 / M")
sys.exit(0 if min(np.divide(ratios[1:], ratios[:-1])) > 1.3 else 1)
