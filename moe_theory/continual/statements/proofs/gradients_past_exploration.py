"""Lemmas 5 and 14: past T1, gradients have the order of the ground truths, up to logarithms.

Let W be the longest ground truth. (a) A gradient is c pi (1[m = m_t] - pi_m) z, pi = pi_{m_t}, c = |dw| + alpha M f/t.
If |z| <= Z, it is at most c Z/4, and two differ by at most c Z/2. (b) As t > T1 >= M/eta, alpha M f/t <= alpha eta. As
|dw| <= W + |w|, it remains to show |w| = O(W).

If s >= 3, routes depend only on the noises' sum. Rotate the columns, the sum first. Given past and route, the other s -
2, of span Q, stay Gaussian. So |w'|^2 <= |w|^2 - |Q w|^2 + W^2, E |Q w|^2 = b |w|^2, b = (s - 2)/d. Let exp(a W^2) = 1
+ b/2, and U_k = exp(a |w|^2) after an expert's k-th arrival, 0 if there is none. By convexity E U_k <= (1 + b/2)((1 -
b) E U_{k-1} + b) <= 2. A union bound over M T of these gives |w|^2 <= W^2 ln(2 M T/delta)/ln(1 + b/2) up to T, with
probability 1 - delta.

If s = 1, spans are N lines. A model is linear in the truths, at most K W for all orders of tasks, and K depends only on
the signals (Aharoni, Duchet, Wajnryb 1984).

Robust: The proof allows any lambda, Gamma and t, eta, alpha below their orders, and routes that depend on noise only
through its round's sum and past moves. For s >= 3 signals and sigma_t > 0 may be any. In the paper's proof of Lemma 5,
w_n is N(0, sigma_0^2) and |X|_inf = O(1), so W = O(sigma_0) and Z = O(1). In mean square over rounds |dw| <= 2 W.

Caveat: If s >= 2 the bound is O(sigma_0 (ln T/sigma_0)^.5). If s = 1, signals are fixed as sigma_0 falls. K may grow
without bound as two signals approach each other, like those of a cluster for M < N. The case s = 2 is proved up to t1
only, for fixed M, sigma_t = O(sigma_0) and eta of exact order sigma_0^.5. Gates are then O(sigma_0), as for Proposition
2's (12). Let g be the noise column. In a share O(sigma_0^.75) of the rounds, so in O(1) rounds, the two largest h + r
for the signal alone are within 2 |theta| |g|. In all other rounds g's direction does not affect the routing, so models
contract as above, with b = 1/d. Each of the few rounds multiplies exp(a |w|^2) by at most 1 + b/2.
"""

import sys
from fractions import Fraction

import sympy as sp

p, q, b, u, share, high = sp.symbols("p q b u B E", positive=True)
left = {
    "1/4 - p(1 - p) is a square": Fraction(1, 4) - p * (1 - p) - (sp.Rational(1, 2) - p) ** 2,
    # between m_t and another: p (1 - p) + p q, at most 2 p (1 - p) as q <= 1 - p
    "the gap of two gradients": p * (1 - p) + p * q + p * (1 - p - q) - 2 * p * (1 - p),
    # E U_k <= 2: what is left below 2 is b^2/2, at 2
    "the fixed point": 2 - (1 + b / 2) * ((1 - b) * 2 + b) - b**2 / 2,
    "the map rises": sp.diff((1 + b / 2) * ((1 - b) * u + b), u) - (1 + b / 2) * (1 - b),
    # x -> E^x on [0, 1] lies below its chord, as its second derivative ln(E)^2 E^x is 0 or more
    "the chord at 0": (share * high + 1 - share).subs(share, 0) - 1,
    "the chord at 1": (share * high + 1 - share).subs(share, 1) - high,
}
# Rotating three noise columns keeps their span, and turns their sum into the first: (1, 1, 1) R = (sqrt(3), 0, 0).
three, two, six = sp.sqrt(3), sp.sqrt(2), sp.sqrt(6)
turn = sp.Matrix([[1 / three, 1 / two, 1 / six], [1 / three, -1 / two, 1 / six], [1 / three, 0, -2 / six]])
seen = list(sp.ones(1, 3) * turn)
NOISE, GATES, LAMBDA, ETA = Fraction(1), Fraction(1), Fraction(5, 4), Fraction(1, 2)  # exponents of sigma_0
rare, rounds = GATES + NOISE - LAMBDA, -ETA - Fraction(1, 4)  # s = 2: share of rounds, and their number up to t1
print(f"each 0: {', '.join(f'{name} {sp.expand(each)}' for name, each in left.items())}")
print(f"the sum of three columns in rotated ones: {', '.join(map(str, seen))}")
print(f"s = 2: sigma_0^{rare} of sigma_0^{rounds} rounds, so sigma_0^{rare + rounds}")
is_proved = {sp.expand(each) for each in left.values()} == {0} and turn.T * turn == sp.eye(3)
is_proved = is_proved and seen[1:] == [0, 0] and rare + rounds >= 0
print("proved: O(sigma_0), up to logarithms" if is_proved else "not proved")
sys.exit(not is_proved)
