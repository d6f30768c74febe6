"""Lemma 3, proof: the gradients cancel when summed over the experts.

Let k = m_t. By (24) to (26) the gradient with respect to theta^(m) is |dw| pi_k (1[m = k] - pi_m) sum_i X_i. The sum
over m is |dw| pi_k (1 - sum_m pi_m) sum_i X_i. It is 0, because the probabilities of a softmax add up to 1.
"""

import sys

from sympy import cancel, diff, symbols

holds = True
for experts in (2, 3, 5):
    powers = symbols(f"a:{experts}")  # e^h_m, so that d/dh_m is a_m d/da_m
    pi = [each / sum(powers) for each in powers]
    for k in range(experts):
        stated = [pi[k] * (int(m == k) - pi[m]) for m in range(experts)]
        slopes = [powers[m] * diff(pi[k], powers[m]) for m in range(experts)]
        is_equal = all(cancel(one - other) == 0 for one, other in zip(slopes, stated, strict=True))
        total = cancel(sum(stated))
        holds = holds and is_equal and total == 0
    print(f"M = {experts}: (25) and (26) are the derivatives: {is_equal}; they add up to {total}")
print("proved: they cancel" if holds else "not proved")
sys.exit(not holds)
