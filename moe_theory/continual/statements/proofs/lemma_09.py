"""Lemma 9, strengthened: at T1 all gates are O(sigma_0).

Proof. (a) A step (9) is eta c pi (1[m = m_t] - pi_m) z. Here z is the features' sum, pi the softmax of m_t, and c =
|dw| + alpha M f / t. Let h_m = theta_m'z. (b) The sum S of all |theta_m|^2 changes by -2 eta c pi sum_m pi_m (h_{m_t} -
h_m) <= 2 eta c pi (1 - pi) lambda. The reason is that the chosen expert trails by at most lambda. S also changes by
eta^2 c^2 pi^2 |z|^2 (..), which is at most eta^2 c^2 |z|^2/8.

(c) By Pythagoras |w_t|^2 = |w_{t-1}|^2 - |P w_{t-1}|^2 + |P w_n|^2. Let W be the longest ground truth. Over t rounds
and all experts sum |dw|^2 <= 4 t W^2 and sum |dw| <= 2 t W for any routing. (d) T1 - 1 rounds have eta t <= M. With |z|
<= Z and 1 + ln y <= 2 sqrt(y), S <= M lambda W + lambda alpha M sqrt(eta M) + eta M Z^2 W^2 + (eta alpha M Z)^2/2.

(e) By Algorithm 1's orders and W = O(sigma_0), S is O(sigma_0^2). So two gates are within sqrt(2 S) = O(sigma_0) in
every entry, and sigma_0 <= eta^-.5 sigma_0.

Robust: The proof allows any eta, alpha and Gamma below their orders, any signals, s and beta, and all routes that (1)
allows. In the paper's proof of Lemma 5, w_n is N(0, sigma_0^2), so W = O(sigma_0). Z = O(1) is the paper's |X|_inf =
O(1). Gaussian noise of constant level has Z^2 = O(ln 1/sigma_0) over T1 rounds, which the lemma's factor eta^-.5
absorbs. Once outputs are below 1, pi is 1/M up to a factor e^2. Then S does not depend on M, up to ln M.
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
# The other shares add up to 1 - p, so their squares add up to at most (1 - p)^2. p (1 - p) is at most 1/4.
left.append(sp.expand(2 * (1 - p) ** 2 - square - 2 * q * (1 - p - q)))
left.append(sp.expand(Fraction(1, 4) - p * (1 - p) - (sp.Rational(1, 2) - p) ** 2))
# |P(w_n - w)|^2 <= 2 |P w_n|^2 + 2 |P w|^2, and the model's length by Pythagoras, in coordinates of span and complement
old, new, off = sp.symbols("old new off", real=True)
left.append(sp.expand(2 * new**2 + 2 * old**2 - (new - old) ** 2 - (new + old) ** 2))
left.append(sp.expand((new**2 + off**2) - ((old**2 + off**2) - old**2 + new**2)))
# Exponents of sigma_0 at the largest orders allowed.
W, LAMBDA, HALF = Fraction(1), Fraction(5, 4), Fraction(1, 2)  # |w|, lambda; eta and alpha
terms = [LAMBDA + W, LAMBDA + HALF + HALF / 2, HALF + 2 * W, 2 * (HALF + HALF)]
print(f"identities, each 0: {', '.join(map(str, left))}")
print(f"S is O(sigma_0^{min(terms)}), so gates differ by O(sigma_0^{min(terms) / 2})")
print(f"printed: O(eta^-.5 sigma_0), at least sigma_0^{1 - HALF / 2}")
is_proved = set(left) == {0} and min(terms) / 2 == 1 > 1 - HALF / 2
print("proved: O(sigma_0), and so O(eta^-.5 sigma_0)" if is_proved else "not proved")
sys.exit(not is_proved)
