"""Theorem 1 and Eqs. (13) to (15), corrected: masks are counted with the sample held fixed.

Let the loss be in [0, 1], Gamma(m) the largest number of patterns of masks on m inputs, and rho the largest R_S(F_mu)
over samples and patterns. No mask is chosen beforehand.

(a) One sample changes sup (L_D - L_S) and sup (L_S - L_D) by at most 1/m. By McDiarmid's inequality each exceeds its
mean by sqrt(log(2/delta)/(2m)) with probability at most delta/2.

(b) A second sample and exchanges (Lemma 8) bound either mean by 2 E R_S(l o F).

(c) On S, the class F is the union of the F_mu over Gamma(m) patterns. Let Z_mu be sup (1/m) sum s_i l_i(f) less the
mean of s_i/2. One sign changes Z_mu by at most 1/m, so E exp(t (Z_mu - E Z_mu)) <= exp(t^2/(8m)), and E max Z_mu <= max
E Z_mu + log Gamma/t + t/(8m). At t = sqrt(8 m log Gamma) the last two terms are sqrt(log Gamma/(2m)).

(d) E Z_mu = R_S(l o F_mu) <= C rho (Lemma 9). Together, with probability 1 - delta the gap is at most 2 C rho + 2
sqrt(log Gamma(m)/(2m)) + sqrt(log(2/delta)/(2m)).
"""

import sys
from fractions import Fraction
from itertools import combinations, product

import sympy

m, t, L = sympy.symbols("m t L", positive=True)  # L = log Gamma
spread = m * (1 / m) ** 2 / 8 * t**2 - t**2 / (8 * m)  # m signs, each with an interval of length 1/m
best = (L / t + t / (8 * m)).subs(t, sympy.sqrt(8 * m * L))
slope = sympy.diff(L / t + t / (8 * m), t).subs(t, sympy.sqrt(8 * m * L))
holds = all(sympy.simplify(each) == 0 for each in (spread, best - sympy.sqrt(L / (2 * m)), slope))
print(f"the exponent over m signs, and the least value, at t = sqrt(8 m log Gamma), are as given: {holds}")

# The corrected (15), for pairs of classes of up to two losses in {0, 1} on three samples.
SAMPLES, LOG_2 = 3, Fraction(69, 100)  # below log 2, as exp(69/100) < 2
assert sum(LOG_2**n / [1, 1, 2, 6, 24, 120][n] for n in range(6)) + LOG_2**6 / 360 < 2
signs = list(product((-1, 1), repeat=SAMPLES))
losses = list(product((0, 1), repeat=SAMPLES))
classes = [(one,) for one in losses] + list(combinations(losses, 2))
tops = [
    [max(sum(s * a for s, a in zip(sign, loss, strict=True)) for loss in each) for sign in signs] for each in classes
]
closest = Fraction(0)
for one, two in combinations(tops, 2):
    union = Fraction(sum(map(max, one, two)), SAMPLES * len(signs))
    parts = Fraction(max(sum(one), sum(two)), SAMPLES * len(signs))
    closest = max(closest, union - parts)
print(
    f"two masks, m = {SAMPLES}: the excess squared is at most {closest**2}; allowed is at least {LOG_2 / (2 * SAMPLES)}"
)
holds = holds and closest**2 <= LOG_2 / (2 * SAMPLES)
print("proved: the bound with rho and Gamma(m)" if holds else "not proved")
sys.exit(not holds)
