"""Lemma 8 holds if the perturbation outweighs the outputs.

Claim. Let e = 2 max |h|/lambda, with e <= eta^.5/M and eta <= 1. With probability 1 - delta one expert's share is
within O(eta^.5/M) of 1/M, as printed. With the same probability all shares are within O(eta^.5 M^-.5) of 1/M.

Proof. (a) By Lemma 2 with 2/lambda, an expert's probability given the past and the arrival is within e of 1/M. (b) So
f_{T1} - 1/M is within e of a mean of T1 martingale differences with conditional variance at most 1/M + e. (c) By
Chebyshev one share is within e + ((1/M + e)/(T1 delta))^.5 of 1/M except with probability delta. By a union bound with
delta/M for each expert, all are within e + ((1 + M e)/(T1 delta))^.5. (d) T1 >= M/eta gives the claim. Equal
probabilities (e = 0) have the variance (1/M)(1 - 1/M)/T1. Independence is not needed.

Robust: The proof allows any distribution and order of the tasks, any signals and any costs. It does not matter why
outputs stay small relative to lambda. Algorithm 1's lambda = Theta(sigma_0^1.25) does not suffice if eta and alpha are
of exact order sigma_0^.5, because the first step moves an output by order eta alpha.
"""

import sys
from fractions import Fraction
from itertools import product

import sympy as sp


def variance(experts: int, rounds: int) -> Fraction:
    """E (f - 1/M)^2 of one expert, over all routes."""
    routes = list(product(range(experts), repeat=rounds))
    gaps = [Fraction(route.count(0), rounds) - Fraction(1, experts) for route in routes]
    return sum(gap**2 for gap in gaps) / len(routes)


checks = []
for experts, rounds in ((2, 5), (3, 5), (5, 4)):
    stated = Fraction(experts - 1, experts**2 * rounds)
    checks.append(variance(experts, rounds) == stated <= Fraction(1, experts * rounds))
    print(f"M = {experts}, {rounds} rounds: variance {variance(experts, rounds)}, (1/M)(1 - 1/M)/T1 = {stated}")

number, rate, delta, part = sp.symbols("M eta delta x", positive=True)
off = part * sp.sqrt(rate) / number  # e, with x <= 1
one = (1 / number + off) * rate / (number * delta)  # squared distance of one expert, T1 >= M/eta
union = (1 + number * off) * rate / (number * delta)  # of all
scales = sp.simplify(one / (rate / number**2)), sp.simplify(union / (rate / number))
checks.append(all(sp.simplify(each - (1 + part * sp.sqrt(rate)) / delta) == 0 for each in scales))
print(f"one expert's square over eta/M^2: {scales[0]}; all experts' over eta/M: {scales[1]}; both at most 2/delta")
print("proved: eta^.5/M for one expert, eta^.5 M^-.5 for all at once" if all(checks) else "not proved")
sys.exit(not all(checks))
