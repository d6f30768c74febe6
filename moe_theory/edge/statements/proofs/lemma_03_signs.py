"""Lemma 3, both cases, holds without noise in the features, if one task ends per round.

Without noise sum_i X_i = beta v with 0 < beta <= C. Let one task end in a round, at server k = m_t. By (24) to (26) the
output of k along v changes by -eta |dw| pi_k (1 - pi_k) beta |v|^2, and the output of another server m by eta |dw| pi_k
pi_m beta |v|^2. Probabilities are positive, so the output of k falls and all others rise whenever the model changes.

Sizes. Suppose |dw| <= A sigma_0. As pi (1 - pi) <= 1/4, the step of k has size at most (eta A C |v|^2/4) sigma_0.
Suppose that outputs are at most B in size, so pi <= e^(2B)/M. Then any other step is at most eta A C |v|^2 e^(4B)
sigma_0/M^2, which is O(sigma_0/M).

Caveat: for the sizes we assume bounded outputs and model updates of O(sigma_0), as for |w_n| = O(sigma_0) with fixed
signals. The paper's proof has |dw| = sigma_0, and by Lemma 4 outputs are o(1).
"""

import sys

from sympy import Rational, cancel, symbols

rate, move, beta, square, own, other = symbols("eta dw beta v2 pi_k pi_m", positive=True)
h, rest, mine = symbols("a_m rest a_k", positive=True)  # exponentials of outputs: pi = a / (a_k + a_m + rest)
whole = mine + h + rest
values = {own: mine / whole, other: h / whole}
own_step = -rate * move * own * (1 - own) * beta * square
other_step = -rate * move * own * (0 - other) * beta * square
signs = own_step.subs(values).factor().is_negative, other_step.subs(values).factor().is_positive
print(f"own step negative: {signs[0]}, other steps positive: {signs[1]}")
left = cancel(own * (1 - own) - (Rational(1, 4) - (own - Rational(1, 2)) ** 2))
print(f"pi (1 - pi) - (1/4 - (pi - 1/2)^2) = {left}")
low, count = symbols("low M", positive=True)  # e^-B: every exponential is between low and 1/low
largest = {own: low**-2 / count, other: low**-2 / count}
size = cancel(other_step.subs(largest) - rate * move * beta * square * low**-4 / count**2)
print(f"another step there, less eta |dw| beta |v|^2 e^(4B)/M^2 = {size}")
holds = signs == (True, True) and (left, size) == (0, 0)
print("proved: signs and sizes are as stated" if holds else "not proved")
sys.exit(not holds)
