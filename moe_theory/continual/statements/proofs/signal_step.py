"""One step of an expert, where one of the s samples is the task's signal.

Let M = 1, or the choice of the expert not depend on the round's samples, and sigma_t > 0 if s >= 2. An arrival's span
is that of the signal's direction u and of s - 1 Gaussian samples, whose parts beside u are isotropic in the d - 1
dimensions beside u. So the projector on the rest, Q = I - P, has a mean that commutes with all rotations of these, a
multiple of Pi = I - u u'; its trace is d - s: E Q = c Pi, c = (d - s)/(d - 1). By (5) w_t - w_i = Q (w_{t-1} - w_i) + P
(w_n - w_i), two orthogonal parts, with |P b|^2 = |b|^2 - |Q b|^2. So given w_{t-1}, E|w_t - w_i|^2 = c |Pi (w_{t-1} -
w_i)|^2 + |w_n - w_i|^2 - c |Pi (w_n - w_i)|^2. With n = i and an expert whose last task was n, the second and third
terms are 0 and w_{t-1} - w_n is orthogonal to u, as that arrival has shown it: E|w_t - w_n|^2 = c |w_{t-1} - w_n|^2.
The program takes the axes beside u, s - 1 at a time, whose projectors have the mean of random ones, and compares.

Robust: beta, the signal, all truths and models. A gate that sees the noise may prefer some samples to others; the claim
continual.lemma-16.step finds no difference beyond its margin along Algorithm 1's own routes.
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
