"""The remark on Theorem 1, corrected: the sum of nu_1 rho^(h_t) is O(T^a (log T)^(1 - a)) with a above 1/2.

Let B = (C^2/nu_1^2) log(T/delta) and delta <= 1. A leaf at depth h is pulled at most B rho^(-2h) + 1 times, because the
first pull that brings it to its threshold splits it. There are 2^h leaves at depth h, and T pulls. So for every H the
sum of rho^(h_t) over slots is at most sum_{h<H} 2^h (B rho^(-2h) + 1) rho^h + T rho^H.

With q = 2/rho > 2 the first part is at most B q^H/(q - 1) + H + (2 rho)^H, up to a constant. Let H be the least with
(2/rho^2)^H >= T/B. Then q^H = rho^H (2/rho^2)^H <= rho^H 2 T/(B rho^2). So the sum is O(T rho^H) plus O(H + (2 rho)^H),
which is less. With b = log(1/rho)/log(2/rho^2), rho^H <= (T/B)^(-b), so T rho^H <= T^(1 - b) B^b. Now a = 1 - b is
log(2/rho)/log(2/rho^2), which is above 1/2. If leaves are pulled shallowest first and all meet the simplex, they need
that many pulls. So no smaller power holds for all picks.
"""

import sys
from fractions import Fraction

import sympy

rho = sympy.symbols("rho", positive=True)
a = sympy.log(2 / rho) / sympy.log(2 / rho**2)
b = sympy.log(1 / rho) / sympy.log(2 / rho**2)
total = sympy.simplify(sympy.expand_log(a + b - 1, force=True))
above = sympy.simplify(
    sympy.expand_log((a - sympy.Rational(1, 2)) * 2 * sympy.log(2 / rho**2) - sympy.log(2), force=True)
)
print(f"a + b - 1: {total}; (2a - 1) log(2/rho^2) - log 2: {above}")
holds = total == above == 0


def bound(slots: int, ratio: Fraction, last: int, least: Fraction) -> Fraction:
    """Return the bound on the sum for H = last and the constant B = least."""
    shallow = sum(2**h * (least / ratio ** (2 * h) + 1) * ratio**h for h in range(last))
    return shallow + slots * ratio**last


for ratio in (Fraction(3, 10), Fraction(1, 2), Fraction(9, 10)):
    slots, least = 10_000, Fraction(9)
    # leaves are pulled shallowest first until each is split, B held at its last value
    depth, left, found = 0, slots, Fraction(0)
    while left > 0:
        each = -(-least.numerator // (least.denominator * ratio ** (2 * depth)))  # the least whole number of pulls
        here = min(left, 2**depth * int(each))
        found, left, depth = found + here * ratio**depth, left - here, depth + 1
    last = min(h for h in range(99) if (2 / ratio**2) ** h >= slots / least)
    most = bound(slots, ratio, last, least)
    holds = holds and found <= min(bound(slots, ratio, h, least) for h in range(30)) <= most
    holds = holds and most <= (3 + 4 / ratio) * slots * ratio**last + 2**last
    print(f"rho = {ratio}: H = {last}, the sum of the worst picks is below {most}: {holds}")
print("proved: T^a (log T)^(1 - a)" if holds else "not proved")
sys.exit(not holds)
