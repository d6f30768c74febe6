"""Lemma 2 for two experts, in rational numbers: routing probabilities move by far more than lambda M^2 allows.

r_1 - r_2 has a triangular density on [-lambda, lambda], so that expert 1 is chosen with probability
1 - (1 - g / lambda)^2 / 2 if its output is ahead by g, 0 <= g <= lambda. Exits 0 if the stated bound is exceeded.
"""

import sys
from fractions import Fraction

EXPERTS = 2  # M


def chosen_first(gap: Fraction, perturbation: Fraction) -> Fraction:
    return 1 - (1 - gap / perturbation) ** 2 / 2


print("Outputs h = (0, 0) and h^ = (x, -x) with x = lambda / 8:")
is_violated, is_repaired = True, True
for perturbation in (Fraction(1, 2), Fraction(1, 50), Fraction(1, 10000)):  # lambda
    change = perturbation / 8  # |h - h^|
    moved = chosen_first(2 * change, perturbation) - chosen_first(Fraction(0), perturbation)
    stated, turned, sharp = (
        each * change for each in (perturbation * EXPERTS**2, EXPERTS**2 / perturbation, 2 / perturbation)
    )
    print(f"lambda = {perturbation}: |p - p^| = {moved}, stated: at most lambda M^2 x = {stated}")
    print(f"    M^2 x / lambda = {turned}, and the sharp bound 2 x / lambda = {sharp}")
    is_violated &= moved > stated
    is_repaired &= moved <= sharp <= turned
print("Exceeded, and not with M^2 / lambda." if is_violated and is_repaired else "Not as said.")
sys.exit(0 if is_violated and is_repaired else 1)
