"""For two unit vectors in turn and even k, the largest F(k) is (1 - 1/k)^k / (2 (k - 1)), below 1 / (2 e (k - 1)).

After the first round the error is orthogonal to the first task, and each further round multiplies it by the cosine. Let
c = cos(theta)^2. The task that was not learned last then has the loss (1 - c) c^(k - 1). It had half of the rounds, so
F(k) is half of this loss. The factor (k - 1)(1 - c) and k - 1 factors c sum to k - 1, so their product is at most
((k - 1)/k)^k, with equality if all are equal. The program compares (1 - 1/k)^k with a partial sum of the series of 1/e.
The sum ends with a negative term, so it is below 1/e.

Robust: odd k, for which the other task had fewer than half of the rounds.

Objection: w* is taken orthogonal to the first task. Any other w* of length at most 1 leaves a smaller error after the
first round.
"""

import sys
from fractions import Fraction
from math import factorial

is_right = True
for k in range(2, 42, 2):
    best = Fraction(k - 1, k)
    worst = best**k / (2 * (k - 1))
    below_1_over_e = sum(Fraction((-1) ** n, factorial(n)) for n in range(80))
    is_right = is_right and best**k < below_1_over_e
    for a, b in ((3, 4), (4, 3), (5, 12), (12, 5), (8, 15), (15, 8), (1, 0), (7, 24), (24, 7), (99, 20)):
        length = {25: 5, 169: 13, 289: 17, 1: 1, 625: 25, 10201: 101}[a * a + b * b]
        tasks = ((Fraction(1), Fraction(0)), (Fraction(a, length), Fraction(b, length)))
        error = (Fraction(0), Fraction(-1))
        for turn in range(k):
            x, y = tasks[turn % 2]
            along = x * error[0] + y * error[1]
            error = (error[0] - along * x, error[1] - along * y)
        forgetting = sum((x * error[0] + y * error[1]) ** 2 for x, y in tasks) / 2
        c = Fraction(a, length) ** 2
        is_right = is_right and forgetting == (1 - c) * c ** (k - 1) / 2 <= worst
    if k <= 6:
        print(f"k = {k}: largest {worst}, at c = {best}: {(1 - best) * best ** (k - 1) / 2}")
    is_right = is_right and (1 - best) * best ** (k - 1) / 2 == worst
print("proved: F(k) is at most (1 - 1/k)^k / (2 (k - 1))" if is_right else "not proved")
sys.exit(not is_right)
