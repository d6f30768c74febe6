"""Eq. (10) holds for a loss in [0, 1], which Theorem 1 assumes.

Let sup |L_S - L_D| >= eps. For each small r > 0 some h, which depends on S alone, has |L_S(h) - L_D(h)| >= eps - r. The
sample S' is independent of h. L_S'(h) has the mean L_D(h) and a variance of at most 1/(4m), as the loss is in [0, 1].
By Chebyshev's inequality |L_S'(h) - L_D(h)| <= eps/2 - r, except with probability at most 1/(4m (eps/2 - r)^2). Then
|L_S(h) - L_S'(h)| >= eps/2. As r tends to 0, P(sup |L_S - L_S'| >= eps/2) >= (1 - 1/(m eps^2)) P(sup |L_S - L_D| >=
eps). The condition exp(-eps^2 m/2) <= 1/4 means m eps^2 >= 2 log 4, which is above 2. So the factor is above 1/2, and
this is (10).
"""

import sys
from collections import Counter
from fractions import Fraction

import sympy

m, eps, mean, spread = sympy.symbols("m epsilon mu v", positive=True)
half = sympy.Rational(1, 2)
# E X^2 <= E X for X in [0, 1], so its variance is at most mu (1 - mu) = 1/4 - (mu - 1/2)^2.
steps = [mean - mean**2 - (half**2 - (mean - half) ** 2), (half**2 / m) / (eps / 2) ** 2 - 1 / (m * eps**2)]
holds = all(sympy.simplify(step) == 0 for step in steps)
print(f"the variance is at most 1/4, and Chebyshev's probability is 1/(m eps^2): {holds}")
LOG_4 = 1  # below log 4, as e < 4: the series of e is at most 1 + 1 + 1/2 + 1/4 + 1/8 + ... = 3
factor = 1 - Fraction(1, 2 * LOG_4)
print(f"at m eps^2 = 2 log 4 > {2 * LOG_4} the factor is above {factor}")
holds = holds and factor >= Fraction(1, 2)

# An exact count: two cells with an expert +1 or -1 each, fair-coin labels, all true risks 1/2. The sums of
# labels (S_1, S_2) walk in the plane. The gap is (|S_1| + |S_2|)/(2m), and S - S' is a walk of 2m steps.
SAMPLES, GAP = 12, Fraction(1, 2)
assert SAMPLES * GAP**2 >= 3
assert 1 + Fraction(3, 2) + Fraction(9, 8) + Fraction(9, 16) > 4  # exp(m eps^2/2) > 4


def chance(steps: int, least: Fraction) -> Fraction:
    """Return the probability that |S_1| + |S_2| >= `least` after this number of steps."""
    walk = Counter({(0, 0): 1})
    for _ in range(steps):
        walk, last = Counter(), walk
        for (x, y), ways in last.items():
            for place in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
                walk[place] += ways
    return Fraction(sum(ways for (x, y), ways in walk.items() if abs(x) + abs(y) >= least), 4**steps)


true, ghost = chance(SAMPLES, 2 * SAMPLES * GAP), chance(2 * SAMPLES, SAMPLES * GAP)
print(f"two cells, m = {SAMPLES}, eps = {GAP}: {true} on the left, twice {ghost} on the right")
holds = holds and true <= 2 * ghost
print("proved: (10) holds" if holds else "not proved")
sys.exit(not holds)
