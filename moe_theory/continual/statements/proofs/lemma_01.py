"""Lemma 1 holds if noise is of order sigma_0 and both samples have the same strength.

Proof. (a) Both matrices carry the same beta v_n, so the signal's part cancels. So |h_m(X) - h_m(X~)| <= |theta_m| (|g|
+ |g~|) for all m, where g and g~ are sums of s - 1 noise columns. For two signals of one cluster, the bound gains
|theta_m| C |v_n - v_n'|, where |v_n - v_n'| = O(sigma_0^1.5) by the paper's proof.

(b) Because E |g|^2 = (s - 1) d sigma_t^2, by Markov |g| and |g~| are at most sigma_t (2 (s - 1) d/delta)^.5 except with
probability delta. (c) Lemma 6's proof has sum |theta_m|^2 <= eta t lambda W + eta lambda alpha M (1 + ln t)/2 + eta^2 t
Z^2 W^2 + (eta alpha M Z)^2/2 on every path with |z| <= Z. For eta t <= 2 M/sigma_0 this is O(sigma_0^1.25). (d) With
sigma_t = O(sigma_0) and delta = sigma_0^.25 the gap is O(sigma_0^.625 sigma_0 sigma_0^-.125) = O(sigma_0^1.5), with
probability 1 - o(1).

Robust: The proof allows M above or below N, and any routes, signals, s and sizes of beta, lambda and Gamma. The noise
of one sample may depend on the other's. If 1/eta is at most a power of 1/sigma_0, so is the number of rounds. Gaussian
noise of order sigma_0 then keeps |z| <= Z = O(1) in all of them, with probability 1 - o(1). Up to round sigma_0^-.25 T1
the sum of |theta_m|^2 is O(sigma_0^2), and sigma_t = O(sigma_0^.625) suffices.

Caveat: Gates are updated in at most T1/sigma_0 rounds. The paper's last round, t2, is sigma_0^-.75 T1.
"""

import sys
from fractions import Fraction

import sympy as sp

# The change of S in one step, as for Lemma 6, with two experts.
p, eta, cost = sp.symbols("p eta c", positive=True)
z, noise, other = (sp.Matrix(sp.symbols(f"{name}1 {name}2", real=True)) for name in ("z", "g", "f"))
gates = [sp.Matrix(sp.symbols(f"a{m} b{m}", real=True)) for m in range(2)]
steps = [-eta * cost * p * (1 - p) * z, eta * cost * p * (1 - p) * z]
change = sum((gate + step).dot(gate + step) - gate.dot(gate) for gate, step in zip(gates, steps, strict=True))
lead = (gates[0] - gates[1]).dot(z)
left = [sp.expand(change + 2 * eta * cost * p * (1 - p) * lead - 2 * (eta * cost * p * (1 - p)) ** 2 * z.dot(z))]
# The gap of outputs, and Cauchy-Schwarz as a square.
strength, signal = sp.Symbol("beta", positive=True), sp.Matrix(sp.symbols("v1 v2", real=True))
gap = gates[0].dot(strength * signal + noise) - gates[0].dot(strength * signal + other)
left.append(sp.expand(gap - gates[0].dot(noise - other)))
area = gates[0][0] * noise[1] - gates[0][1] * noise[0]
left.append(sp.expand(gates[0].dot(gates[0]) * noise.dot(noise) - gates[0].dot(noise) ** 2 - area**2))

W, LAMBDA, HALF, grown = Fraction(1), Fraction(5, 4), Fraction(1, 2), Fraction(1)  # exponents; eta t of sigma_0^-1
terms = [LAMBDA + W - grown, 2 * HALF + LAMBDA, HALF + 2 * W - grown, 4 * HALF]
delta = Fraction(1, 4)
total = min(terms) / 2 + 1 - delta / 2
cluster = min(terms) / 2 + Fraction(3, 2)
print(f"identities, each 0: {', '.join(map(str, left))}")
print(f"gates are O(sigma_0^{min(terms) / 2}); the noise's part O(sigma_0^{total}), a cluster's O(sigma_0^{cluster})")
print(f"except with probability O(sigma_0^{delta}); printed: O(sigma_0^3/2), with probability 1 - o(1)")
is_proved = set(left) == {0} and min(total, cluster) >= Fraction(3, 2) and delta > 0
print("proved: O(sigma_0^1.5)" if is_proved else "not proved")
sys.exit(not is_proved)
