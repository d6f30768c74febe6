"""Lemma 9 (contraction) holds for a loss that is C-Lipschitz in the model's output.

Given S, write l_i(t) = l(t, y_i), and replace l_i by C t for one i after another. For the current i let u(h) be the
rest of the sum. The mean over its sign is 1/2 sup_h (u(h) + l_i(h)) + 1/2 sup_g (u(g) - l_i(g)) = 1/2 sup_{h,g} (u(h) +
u(g) + l_i(h) - l_i(g)) <= 1/2 sup_{h,g} (u(h) + u(g) + C |h - g|), with h and g taken at x_i. The last expression is
symmetric in h and g, so |h - g| may be replaced by h - g. It is the mean over the sign s of sup (u + s C h).

After m replacements R_S(l o H) <= C R_S(H) for every S. Take the mean over S. Definition 2 has no absolute values, so
l(0) need not be 0, and no factor of 2 enters. The proof uses the Lipschitz property in the output for each label, and
nothing about H. The program checks a step and the result, for every class of up to four functions on two inputs.
"""

import sys
from fractions import Fraction
from itertools import combinations, permutations, product

OUTPUTS, SAMPLES = (-1, 0, 2), 2
signs = list(product((-1, 1), repeat=SAMPLES))
losses = [  # twice the loss, by output
    {-1: 2, 0: 1, 2: 0},  # the ramp, label +1
    {-1: 0, 0: 1, 2: 2},  # label -1
    {-1: 1, 0: 0, 2: 2},  # |t|/2, not monotone
]
steepest = max(Fraction(abs(each[a] - each[b]), abs(a - b)) for each in losses for a, b in permutations(OUTPUTS, 2))
scaled = {value: steepest.numerator * value for value in OUTPUTS}
assert steepest.denominator == 1


def complexity(members: tuple[tuple[int, ...], ...], kinds: tuple[dict[int, int], ...]) -> int:
    """Return the largest signed sum, summed over the signs."""
    return sum(max(sum(s * k[t] for s, k, t in zip(sign, kinds, h, strict=True)) for h in members) for sign in signs)


holds, tried = True, 0
for size in range(1, 5):
    for members in combinations(product(OUTPUTS, repeat=SAMPLES), size):
        last = complexity(members, (scaled, scaled))
        for first, second in product(losses, losses):
            between = complexity(members, (scaled, second))  # one exchanged
            holds = holds and complexity(members, (first, second)) <= between <= last
        tried += 1
print(f"C = {steepest / 2}: {tried} classes, {len(losses) ** 2} pairs of losses: each exchange raises: {holds}")
print("proved: Lemma 9" if holds else "not proved")
sys.exit(not holds)
