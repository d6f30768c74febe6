"""Theorem 1, Eq. (23), and Lemma 9, first sentence, are vacuous: task-independent routing satisfies both.

Suppose that routing ignores the features, s >= 2, sigma_t > 0, and |w_n| <= K = O(sigma_0) for all ground truths. Then
every expected error, and every difference of errors, is at most 2 K^2 (1 + p/(s - 1)) = O(sigma_0^2), at any time. A
task sets its server's model w to (I - P) w + P w_t, where P projects onto the samples. The two parts are orthogonal.
The s - 1 noise columns span a uniformly random subspace, so E|P w|^2 >= ((s - 1)/p) |w|^2. Hence one task takes E|w|^2
to at most (1 - (s - 1)/p) E|w|^2 + K^2. From 0 on, E|w|^2 <= K^2 p/(s - 1) at all times. The printed Lemma 9 has no
expectation. It then holds up to a factor k with probability 1 - 1/k.

Robust: any servers, delays, loads, task types, signals, M, T, beta and noise.

Objection: O(sigma_0^2) may mean the error within one cluster, a version that is assessed separately and is false.

Caveat: ground truths of size O(sigma_0), as in the proof of Lemma 3, noise, and s >= 2. At s = 1 one model can fit
ground truths +-sigma_0 along the bisector of two signals at an angle a. It is sigma_0 cot(a/2) long across it, of order
1 at a = sigma_0.
"""

import sys
from fractions import Fraction
from itertools import product

TRUTHS, SIGNALS = [(1, 2, 0), (-2, 0, 1)], [(1, 1, 0), (1, 0, 0)]  # unlike each other, p = 3
AXES, SAMPLES = range(3), 2  # noise uniform on axes: E uu' = I/p, which is all that is used


def after(model, truth, columns):
    """Return the model after (9), with columns orthogonalized one after another."""
    basis = []
    for column in columns:
        left = list(map(Fraction, column))
        for one in basis:
            along = Fraction(sum(x * y for x, y in zip(left, one, strict=True))) / sum(y * y for y in one)
            left = [x - along * y for x, y in zip(left, one, strict=True)]
        basis += [left] if any(left) else []
    for one in basis:
        miss = sum((x - y) * z for x, y, z in zip(truth, model, one, strict=True)) / sum(z * z for z in one)
        model = [x + miss * z for x, z in zip(model, one, strict=True)]
    return tuple(model)


largest = max(sum(x * x for x in truth) for truth in TRUTHS)  # K^2
bound = 2 * largest * (1 + Fraction(3, SAMPLES - 1))
models, holds = {(0, 0, 0): Fraction(1)}, True
for time in range(1, 5):
    later = {}
    for (model, chance), kind, axis in product(models.items(), (0, 1), AXES):
        new = after(model, TRUTHS[kind], [SIGNALS[kind], [int(n == axis) for n in AXES]])
        later[new] = later.get(new, 0) + chance / 6
    models = later
    norm = sum(chance * sum(x * x for x in model) for model, chance in models.items())
    worst = max(
        sum(chance * sum((x - y) ** 2 for x, y in zip(model, w, strict=True)) for model, chance in models.items())
        for w in TRUTHS
    )
    holds = holds and norm <= largest * Fraction(3, SAMPLES - 1) and worst <= bound
    print(f"after {time} tasks: E|w|^2 = {norm}, at most {largest * 3}; largest error {worst}, at most {bound}")
print(f"p = 15, s = 10: errors are at most {2 * (1 + Fraction(15, 9))} of the largest |w_n|^2, at any T")
print("proved: routing that ignores tasks satisfies them" if holds else "not proved")
sys.exit(not holds)
