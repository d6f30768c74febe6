"""Lemma 2 holds with 2/lambda in place of lambda M^2, and no smaller constant suffices.

Claim. If outputs move by at most e, every probability moves by at most 2 e/lambda, for any M. As M^2 >= 2 for M >= 2
and p = 1 for M = 1, the printed bound holds with M^2/lambda in place of lambda M^2.

Proof. Fix m and the perturbations of all others. Expert m is chosen if r_m exceeds the threshold max_{j != m} (h_j +
r_j) - h_m. This threshold moves by at most 2 e. Here r_m is independent of it and has density at most 1/lambda.

The constant is sharp. Let all outputs be equal, raise output m by e, and lower all others by e. With x = 2 e/lambda, m
is chosen if no other perturbation exceeds r_m by x lambda. So p_m = x + (1 - x^M)/M = 1/M + x - x^M/M for x <= 1. The
move of p_m divided by e tends to 2/lambda as e falls.

Robust: The proof allows any lambda, M and size of the outputs, and any number may move. Ties have probability 0.
"""

import sys

import sympy as sp

x, u = sp.symbols("x u", positive=True)
WIDTH = sp.Rational(1, 50)  # lambda


def share(number: int) -> sp.Expr:
    """p of one of `number` equal experts, raised by x lambda: r_m = u lambda, others below u + x."""
    return sp.integrate((u + x) ** (number - 1), (u, 0, 1 - x)) + sp.integrate(1, (u, 1 - x, 1))


checks = []
for number in (2, 3, 5):
    moved = sp.expand(share(number) - sp.Rational(1, number))
    checks.append(sp.expand(moved - x + x**number / number) == 0)  # at most x = 2 e / lambda, for every x in [0, 1]
    checks.append(sp.limit(moved / x, x, 0) == 1)  # and no constant below 2 / lambda suffices
    slope = moved.subs(x, sp.Rational(1, 4)) / (WIDTH / 8)
    checks.append(WIDTH * number**2 < slope <= 2 / WIDTH <= number**2 / WIDTH)
    print(f"M = {number}, lambda = 1/50, a move of lambda/8: slope {slope}, lambda M^2 is {WIDTH * number**2}")
print("proved: at most 2/lambda, attained in the limit" if all(checks) else "not proved")
sys.exit(not all(checks))
