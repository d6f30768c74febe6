"""Lemma 6, which is Natarajan's lemma, holds by induction over the points, and (16) follows from it.

Let B(m, d) be the largest number of functions from m points to k labels with dimension d. Leave out a point x, and let
H' be the class H on the other points. For each pair a < b of labels, let H_ab be the members of H' that H contains both
with a and with b at x.

A member of H' that H contains with r labels at x is in r(r - 1)/2 >= r - 1 of the H_ab. So |H| <= |H'| + sum |H_ab|. If
H_ab shatters C, then H shatters C and x, with a and b at x. So H_ab has dimension at most d - 1, and is empty if d = 0.
There are at most k^2/2 pairs, so B(m, d) <= B(m - 1, d) + k^2/2 B(m - 1, d - 1), with B(m, 0) = 1 and B(1, d) <= k. By
induction the right side is at most k^(2d) ((m - 1)^d + (m - 1)^(d - 1)/2) <= k^(2d) m^d. Equation (16) is this
inequality with the binom(T, k) masks as labels and 2m points. Its d_N is the dimension of the masks, as the line above
(16) says.
"""

import sys
from fractions import Fraction
from itertools import combinations, product


def shatters(functions: set[tuple[int, ...]], points: tuple[int, ...], labels: int) -> bool:
    """Check Definition 3: f_0 and f_1 differ at each point, and members make all choices between them."""
    made = {tuple(each[point] for point in points) for each in functions}
    pairs = list(combinations(range(labels), 2))  # exchanging f_0 and f_1 at a point changes nothing
    return any(all(choice in made for choice in product(*chosen)) for chosen in product(pairs, repeat=len(points)))


def dimension(functions: set[tuple[int, ...]], size: int, labels: int) -> int:
    sizes = [n for n in range(size + 1) if any(shatters(functions, c, labels) for c in combinations(range(size), n))]
    return max(sizes, default=-1)


holds, tried = True, 0
for size, labels in ((2, 2), (3, 2), (2, 3)):
    every = list(product(range(labels), repeat=size))
    for chosen in range(1, 2 ** len(every)):
        functions = {each for place, each in enumerate(every) if chosen >> place & 1}
        found = dimension(functions, size, labels)
        rest = {each[1:] for each in functions}
        holds = holds and len(functions) <= size**found * labels ** (2 * found)
        total = len(rest)
        for a, b in combinations(range(labels), 2):
            both = {each for each in rest if (a, *each) in functions and (b, *each) in functions}
            holds = holds and (not both or dimension(both, size - 1, labels) <= found - 1)
            total += len(both)
        holds = holds and len(functions) <= total
        tried += 1
print(f"all {tried} classes on 2 and 3 points: |H| <= |H'| + sum |H_ab|, dimensions fall, |H| <= m^d k^(2d)")

steps = product(range(2, 40), range(1, 12))
chain = all((m - 1) ** d + Fraction((m - 1) ** (d - 1), 2) <= m**d for m, d in steps)
print(f"the induction's step, divided by k^(2d), up to m = 39, d = 11: {chain}")
print("proved: Natarajan's lemma" if holds and chain else "not proved")
sys.exit(not (holds and chain))
