"""Counterexample to (18) and (42): the exact means for two tasks and one expert, with d = 2 and s = 1.

With s = 1 the signal is the only sample. Signals are v_n = w_n, and w_1, w_2 unit vectors of cosine -3/5, in rational
numbers. An arrival of task n moves the expert by v_n <v_n, w_n - w>. The program takes all sequences of tasks. Exits 0
if both means differ from the printed values.
"""

import itertools
import sys
from fractions import Fraction

TRUTHS = [(Fraction(1), Fraction(0)), (Fraction(-3, 5), Fraction(4, 5))]
RATIO = 1 - Fraction(1, 2)  # r = 1 - s / d
Vector = tuple[Fraction, ...]


def distance(one: Vector, other: Vector) -> Fraction:
    return sum(((a - b) ** 2 for a, b in zip(one, other, strict=True)), Fraction(0))


def learned(tasks: tuple[int, ...]) -> Vector:
    """The expert after these tasks, starting from 0."""
    expert: Vector = (Fraction(0), Fraction(0))
    for truth in (TRUTHS[task] for task in tasks):
        step = sum((a * (a - b) for a, b in zip(truth, expert, strict=True)), Fraction(0))
        expert = tuple(b + step * a for a, b in zip(truth, expert, strict=True))
    return expert


GAPS = [[distance(a, b) for a in TRUTHS] for b in TRUTHS]
delta = sum(map(sum, GAPS)) / 4  # W = 1
is_violated = True
for rounds in (1, 2, 4, 8):
    mean = history = Fraction(0)
    for tasks in itertools.product(range(2), repeat=rounds):
        expert = learned(tasks)
        for task in tasks:
            weighted = (RATIO ** (rounds - place) * GAPS[each][task] for place, each in enumerate(tasks, 1))
            history += RATIO**rounds + (1 - RATIO) * sum(weighted)  # (42)
            mean += distance(expert, TRUTHS[task])  # whose mean is G_T
    mean, history = (each / rounds / 2**rounds for each in (mean, history))
    printed = RATIO**rounds + (1 - RATIO**rounds) * delta  # (18)
    print(f"T = {rounds}: the mean error is {mean} = {float(mean):.3f}")
    print(f"    (18) says {float(printed):.3f}, and (42), whose mean over all arrivals this is, {float(history):.3f}")
    is_violated &= mean not in (printed, history)
limit: Vector = (Fraction(1), Fraction(2))  # the only point that arrivals of neither task move
errors = [distance(limit, truth) for truth in TRUTHS]
moved = [sum(a * (a - b) for a, b in zip(truth, limit, strict=True)) for truth in TRUTHS]
print(f"T without end: the expert tends to (1, 2), with errors of {errors[0]} and {errors[1]}; (18) tends to {delta}.")
is_violated &= moved == [0, 0] and min(errors) > 2 * delta
sys.exit(0 if is_violated else 1)
