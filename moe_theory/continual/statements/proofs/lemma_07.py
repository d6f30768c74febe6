"""Lemma 7: up to T1, the sizes are right for any signal, and the signs for the arriving task's own signal.

Claim. Up to T1 a step (9) changes the chosen expert's output for v_n by O(sigma_0), and any other's by O(sigma_0/M).
(a) It moves the output of m by -eta c pi (1[m = m_t] - pi_m) z'v_n. Here z is the features' sum, pi is m_t's softmax, c
= |dw| + alpha M f/t. (b) By Pythagoras |w_t|^2 <= |w_{t-1}|^2 + W^2 for the longest ground truth W. An expert has had
at most T1 - 1 <= M/eta arrivals. So |dw| <= W (1 + sqrt(M/eta)), eta c <= eta alpha M + W (eta + sqrt(eta M)).

(c) While outputs are at most 1 a softmax is at most e^2/M. So S = sum |theta_m|^2 grows by at most 2 e^2 eta c lambda/M
+ 2 e^4 (eta c |z|/M)^2. Up to T1 it is O(sigma_0^2 + sigma_0^2.25 ln M), and outputs stay small. (d) With z'v_n = O(1)
the changes are O(eta c/M) and O(eta c/M^2).

Signs. For n = n_t, z'v_n = beta |v_n|^2 + v_n'(noise). If it is above 0, the chosen output falls and all others rise.
This is so if s = 1 or sigma_t = 0, and up to probability o(1) if sigma_t = o(beta).

Robust: The proof allows any eta, alpha and lambda below their orders, any routes, signals, s and Gamma, and any M
unless ln M outgrows sigma_0^-2.25. In the paper's proof of Lemma 5, w_n is N(0, sigma_0^2), so W = O(sigma_0). |z'v_n|
= O(1) is the paper's |X|_inf = O(1). For other signals z'v_n may have either sign.
"""

import sys
from fractions import Fraction

import sympy as sp

# The effect of a step along - d(loss)/d(gate) on the softmax of any two experts, by definition. The loss is c pi.
first, second, rest, cost, eta, inner = sp.symbols("e1 e2 rest c eta zv", positive=True)
total = first + second + rest
pi, other = first / total, second / total
own = sp.factor(-eta * sp.diff(cost * pi, first) * first * inner)  # exp(h) has the derivative exp(h) z
off = -eta * sp.diff(cost * pi, second) * second * inner
left = [sp.cancel(own + eta * cost * pi * (1 - pi) * inner), sp.cancel(off - eta * cost * pi * other * inner)]
square, number = sp.symbols("E M", positive=True)  # E = e^2: a softmax is E/(E + M - 1) at most, e^2/M is no less
excess = square / number - square / (square + number - 1)
left.append(sp.cancel(excess - square * (square - 1) / number / (square + number - 1)))
old, new, away = sp.symbols("old new away", real=True)
# |w_t|^2 + |P w_{t-1}|^2 = |w_{t-1}|^2 + |P w_n|^2, in coordinates of the span and of its complement
left.append(sp.expand((new**2 + away**2) + old**2 - (old**2 + away**2) - new**2))

W, HALF = Fraction(1), Fraction(1, 2)  # exponents of sigma_0: |w|; eta and alpha
sizes = {"eta alpha M": 2 * HALF, "W eta": W + HALF, "W sqrt(eta M)": W + HALF / 2}
experts = {"eta alpha M": Fraction(1), "W eta": Fraction(0), "W sqrt(eta M)": HALF}  # of M
LAMBDA = Fraction(5, 4)
energy = {"W": LAMBDA + W, "eta alpha M": LAMBDA + 2 * HALF, "W^2": HALF + 2 * W, "alpha^2": 4 * HALF}  # as in Lemma 9
at_one, at_other = (max(experts.values()) - power for power in (1, 2))  # pi = O(1/M), and pi pi_m = O(1/M^2)
print(f"identities, each 0: {', '.join(map(str, left))}")
print(f"signs where z'v > 0: chosen {'falls' if own.is_negative else '?'}, others {'rise' if off.is_positive else '?'}")
print(f"outputs up to T1 are O(sigma_0^{min(energy.values()) / 2}), for any fixed M")
print(f"the chosen one's change is O(sigma_0^{min(sizes.values())} M^{at_one}); printed: O(sigma_0)")
print(f"another's is O(sigma_0^{min(sizes.values())} M^{at_other}); printed: O(M^-1 sigma_0)")
is_proved = set(left) == {0} and min(sizes.values()) == 1 and (at_one, at_other) == (0, -1)
is_proved = is_proved and min(energy.values()) > 0 and own.is_negative and off.is_positive
print("proved: O(sigma_0), O(sigma_0/M), and both signs for the own signal" if is_proved else "not proved")
sys.exit(not is_proved)
