"""Lemma 3 in rational numbers: an expert meets one task three times in a row, and moves each time.

d = 3, s = 2: one sample is the task's signal, along the first axis, the other one is written out below. The expert
starts from 0, and the truth is (1, 1, 1). Exits 0 if a repeat moves the expert.
"""

import sys
from fractions import Fraction

TRUTH = [Fraction(1)] * 3
OTHERS = [[0, 1, 0], [0, 1, 1], [0, 0, 1]]  # the samples beside the signal, in the three rounds


def move(expert: list[Fraction], sample: list[int]) -> list[Fraction]:
    """(5): the error's projection on the span of the signal and a sample that is orthogonal to it."""
    error = [truth - entry for truth, entry in zip(TRUTH, expert, strict=True)]
    share = sum(a * b for a, b in zip(error, sample, strict=True)) / Fraction(sum(a * a for a in sample))
    return [error[0], *(share * entry for entry in sample[1:])]


expert, sizes = [Fraction(0)] * 3, []
print("Stated: once an expert has a task, repeats of that task leave it as it is.")
for arrival, sample in enumerate(OTHERS, 1):
    change = move(expert, sample)
    expert = [old + new for old, new in zip(expert, change, strict=True)]
    sizes.append(sum(each**2 for each in change))
    left = sum((truth - entry) ** 2 for truth, entry in zip(TRUTH, expert, strict=True))
    print(f"Arrival {arrival}: it moves by {sizes[-1]} in square, and a squared error of {left} is left.")
sys.exit(0 if min(sizes[1:]) > 0 else 1)
