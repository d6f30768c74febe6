"""Lemma 7: one step of the gates up to T1, for any signal; its sign for the arriving task's own signal.

The step (9) moves the output of expert m for v_n by -eta c pi (1[m = m_t] - pi_m) z'v_n: z the features' sum, pi the
softmax of m_t, c = |dw| + alpha M f/t. By Pythagoras |w_t|^2 <= |w_{t-1}|^2 + W^2, W the longest truth; an expert has
had at most T1 - 1 <= M/eta arrivals, so |dw| <= |w_n| + |w_{t-1}| <= W (1 + sqrt(M/eta)), and eta c <= eta alpha M +
W (eta + sqrt(eta M)), which by Algorithm 1's orders and W = O(sigma_0) is O(sigma_0).

The chosen one: pi (1 - pi) <= 1/4 and |z'v_n| = O(1), so O(sigma_0). Another: as Lemma 9's proof has it, outputs tend
to 0 for M = o(1/sigma_0); once they are at most 1 a softmax is at most e^2/M, so O(sigma_0/M).

Signs: for n = n_t, z'v_n = beta |v_n|^2 + v_n'(noise). Where it is above 0 the chosen one's output falls and all
others' rise: always if s = 1 or sigma_t = 0, and but for chance o(1) if sigma_t = o(beta).

Robust: any eta, alpha below their orders, routes, signals, s, Gamma, lambda. W = O(sigma_0), as truths are N(0,
sigma_0^2) in the paper's proof of Lemma 5. |z'v_n| = O(1) is the paper's |X|_inf = O(1). For other signals only the
size is shown: z'v_n may have either sign.
"""

import sys
from fractions import Fraction

import sympy as sp

# Softmax of any two experts, from its definition: what a step along - d(loss)/d(gate) does, the loss being c pi.
first, second, rest, cost, eta, inner = sp.symbols("e1 e2 rest c eta zv", positive=True)
total = first + second + rest
pi, other = first / total, second / total
own = sp.factor(-eta * sp.diff(cost * pi, first) * first * inner)  # exp(h) has the derivative exp(h) z
off = -eta * sp.diff(cost * pi, second) * second * inner
left = [sp.cancel(own + eta * cost * pi * (1 - pi) * inner), sp.cancel(off - eta * cost * pi * other * inner)]
p, old, new, away = sp.symbols("p old new away", real=True)
left.append(sp.expand(Fraction(1, 4) - p * (1 - p) - (sp.Rational(1, 2) - p) ** 2))
# |w_t|^2 + |P w_{t-1}|^2 = |w_{t-1}|^2 + |P w_n|^2, in coordinates of the span and of its complement
left.append(sp.expand((new**2 + away**2) + old**2 - (old**2 + away**2) - new**2))

W, HALF = Fraction(1), Fraction(1, 2)  # exponents of sigma_0: |w|; eta and alpha
sizes = {"eta alpha M": 2 * HALF, "W eta": W + HALF, "W sqrt(eta M)": W + HALF / 2}
experts = {"eta alpha M": 1 - 2, "W eta": 0 - 2, "W sqrt(eta M)": HALF - 2}  # of M, with pi pi_m = O(M^-2)
print(f"identities, each 0: {', '.join(map(str, left))}")
print(f"signs where z'v > 0: chosen {'falls' if own.is_negative else '?'}, others {'rise' if off.is_positive else '?'}")
print(f"the chosen one's change is O(sigma_0^{min(sizes.values())}); printed: O(sigma_0)")
print(f"another's is O(sigma_0^{min(sizes.values())} M^{max(experts.values())}); printed: O(M^-1 sigma_0)")
is_proved = set(left) == {0} and min(sizes.values()) == 1 and max(experts.values()) == -1
is_proved = is_proved and own.is_negative and off.is_positive
print("proved: O(sigma_0), O(sigma_0/M), and both signs for the own signal" if is_proved else "not proved")
sys.exit(not is_proved)
