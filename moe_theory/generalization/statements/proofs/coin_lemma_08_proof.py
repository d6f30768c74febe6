"""Lemma 8, proof: one function whose loss is a fair coin, one sample; (37) is 0, (38) is 1/2, said to be equal.

Absolute values, which (38) has and (37) has not, change the mean. F holds one f, whose loss is 0 or 1 with probability
1/2, and m = 1. L_S - L_S' is -1, 0, 0 or 1 with probability 1/4 each: its mean, (37), is 0. That of |L_S - L_S'|, (38),
is 1/2.

Robust: for any m, (37) of a class of one function is 0, and (38) is above 0 unless its loss is constant. In any class
(38) is no less than (37), so that the slip goes one way.

Objection: the absolute values are a slip, and (39) drops them again. So it is, and the lemma stands without them; with
every loss l in the class also 1 - l, (37) and (38) are equal, absolute values and all.
"""

import sys
from fractions import Fraction
from itertools import product

SAMPLES = 1
draws = list(product((0, 1), repeat=2 * SAMPLES))  # losses on S and S'
gaps = [Fraction(sum(draw[:SAMPLES]) - sum(draw[SAMPLES:]), SAMPLES) for draw in draws]
signed = sum(gaps) / len(draws)
absolute = sum(map(abs, gaps)) / len(draws)
print(f"(37): {signed}")
print(f"(38): {absolute}")
print("violated: the two differ" if signed != absolute else "not violated")
sys.exit(signed == absolute)
