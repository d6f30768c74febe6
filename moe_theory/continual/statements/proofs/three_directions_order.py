"""Lemma 15, Eq. (40): three tasks in three directions of a plane, or three clusters of such.

Unit signals v_n, v_1 + v_2 + v_3 = 0, truths sigma_0 v_n, beta = s = 1: a move is (sigma_0 - v_n . w) v_n, which leaves
p_j = w . v_j/sigma_0 <= 1 for all j, and p_n = 1. So |dw| v_n = dw, and at pi = 1/M the steps (9) of the locality loss
add up to theta_m = -(eta/M) (w_m - mean w). All |theta_m . v_j| <= B = O(eta sigma_0/M): a step differs from that by
9 eta sigma_0 B/M at most, and the auxiliary loss adds 2 eta alpha (1 + ln t), together o(eta sigma_0). (1) is uniform
up to M B/lambda -> 0: up to o(1) experts meet tasks independently. A move takes p_j to (p_n + 2 p_j - 1)/2: the last k
tasks tell p up to 2^-k. At M = 5 the program has histories of five tasks after which, whatever came before, m is in M_n
and m' in another set, but m' has the larger output for n. Their chance is the same for all sigma_0.

Robust: M >= 5, d, any constants in eta = O(sigma_0^.5) and lambda = Theta(sigma_0^1.25). A cluster's
tasks are alike up to o(sigma_0^1.5).

Objection: the chance is small. It is of one kind of history of many, and does not fall with sigma_0. With orthogonal
tasks and alpha = sigma_0^.5 (40) fails in more than nine of ten runs (instance).

Caveat: alpha log(1/sigma_0) = o(sigma_0), as O(sigma_0^.5) allows.
"""

import sys
from fractions import Fraction
from itertools import permutations, product
from math import factorial, prod

EXPERTS, LENGTH, UNIT = 5, 5, 2**5  # M, tasks of a history without repeats, and p's unit: all p are integers
CORNERS = [tuple(UNIT * (1 - 3 * (j == i)) for j in range(3)) for i in range(3)]  # of all p with p_j <= 1 and sum 0


def ends(history: tuple[int, ...]) -> list[tuple[int, ...]]:  # from each corner; all else ends between
    found = CORNERS
    for n in history:
        found = [tuple(UNIT if j == n else p[j] - (UNIT - p[n]) // 2 for j in range(3)) for p in found]
    return found


def least(points: list[tuple[int, ...]], more: int, less: int, weight: int = 1) -> int:
    return min(weight * (p[more] - p[less]) for p in points)


def prefers(own: list, others: list, task: int) -> bool:
    """Whether M theta_m . (v_task - v_j) > 0 for both other tasks j, wherever the histories began."""
    rest = (j for j in range(3) if j != task)
    return all(sum(least(each, task, j) for each in others) + least(own, j, task, EXPERTS - 1) > 0 for j in rest)


words = [w for w in product(range(3), repeat=LENGTH) if all(w[i] != w[i + 1] for i in range(LENGTH - 1))]
after = {w: ends(w) for w in words}
pairs = [(a, b) for a, b in product(words, words) if max(p[0] for p in after[b]) < min(p[0] for p in after[a])]
found = set()  # histories of all experts, whoever has which
for rest in product(((0, 1, 0, 1, 0), (1, 0, 1, 0, 1)), repeat=EXPERTS - 2):
    for a, b in pairs:
        m, other, others = after[a], after[b], [after[w] for w in rest]
        if prefers(m, [other, *others], 0) and prefers(other, [m, *others], 1):
            named = [[tuple(name[n] for n in w) for w in (a, b, *rest)] for name in permutations(range(3))]
            found.update(tuple(sorted(each)) for each in named)
ways = sum(factorial(EXPERTS) // prod(factorial(each.count(w)) for w in set(each)) for each in found)
chance = Fraction(ways, len(words) ** EXPERTS)
print(f"(40) fails with chance {chance} or more at round T1 + 1, for every sigma_0; o(1) stated")
print("violated: the chance does not fall with sigma_0" if chance > 0 else "not violated")
sys.exit(chance <= 0)
