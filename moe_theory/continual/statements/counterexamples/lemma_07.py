"""Counterexample to Lemma 7: round 1 raises the chosen expert's output for a task that did not arrive.

M = 3, N = 2, d = 3, s = 2, signals v_1 = (1, 0, 0) and v_2 = (-3, 4, 0) / 5, w_n = sigma_0 v_n. Task 1 arrives first,
with noise of sigma_0 / 4. Exits 0 if in all draws the output for v_1 falls and the output for v_2 rises.
"""

import sys

import numpy as np

DRAWS, EXPERTS = 10_000, 3
SIGNALS = np.array([[1, 0, 0], [-0.6, 0.8, 0]])


def changes(rng: np.random.Generator, scale: float) -> np.ndarray:
    """<theta_1 - theta_0, v_n> of the expert chosen (draws, n)."""
    rate = scale**0.5  # eta and alpha
    inputs = SIGNALS[0] + scale / 4 * rng.standard_normal((DRAWS, 3))  # the sum of both samples
    # The expert is 0 and learns w_1, as v_1 is a sample. So it moves by |w_1| = sigma_0. It has all tasks, f_1 = 1.
    cost = scale + rate * EXPERTS
    gradient = cost * (1 / EXPERTS) * (1 - 1 / EXPERTS) * inputs  # at gates of 0, (28)
    return -rate * gradient @ SIGNALS.T


is_violated, rng = True, np.random.default_rng(0)
print("Stated: a round lowers the chosen expert's output by O(sigma_0) for every signal.")
for scale in (0.1, 0.01, 0.001, 0.0001):
    own, other = changes(rng, scale).T / scale
    print(
        f"sigma_0 = {scale:g}: for v_1 it changes by {own.mean():+.3f} sigma_0, for v_2 by {other.mean():+.3f} sigma_0;"
    )
    print(f"    it rises for v_1 in {np.mean(own > 0):.0%} of draws, for v_2 in {np.mean(other > 0):.0%}")
    is_violated &= np.all(own < 0) and np.all(other > 0.1)
sys.exit(0 if is_violated else 1)
