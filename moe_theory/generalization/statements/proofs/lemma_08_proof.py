"""Lemma 8, proof: (37) and (38) are equal for a class that contains 1 - l with every loss l.

For a loss l let D(l) = L_S - L_S'. Then D(1 - l) = -D(l), as the constant cancels. If the class of losses contains 1 -
l with l, then sup D = sup max(D(l), D(1 - l)) = sup |D| for every S and S'. So (37) and (38) are equal.

The losses clip((1 - y f)/2, 0, 1) are of this form if the class contains -f with every f, as linear functions in a ball
do. Otherwise only (37) <= (38) holds. The lemma needs neither. Without absolute values (37) is at most (39), by
exchanges of samples as in the proof of Lemma 8.
"""

import sys
from itertools import product

SAMPLES = 2
points = range(3)
functions = list(product((-1, 1), repeat=len(points)))  # f, by input; all labels are +1
samples = list(product(points, repeat=SAMPLES))


def gap(f: tuple[int, ...], one: tuple[int, ...], two: tuple[int, ...]) -> int:
    """Return 2m (L_S - L_S') for the loss (1 - f)/2."""
    return sum(1 - f[x] for x in one) - sum(1 - f[x] for x in two)


equal = ordered = True
for chosen in range(1, 2 ** len(functions)):
    members = [f for place, f in enumerate(functions) if chosen >> place & 1]
    is_mirrored = all(tuple(-value for value in f) in members for f in members)
    for one, two in product(samples, samples):
        gaps = [gap(f, one, two) for f in members]
        ordered = ordered and max(gaps) <= max(map(abs, gaps))
        equal = equal and (not is_mirrored or max(gaps) == max(map(abs, gaps)))
print(f"all {2 ** len(functions) - 1} classes of +1 and -1 on three inputs, every S and S' of {SAMPLES}:")
print(f"sup D <= sup |D|: {ordered}; equal where the class holds -f with every f: {equal}")
print("proved: (37) is (38) for such a class" if equal and ordered else "not proved")
sys.exit(not (equal and ordered))
