"""Lemma 8 holds: symmetrization bounds the mean of the largest difference by twice the Rademacher complexity.

The x_i and x'_i are i.i.d., so exchanging x_i and x'_i, for any set of i, changes no mean. For every sign vector s, E
sup (1/m) sum_i (f(x_i) - f(x'_i)) = E sup (1/m) sum_i s_i (f(x_i) - f(x'_i)). Average over s, and bound the sup of a
sum by the sum of the sups. The result is at most E sup (1/m) sum s_i f(x_i) + E sup (1/m) sum -s_i f(x'_i). As -s has
the distribution of s, and x' that of x, both terms are R_m(F), as in Definition 2, without absolute values.

The proof uses i.i.d. samples and finite means, and nothing about F, the loss or its range. The program computes both
sides and the step between them, over all inputs, exchanges and signs, for every class of functions from two inputs to
{-1, 0, 1}.
"""

import sys
from collections import Counter
from fractions import Fraction
from itertools import product

SAMPLES, CHANCES = 2, (1, 2)  # m, and the chances of the two inputs, in thirds
signs = list(product((-1, 1), repeat=SAMPLES))
drawn = list(product(range(2), repeat=SAMPLES))


def weight(sample: tuple[int, ...]) -> int:
    made = 1
    for point in sample:
        made *= CHANCES[point]
    return made


pairs = Counter()  # of the pairs (counts of s_i at each input, weight)
for one, two in product(drawn, drawn):
    for sign in signs:
        moved = [0, 0]
        for s, a, b in zip(sign, one, two, strict=True):
            moved[a] += s
            moved[b] -= s
        pairs[sign, tuple(moved)] += weight(one) * weight(two)
singles = Counter()
for one in drawn:
    for sign in signs:
        moved = [0, 0]
        for s, a in zip(sign, one, strict=True):
            moved[a] += s
        singles[tuple(moved)] += weight(one)
functions = list(product((-1, 0, 1), repeat=2))
holds = True
for chosen in range(1, 2 ** len(functions)):
    members = [each for place, each in enumerate(functions) if chosen >> place & 1]
    largest = {c: max(u * c[0] + v * c[1] for u, v in members) for c in product(range(-2, 3), repeat=2)}
    means = [Fraction(sum(w * largest[c] for (s, c), w in pairs.items() if s == sign), 2 * 81) for sign in signs]
    complexity = Fraction(sum(w * largest[c] for c, w in singles.items()), 2 * 9 * len(signs))
    holds = holds and len(set(means)) == 1 and means[0] <= 2 * complexity
print(f"all {2 ** len(functions) - 1} classes, m = {SAMPLES}: exchanges leave the mean as it is: {holds}")
print(f"and it is at most 2 R_m(F): {holds}")
print("proved: Lemma 8" if holds else "not proved")
sys.exit(not holds)
