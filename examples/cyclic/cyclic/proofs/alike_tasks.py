"""After two rounds in turn, tasks with cosine 4/5 have forgotten more than less similar tasks, with cosine 5/13.

w* is orthogonal to the first task, so after the first round the error is -w*. The second task (a, b) leaves only the
part of this error along (-b, a), whose square is a^2. The first task sees a share b^2 of this square. It had half of
the rounds, so F(2) = a^2 b^2 / 2.

Robust: any two angles whose sines and cosines are both exchanged.

Objection: in later rounds the order may turn. The statement is about every round, and for large k similar pairs have
forgotten even more.
"""

import sys
from fractions import Fraction


def forgetting(a, b):
    """Return F(2) of unit vectors (1, 0) and (a, b), with w* = (0, 1)."""
    error = (Fraction(0), Fraction(-1))
    along = a * error[0] + b * error[1]
    error = (error[0] - along * a, error[1] - along * b)
    return (error[0] ** 2 + (a * error[0] + b * error[1]) ** 2) / 2


near, far = forgetting(Fraction(4, 5), Fraction(3, 5)), forgetting(Fraction(5, 13), Fraction(12, 13))
print(f"claimed: F(2) at cosine 4/5 is at most F(2) at cosine 5/13, exact: {near} and {far}")
is_violated = near > far
print("violated: the more similar pair has forgotten more" if is_violated else "not violated")
sys.exit(not is_violated)
