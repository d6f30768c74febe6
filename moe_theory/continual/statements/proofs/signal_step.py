"""The expected error after one step has a closed form if one of the s samples is the task's signal.

Let M = 1, or let the choice of the expert not depend on the round's samples. Let sigma_t > 0 if s >= 2.

Proof. (a) P projects on the span of the signal's direction u and s - 1 Gaussian samples. Their parts across u are
isotropic in d - 1 dimensions. (b) So the mean of Q = I - P commutes with all rotations across u. So E Q is a multiple
of Pi = I - u u' with trace d - s, and E Q = c Pi with c = (d - s)/(d - 1). (c) By (5) w_t - w_i = Q (w_{t-1} - w_i) + P
(w_n - w_i). The parts are orthogonal, and |P b|^2 = |b|^2 - |Q b|^2. (d) So given w_{t-1}, E|w_t - w_i|^2 = c |Pi
(w_{t-1} - w_i)|^2 + |w_n - w_i|^2 - c |Pi (w_n - w_i)|^2. (e) Let n = i be the expert's last task. Then the second and
third terms are 0, and w_{t-1} - w_n is orthogonal to u, because that arrival has shown u. So E|w_t - w_n|^2 = c
|w_{t-1} - w_n|^2. The program takes axes across u, s - 1 at a time. Their projectors have the mean of random
projectors.

Robust: The proof allows any beta, signal, ground truths and models. A gate that depends on the noise may prefer some
samples to others. Along Algorithm 1's routes the claim continual.lemma-16.step finds no difference beyond its margin.
"""

import sys
from fractions import Fraction
from itertools import combinations


def square(vector):
    return sum(a * a for a in vector)


def minus(one, other):
    return [a - b for a, b in zip(one, other, strict=True)]


def mean_error(before, truth, other, samples):
    """E|w_t - w_i|^2 by (5); the signal is along axis 0."""
    spans = [{0, *axes} for axes in combinations(range(1, len(truth)), samples - 1)]
    after = [[(truth if axis in span else before)[axis] for axis in range(len(truth))] for span in spans]
    return Fraction(sum(square(minus(model, other)) for model in after), len(spans))


def stated(before, truth, other, samples):
    share = Fraction(len(truth) - samples, len(truth) - 1)
    beside = square(minus(before, other)[1:]), square(minus(truth, other)[1:])
    return share * beside[0] + square(minus(truth, other)) - share * beside[1]


cases = equal = 0
for features in range(2, 8):
    before, truth, other = ([(place * k * k + k) % 7 - 3 for place in range(features)] for k in (1, 2, 3))
    for samples in range(1, features):
        learned = [truth[0], *before[1:]]  # its last task was the same
        contracted = Fraction(features - samples, features - 1) * square(minus(learned, truth))
        equal += mean_error(before, truth, other, samples) == stated(before, truth, other, samples)
        equal += mean_error(learned, truth, truth, samples) == contracted
        cases += 2
print(f"a step's mean error is what is stated in {equal} of {cases} cases")
print("proved: for all d and s" if equal == cases else "not proved")
sys.exit(equal != cases)
