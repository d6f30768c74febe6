"""Lemma 3 at s = 1: an expert that receives the same task twice in a row does not change the second time.

The only sample is beta v for the task's signal v and a strength beta > 0. The first update makes the expert fit it, so
v'w = v'w_n. The second arrival of the task has the same signal, perhaps with another strength. The expert already fits
this sample, and the update (5) moves it by v (v'w_n - v'w)/|v|^2 = 0.
"""

import sys
from fractions import Fraction
from itertools import product


def dot(one: list[Fraction], two: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(one, two, strict=True)), Fraction(0))


def updated(expert: list[Fraction], truth: list[Fraction], sample: list[Fraction]) -> list[Fraction]:
    """Return the expert after the update (5) with one sample."""
    share = (dot(sample, truth) - dot(sample, expert)) / dot(sample, sample)
    return [entry + share * part for entry, part in zip(expert, sample, strict=True)]


holds = True
values = [Fraction(n) for n in (-1, 0, 2)]
for signal, truth in product(product(values, repeat=2), repeat=2):
    if any(signal):
        first = updated([Fraction(3), Fraction(-2)], list(truth), [Fraction(1, 3) * part for part in signal])
        second = updated(first, list(truth), [Fraction(5, 7) * part for part in signal])
        holds = holds and first == second
print(f"all signals and truths tried, with two strengths: the second update moves nothing: {holds}")
print("proved: no change at s = 1" if holds else "not proved")
sys.exit(not holds)
