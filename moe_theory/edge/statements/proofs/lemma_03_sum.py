"""Lemma 3, proof: gradients cancel over experts.

By (24) to (26) the gradient with respect to theta^(m) is |dw| pi_k (1[m = k] - pi_m) sum_i X_i, k = m_t. The sum over
m is |dw| pi_k (1 - sum_m pi_m) sum_i X_i, and the probabilities of a softmax add up to 1.
"""

import sys

from sympy import diff, exp, simplify, symbols

holds = True
for experts in (2, 3):
    outputs = symbols(f"h:{experts}")
    whole = sum(exp(each) for each in outputs)
    for k in range(experts):
        chosen = exp(outputs[k]) / whole
        slopes = [diff(chosen, each) for each in outputs]
        stated = [chosen * (int(m == k) - exp(outputs[m]) / whole) for m in range(experts)]
        is_equal = all(simplify(one - other) == 0 for one, other in zip(slopes, stated, strict=True))
        holds = holds and is_equal and simplify(sum(stated)) == 0
    print(f"M = {experts}: (25) and (26) are the derivatives, and add up to {simplify(sum(stated))}")
print("proved: they cancel" if holds else "not proved")
sys.exit(not holds)
