"""Lemma 1, Eqs. (9) and (10).

Let X have full column rank, as with one column, or with noise and s <= p. Let w0 be the model before, and w* = w0 + X
(X'X)^-1 (y - X'w0). Then X'w* = X'w0 + y - X'w0 = y: it fits. Any other w that fits is w* + z with X'z = 0, and w* -
w0 = X a for an a. So |w - w0|^2 = |w* - w0|^2 + |z|^2 + 2 z'X a, and z'X = 0: w* is nearer to w0 than any other. (10)
is the rule that only the server of a task learns it: where one task is done a round, no other model moves then.

Caveat: X'X is taken to be invertible, and one task to be done a round. Where two servers end in the same round (9) for
either contradicts (10) for the other; read as "not by this task" (10) holds there too.
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
