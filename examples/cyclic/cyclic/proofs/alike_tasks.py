"""Two tasks in turn after two rounds: those at cosine 4/5 have forgotten more than those at 5/13, which are farther
apart.

w* is orthogonal to the first task, so that the error is w* after its round; the second leaves its part along (-b, a),
whose square is a^2, and of that the first sees b^2. Half of the rounds were the first's.

Robust: any two angles whose sines and cosines are both exchanged.

Objection: at later rounds the order turns. It is stated for every round; where k is large, near pairs have forgotten
more still.
"""

import sys
from fractions import Fraction


def forgetting(a, b):
    """Fraction(2) of unit vectors (1, 0) and (a, b), with w* = (0, 1)."""
    error = (Fraction(0), Fraction(-1))
    along = a * error[0] + b * error[1]
    error = (error[0] - along * a, error[1] - along * b)
    return (error[0] ** 2 + (a * error[0] + b * error[1]) ** 2) / 2


near, far = forgetting(Fraction(4, 5), Fraction(3, 5)), forgetting(Fraction(5, 13), Fraction(12, 13))
print(f"stated: Fraction(2) at cosine 4/5 is at most Fraction(2) at cosine 5/13; exact: {near} and {far}")
is_violated = near > far
print("violated: the nearer pair has forgotten more" if is_violated else "not violated")
sys.exit(not is_violated)
