"""Theorem 1, Eq. (23), and the first sentence of Lemma 9 are vacuous: task-independent routing satisfies both.

Suppose that routing ignores the features, s >= 2, sigma_t > 0, and |w_n| <= K = O(sigma_0) for all ground truths. Then
every expected error, and every difference of errors, is at most 2 K^2 (1 + p/(s - 1)) = O(sigma_0^2), at any time. A
task sets its server's model w to (I - P) w + P w_t, where P projects onto the samples. The two parts are orthogonal.
The s - 1 noise columns span a uniformly random subspace, so E|P w|^2 >= ((s - 1)/p) |w|^2. So after one task E|w|^2 is
at most (1 - (s - 1)/p) E|w|^2 + K^2. Models start at 0, so E|w|^2 <= K^2 p/(s - 1) at all times. The printed Lemma 9
has no expectation. By Markov's inequality it holds up to a factor k with probability 1 - 1/k.

Robust: the proof allows any servers, delays, loads, task types, signals, M, T, beta and noise.

Objection: O(sigma_0^2) may mean the error within one cluster. We assess this version separately, and it is false.

Caveat: there is noise, s >= 2, and ground truths have size O(sigma_0), as in the proof of Lemma 3. At s = 1 one model
can fit ground truths +-sigma_0 along the bisector of two signals at an angle a. This model has the length sigma_0
cot(a/2) across the bisector, which is of order 1 at a = sigma_0.
"""

import sys
from fractions import Fraction
from itertools import product

FEATURES, SAMPLES = 3, 2
TRUTHS = [(1, 2, 0), (-2, 0, 1)]  # unlike each other, with signals on the first and the second axis
AXES = range(FEATURES)  # of noise: E uu' = I/p, the only property used


def mean_distance(models, truth):
    distances = [sum((x - y) ** 2 for x, y in zip(model, truth, strict=True)) for model in models]
    return Fraction(sum(distances), len(models))


largest = max(sum(x * x for x in truth) for truth in TRUTHS)  # K^2
allowed = largest * Fraction(FEATURES, SAMPLES - 1)
bound = 2 * (largest + allowed)
holds = True
for time in range(1, 5):
    models = []
    for arrivals in product(product((0, 1), AXES), repeat=time):  # every sequence of types and draws
        model = [0] * FEATURES
        for kind, axis in arrivals:
            model[kind] = TRUTHS[kind][kind]  # (9)
            model[axis] = TRUTHS[kind][axis]
        models.append(model)
    norm = mean_distance(models, (0, 0, 0))
    worst = max(mean_distance(models, truth) for truth in TRUTHS)
    holds = holds and norm <= allowed and worst <= bound
    print(f"after {time} tasks: E|w|^2 = {norm}, at most {allowed}; largest error {worst}, at most {bound}")
print("proved: routing that ignores tasks satisfies them" if holds else "not proved")
sys.exit(not holds)
