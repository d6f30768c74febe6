"""Counterexample to Lemma 1 after one round: noise that does not shrink with sigma_0.

M = 3, d = 3, s = 2, w_n = sigma_0 v_n, orders of Algorithm 1 with constants of 1. The two signals are along axes, of
two tasks (M > N) or of two clusters of equal signals (M < N). In both cases the gates after one round and two arrivals
of one signal are the same. The noise level is first 0.1, whatever sigma_0 is, and then sigma_0 / 4. Exits 0 if the gap
of outputs exceeds any multiple of sigma_0^1.5 for the first noise level, and only for it.
"""

import sys

import numpy as np

DRAWS, EXPERTS = 10_000, 3


def gaps(rng: np.random.Generator, scale: float, noise: float) -> np.ndarray:
    """|h_m(X) - h_m(X~)| of the expert chosen in round 1, for two arrivals of its task."""
    rate = scale**0.5  # eta and alpha
    first, one, other = np.array([1, 0, 0]) + noise * rng.standard_normal((3, DRAWS, 3))  # the sums of both samples
    # The expert is 0 and learns w_1, as v_1 is a sample. So it moves by |w_1| = sigma_0. It has all tasks, f_1 = 1.
    gates = -rate * (scale + rate * EXPERTS) * (1 / EXPERTS) * (1 - 1 / EXPERTS) * first  # (9) from gates of 0
    return np.abs(np.sum(gates * (one - other), axis=1))


rng, shares = np.random.default_rng(0), []
print("Stated: with probability 1 - o(1) the gap of outputs is O(sigma_0^1.5).")
for scale in (1e-2, 1e-4, 1e-6, 1e-8):
    fixed, small = (gaps(rng, scale, noise) / scale**1.5 for noise in (0.1, scale / 4))
    shares.append([np.mean(fixed > 10), np.mean(small > 10)])
    print(f"sigma_0 = {scale:g}: at sigma_t = 0.1 the median gap is {np.median(fixed):.2g} sigma_0^1.5, above 10 in")
    print(f"    {shares[-1][0]:.1%} of draws; at sigma_t = sigma_0 / 4 it is {np.median(small):.2g} sigma_0^1.5")
sys.exit(0 if shares[-1][0] > 0.95 and np.all(np.diff([each[0] for each in shares]) > 0) and shares[-1][1] == 0 else 1)
