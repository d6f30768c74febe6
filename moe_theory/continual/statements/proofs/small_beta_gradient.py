"""Counterexample to Lemma 5, Eq. (31), first case: some gradient up to T1 is below c sigma_0, for any c.

Claim. For every constant c, the probability that the largest entry is c sigma_0 or more in all rounds up to T1 tends to
0. Let beta be uniform on (0, 1], w_n = sigma_0 v_n, v_n = e_n, s = 1 and eta = alpha = sigma_0^.5. Proof. (a) A model
is the sum of the ground truths that it has learned, and moves by sigma_0 or not at all. (b) In the second half of
exploration, t > T1/2 >= M/(2 eta). So the auxiliary loss weighs alpha M f_t/t <= 2 alpha eta = 2 sigma_0. (c) The
gradient at a gate is beta_t v_n, times both costs, times two softmax values or pi (1 - pi). The costs are at most 3
sigma_0, and the last factor at most 1/4. So its largest entry is below sigma_0 beta_t. (d) This entry is c sigma_0 or
more in all these n = T1/2 rounds only if every beta_t >= c, with probability (1 - c)^n <= 1/(1 + n c). Here n is of
order sigma_0^(-.5).

Robust: The proof allows any N, M, d and lambda, and any distribution of beta that reaches down to 0. Signals of size
o(1) make the gradient as small in every round. So does noise of constant size with s > 1, in rounds where the samples'
sum comes near 0. With alpha = 0 a repeat has gradient 0.

Objection: beta and the signals are meant to be of order 1, and alpha of order sigma_0^.5. But Definition 1 allows beta
in (0, C], and Algorithm 1 requires only alpha = O(sigma_0^.5). If these are bounded from below, and s = 1 or noise is
small, the claim continual.lemma-5.exploration finds the lemma's order.
"""

import sys
from fractions import Fraction

EXPERTS = 3  # M


def bound(root):
    """Bound of the largest entry over sigma_0 beta_t, t > T1/2, where sigma_0 = 1/root^2."""
    scale, rate = Fraction(1, root**2), Fraction(1, root)
    explored = EXPERTS * root  # T1
    first = explored // 2 + 1
    costs = scale + rate * EXPERTS * Fraction(1, first)  # |dw|, and alpha M f_t/t with f_t <= 1
    return Fraction(1, 4) * costs / scale, explored - explored // 2


violated = []
for place in (1, 2, 3):
    constant = Fraction(1, 10**place)
    largest, rounds = bound(root=10 ** (place + 2))
    kept = 1 / (1 + rounds * constant)
    print(f"sigma_0 = 1/10^{2 * place + 4}: entries at most {largest} sigma_0 beta_t in {rounds} rounds,")
    print(f"    all of them {constant} sigma_0 or more with probability {kept} or less")
    violated.append(largest < 1 and kept < Fraction(1, 100))
print("violated: no constant serves" if all(violated) else "not violated")
sys.exit(not all(violated))
