"""Lemmas 5 and 14: gradients past T1, up to logarithms, since models stay of the truths' order.

Gradients are c pi (1[m = m_t] - pi_m) z, pi the softmax of m_t, c = |dw| + alpha M f/t: c Z/4 at most, and the chosen
one's less another's c Z/2, |z| <= Z. As t > T1 >= M/eta, alpha M f/t <= alpha eta. And |dw| = |P (w_n - w)| <= W + |w|,
W the longest truth. So it is to be shown that models stay O(W) = O(sigma_0).

s = 1: spans are N lines. A model is linear in the truths, bounded for all orders of tasks (Aharoni, Duchet and Wajnryb
1984, on hyperplanes), so by K W, K of the signals alone (uniform boundedness).

s >= 3: the gates see the noise columns through their sum only. Rotate the columns: s - 2 are independent of all routes,
so that |w'|^2 <= |w|^2 - |Q w|^2 + W^2, E |Q w|^2 = b |w|^2, b = (s - 2)/d. For exp(a W^2) = 1 + b/2, by convexity u =
E exp(a |w|^2) has u' <= (1 + b/2)((1 - b) u + b) <= 2 if u <= 2. So all |w|^2 up to T are at most W^2 ln(2 M T/delta)/
ln(1 + b/2), except with probability delta.

Robust: any routes, lambda, Gamma, signals; any eta, alpha below their orders; t without end. W = O(sigma_0), as truths
are N(0, sigma_0^2) in the paper's proof of Lemma 5. Z = O(1) is the paper's |X|_inf = O(1). In mean square over the
rounds |dw| <= 2 W for every s, on every path, by Pythagoras. If s = 2 the gates see the one noise column g, but it
moves a route only where two of h + r are within 2 |theta'g| = O(sigma_0^2) for sigma_t = O(sigma_0): gates are
O(sigma_0) up to t1. That is a share O(sigma_0^.75) of the rounds, O(1) of them up to t1, logarithms aside; each adds
W^2 to |w|^2 at most, and all others contract as above with b = 1/d.

Caveat: over T rounds the bound is O(sigma_0 (ln T/sigma_0)^.5) if s >= 2, and s = 2 is covered up to t1, for sigma_t =
O(sigma_0). If s = 1, K depends on the signals.
"""

import sys
from fractions import Fraction

import sympy as sp

p, q, b, u, share, high = sp.symbols("p q b u B E", positive=True)
left = {
    "1/4 - p(1 - p) is a square": Fraction(1, 4) - p * (1 - p) - (sp.Rational(1, 2) - p) ** 2,
    # of m_t and another: p (1 - p) + p q, at most 2 p (1 - p) as q <= 1 - p
    "the gap of two gradients": p * (1 - p) + p * q + p * (1 - p - q) - 2 * p * (1 - p),
    # u' <= 2: what is left below 2 is b^2/2, at u = 2
    "the fixed point": 2 - (1 + b / 2) * ((1 - b) * 2 + b) - b**2 / 2,
    "u' rises with u": sp.diff((1 + b / 2) * ((1 - b) * u + b), u) - (1 + b / 2) * (1 - b),
    # x -> E^x on [0, 1] lies below its chord, as its second derivative ln(E)^2 E^x is 0 or more
    "the chord at 0": (share * high + 1 - share).subs(share, 0) - 1,
    "the chord at 1": (share * high + 1 - share).subs(share, 1) - high,
}
# Rotating three noise columns keeps their span, and turns their sum into the first: (1, 1, 1) R = (sqrt(3), 0, 0).
three, two, six = sp.sqrt(3), sp.sqrt(2), sp.sqrt(6)
turn = sp.Matrix([[1 / three, 1 / two, 1 / six], [1 / three, -1 / two, 1 / six], [1 / three, 0, -2 / six]])
seen = sp.ones(1, 3) * turn
for name, identity in left.items():
    print(f"{name}: {sp.expand(identity)}")
print(f"the sum of three columns in rotated ones: {', '.join(map(str, seen))}")
print(f"of s = 4 samples in d = 10 the gates see 2; b = {Fraction(4 - 2, 10)}, exp(a W^2) = {1 + Fraction(1, 10)}")
is_proved = {sp.expand(each) for each in left.values()} == {0} and turn.T * turn == sp.eye(3)
is_proved = is_proved and list(seen)[1:] == [0, 0]
print("proved: O(sigma_0), up to logarithms" if is_proved else "not proved")
sys.exit(not is_proved)
