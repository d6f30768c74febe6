"""Lemma 2 holds, even without the factor d: d_N <= 4 p (5p + 2) for ReLU networks of p parameters and d outputs.

Claim. Let h_theta(x) be the index of the largest of d outputs of a ReLU network with p parameters. Then d_N = O(p^2).

Proof. (a) Let a class H shatter C with f0 and f1, which differ on all of C (Definition 3). For every subset B of C,
some h in H agrees with f1 on B and with f0 elsewhere. So the Boolean functions (x, a) -> 1{h(x) = a} of H shatter the
points (x, f1(x)), and d_N is at most their VC dimension. (b) Each unit has its own weights. So 1{h(x) = a} takes at
most 2p products and sums, p comparisons with 0 and 2d more steps. As d <= p, these are at most 5p steps. (c) Functions
of p real parameters that take t steps (arithmetic and comparisons) have a VC dimension of at most 4 p (t + 2), by
Goldberg and Jerrum (Theorem 8.4 of Anthony and Bartlett, Neural Network Learning, 1999). This is at most 28 p^2.

The program checks (a) for every class of at most five functions from two points to three labels.

Robust: the proof allows any depth and any order of ties, as comparisons decide them.

Objection: the constant 28 is not sharp. The lemma has an unnamed constant.

Caveat: (c) is a known theorem, cited and not proved here.
"""

import sys
from itertools import combinations, product

POINTS, LABELS = range(2), range(3)
FUNCTIONS = list(product(LABELS, repeat=len(POINTS)))


def subsets(members):
    return [part for size in range(len(members) + 1) for part in combinations(members, size)]


def natarajan(functions):
    def is_shattered(places):
        for low, high in product(functions, repeat=2):
            patterns = [tuple(high[x] if x in part else low[x] for x in places) for part in subsets(places)]
            differ = all(low[x] != high[x] for x in places)
            if differ and {tuple(f[x] for x in places) for f in functions}.issuperset(patterns):
                return True
        return False

    return max(len(places) for places in subsets(POINTS) if is_shattered(places))


def vapnik(functions):
    def is_shattered(places):
        return len({tuple(f[x] == a for x, a in places) for f in functions}) == 2 ** len(places)

    return max(len(places) for places in subsets(list(product(POINTS, LABELS))) if is_shattered(places))


classes = [functions for functions in subsets(FUNCTIONS) if 1 <= len(functions) <= 5]
holds = all(natarajan(functions) <= vapnik(functions) for functions in classes)
holds = holds and all(4 * p * (5 * p + 2) <= 28 * p**2 for p in range(1, 1000))
print(f"{len(classes)} classes: d_N is at most the VC dimension; p = 1: {4 * 7} and {28}")
print("proved: d_N <= 28 p^2, given the cited theorem" if holds else "not proved")
sys.exit(not holds)
