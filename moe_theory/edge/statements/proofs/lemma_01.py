"""Lemma 1, Eqs. (9) and (10), holds if X'X is invertible and at most one task ends per round.

Let X have full column rank, as with one column, or with noise and s <= p. Let w0 be the model before the task, and w* =
w0 + X (X'X)^-1 (y - X'w0). Then X'w* = X'w0 + y - X'w0 = y, so w* fits the task.

Any other model that fits is w* + z with X'z = 0, and w* - w0 = X a for some a. So |w - w0|^2 = |w* - w0|^2 + |z|^2 + 2
z'X a, and z'X = 0. Hence w* is nearer to w0 than any other model that fits. By (10) only the server of a task learns
it. So if one task ends in a round, no other model changes.

Caveat: X'X is invertible, and one task ends per round. If two servers end in the same round, (9) for one contradicts
(10) for the other. If (10) means "not by this task", it also holds there.
"""

import sys

from sympy import Matrix, expand, symbols

FEATURES, SAMPLES = 3, 2
columns = Matrix(FEATURES, SAMPLES, symbols("x:6"))
missed = Matrix(symbols("e:2"))  # y - X'w0
gram = columns.T * columns
change = columns * gram.adjugate() * missed  # (w* - w0) det X'X
fits = (columns.T * change - gram.det() * missed).applyfunc(expand)
print(f"det X'X (X'w* - y) = {fits[0]}, {fits[1]}")
across = columns[:, 0].cross(columns[:, 1])  # spans all z with X'z = 0
kept = (columns.T * across).applyfunc(expand)
combination, step = columns * Matrix(symbols("a:2")), symbols("c") * across
longer = expand(((combination + step).T * (combination + step) - combination.T * combination - step.T * step)[0])
print(f"X'z = {kept[0]}, {kept[1]}; |X a + z|^2 - |X a|^2 - |z|^2 = {longer}")
holds = fits == Matrix([0, 0]) and kept == Matrix([0, 0]) and longer == 0
print("proved: (9) is the nearest model that fits" if holds else "not proved")
sys.exit(not holds)
