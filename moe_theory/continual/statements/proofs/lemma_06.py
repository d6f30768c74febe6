"""Lemma 6 holds up to sigma_0^-1.25 T1 rounds of gate updates: all gates are O(sigma_0^.5).

Let eta t <= 2 M sigma_0^-1.25. Proof. (a) Let S be the sum of all |theta_m|^2, z the features' sum, h_m = theta_m'z and
pi the softmax of m_t. A step (9) of cost c = |dw| + alpha M f/t changes S by -2 eta c pi sum_m pi_m (h_{m_t} - h_m) +
eta^2 c^2 pi^2 |z|^2 (..). The chosen expert trails others by at most lambda. So the first term is at most eta c
lambda/2, and the second is at most eta^2 c^2 |z|^2/8.

(b) By Pythagoras |w_t|^2 = |w_{t-1}|^2 - |P w_{t-1}|^2 + |P w_n|^2. Let W be the longest ground truth. Over t rounds
sum |dw|^2 <= 4 t W^2 and sum |dw| <= 2 t W for any routing. (c) With |z| <= Z, after t steps S <= eta t lambda W + eta
lambda alpha M (1 + ln t)/2 + eta^2 t Z^2 W^2 + (eta alpha M Z)^2/2.

(d) For W = O(sigma_0) and the orders of Algorithm 1 each term is O(sigma_0). Every entry of a gate is at most sqrt(S).

Robust: The proof allows any eta, alpha and Gamma below their orders, any signals, s and beta, M above or below N, and
all routes that (1) allows. In the paper's proof of Lemma 5, w_n is N(0, sigma_0^2), so W = O(sigma_0). Z = O(1) is the
paper's |X|_inf = O(1), and makes a gate O(sigma_0) at T1. Gaussian noise of constant level has Z^2 = O(ln 1/sigma_0).
Then O(sigma_0^.5) still holds, and at T1 a gate is O(sigma_0 sqrt(ln 1/sigma_0)). Once outputs are below 1, pi is 1/M
up to a factor e^2, so S does not depend on M, up to ln M.

Caveat: Gates are updated at most sigma_0^-1.25 T1 times. The paper's longest stage, t2, is sigma_0^-.75 T1, and its own
proof allows sigma_0^-.5 T1. For gates that never stop, or an even longer T, this decides nothing.
"""

import sys
from fractions import Fraction

import sympy as sp

# The change of S in one step as two terms, for three experts of which the first is chosen.
p, q, eta, cost, z = *sp.symbols("p q eta c", positive=True), sp.Matrix(sp.symbols("z1 z2", real=True))
softmax = (p, q, 1 - p - q)
gates = [sp.Matrix(sp.symbols(f"a{m} b{m}", real=True)) for m in range(3)]
steps = [-eta * cost * p * (int(m == 0) - softmax[m]) * z for m in range(3)]
change = sum((gate + step).dot(gate + step) - gate.dot(gate) for gate, step in zip(gates, steps, strict=True))
lead = sum(softmax[m] * (gates[0] - gates[m]).dot(z) for m in range(3))
square = (1 - p) ** 2 + q**2 + (1 - p - q) ** 2
left = [sp.expand(change + 2 * eta * cost * p * lead - (eta * cost * p) ** 2 * z.dot(z) * square)]
left.append(sp.expand(2 * (1 - p) ** 2 - square - 2 * q * (1 - p - q)))  # the last is 0 or more
left.append(sp.expand(sp.Rational(1, 4) - p * (1 - p) - (sp.Rational(1, 2) - p) ** 2))
old, new, off = sp.symbols("old new off", real=True)  # P w, P w_n, and what a move leaves as it was
left.append(sp.expand(2 * new**2 + 2 * old**2 - (new - old) ** 2 - (new + old) ** 2))
left.append(sp.expand((new**2 + off**2) - ((old**2 + off**2) - old**2 + new**2)))
# Exponents of sigma_0 of the terms of S at the largest orders allowed, eta t = O(sigma_0^-grown); logarithms aside.
W, LAMBDA, HALF, grown = Fraction(1), Fraction(5, 4), Fraction(1, 2), Fraction(5, 4)
terms = [LAMBDA + W - grown, 2 * HALF + LAMBDA, HALF + 2 * W - grown, 4 * HALF]
print(f"identities, each 0: {', '.join(map(str, left))}")
print(f"after sigma_0^-{grown} T1 rounds S is O(sigma_0^{min(terms)}), a gate's entry O(sigma_0^{min(terms) / 2})")
is_proved = set(left) == {0} and min(terms) / 2 >= HALF
print("proved: O(sigma_0^.5) up to sigma_0^-1.25 T1 rounds" if is_proved else "not proved")
sys.exit(not is_proved)
