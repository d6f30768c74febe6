"""Counterexample to the proof of Lemma 8: for a fair coin and one sample (37) is 0, but (38) is 1/2.

The proof says that (37) and (38) are equal, but (38) has absolute values and (37) has none. Let F contain one f, whose
loss is 0 or 1 with probability 1/2 each, and let m = 1. Then L_S - L_S' is -1, 0, 0 or 1 with probability 1/4 each. Its
mean, (37), is 0. The mean of |L_S - L_S'|, (38), is 1/2.

Robust: the argument works for any m. For a class of one function (37) is 0, and (38) is above 0 unless its loss is
constant. In every class (38) is at least (37), so the slip can only raise the mean.

Objection: the absolute values are a slip, and (39) drops them again. We agree, and the lemma holds without them. With
absolute values, (37) and (38) are equal if the class contains 1 - l with every loss l.
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
