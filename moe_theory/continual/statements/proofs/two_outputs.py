"""Counterexample to Lemma 2: a probability changes by 7/32, although the lemma allows at most 1/5000.

Proof. Take two experts, lambda = 1/50, outputs h = (0, 0) and then h^ = (lambda/8, -lambda/8). (a) At h each expert is
chosen with probability 1/2. (b) At h^ the second is chosen if r_2 exceeds r_1 by more than lambda/4. In the square of
side lambda this is a triangle with two sides of 3/4 lambda. Its share is (3/4)^2/2 = 9/32. So a probability moves by
7/32. (c) The largest difference of outputs is lambda/8 = 1/400, and lambda M^2/400 = 1/5000.

Robust: Any lambda below 7^.5/4 will do, because then 7/32 > lambda^2/2. With M experts and all others lower by more
than lambda, any lambda below 7^.5/(2 M) will do. Algorithm 1 has such a lambda for fixed M and small sigma_0.

Objection: The constant is a slip, because the last step has lambda in place of 1/lambda. With M^2/lambda or 2/lambda it
holds.
"""

import sys
from fractions import Fraction

WIDTH, EXPERTS = Fraction(1, 50), 2  # lambda and M


def chances(outputs: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """p of (1): the areas of the square of r_1 and r_2 in which each of the two is chosen."""
    lead = outputs[0] - outputs[1]
    second = max(WIDTH - abs(lead), Fraction(0)) ** 2 / 2 / WIDTH**2
    return (1 - second, second) if lead >= 0 else (second, 1 - second)


before, after = (Fraction(0), Fraction(0)), (WIDTH / 8, -WIDTH / 8)
moved = max(abs(one - other) for one, other in zip(chances(before), chances(after), strict=True))
apart = max(abs(one - other) for one, other in zip(before, after, strict=True))
printed = WIDTH * EXPERTS**2 * apart
print(f"probabilities move by {moved}; printed: {printed} at most; with M^2/lambda {EXPERTS**2 / WIDTH * apart}")
print("violated: they move by more" if moved > printed else "not violated")
sys.exit(moved <= printed)
