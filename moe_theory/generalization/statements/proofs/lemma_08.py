"""Lemma 8 holds: symmetrization bounds the mean of the largest difference by twice the Rademacher complexity.

The x_i and x'_i are i.i.d., so exchanging x_i and x'_i, for any set of i, changes no mean. So for every sign vector s,
E sup (1/m) sum_i (f(x_i) - f(x'_i)) = E sup (1/m) sum_i s_i (f(x_i) - f(x'_i)). Average over s. The sup of a sum is at
most the sum of the sups, so the mean is at most E sup (1/m) sum s_i f(x_i) + E sup (1/m) sum -s_i f(x'_i). As -s is
distributed like s, and x' like x, both terms are R_m(F) of Definition 2, without absolute values. The proof uses i.i.d.
samples and finite means, and nothing about F, the loss or its range. The program computes both sides and the step
between them. It takes all inputs, exchanges and signs, and every class of functions from two inputs to {-1, 0, 1}.
"""

import sys
from fractions import Fraction
from itertools import combinations, product

SAMPLES, POINTS = 2, (0, 1, 1)  # m, and the inputs 0 and 1, of which 1 is twice as likely
signs = list(product((-1, 1), repeat=SAMPLES))
drawn = list(product(POINTS, repeat=SAMPLES))
functions = list(product((-1, 0, 1), repeat=2))


def signed(f: tuple[int, int], sign: tuple[int, ...], sample: tuple[int, ...]) -> int:
    return sum(s * f[x] for s, x in zip(sign, sample, strict=True))


def mean_largest(rows: list[list[int]]) -> Fraction:
    """Return the mean of the largest signed mean over functions, which have a row each."""
    columns = list(zip(*rows, strict=True))
    return Fraction(sum(map(max, columns)), SAMPLES * len(columns))


gaps = {}  # for each function and exchange, over S and S'
for f, sign in product(functions, signs):
    gaps[f, sign] = [signed(f, sign, one) - signed(f, sign, two) for one, two in product(drawn, repeat=2)]
sums = {f: [signed(f, sign, sample) for sign, sample in product(signs, drawn)] for f in functions}
unchanged = bounded = True
for size in range(1, len(functions) + 1):
    for members in combinations(functions, size):
        means = [mean_largest([gaps[f, sign] for f in members]) for sign in signs]
        unchanged = unchanged and len(set(means)) == 1
        bounded = bounded and means[0] <= 2 * mean_largest([sums[f] for f in members])
print(f"all {2 ** len(functions) - 1} classes, m = {SAMPLES}: exchanges leave the mean as it is: {unchanged}")
print(f"and it is at most 2 R_m(F): {bounded}")
print("proved: Lemma 8" if unchanged and bounded else "not proved")
sys.exit(not (unchanged and bounded))
