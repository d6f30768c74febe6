"""Lemma 4: the gates' gradients add up to 0, for any number of experts, any costs and any features.

Let z be the features' sum. Proof. (a) Add one vector a to every gate. Each output h_m rises by the same a'z, and the
softmax (2) stays as it is. (b) Only the softmax in the loss depends on the round's gates. The moves in (6) and the
shares f_t in (7) are fixed once m_t is chosen, and (3) contains no gates. (c) So the loss is constant along a, and its
derivative a'(sum of gradients) is 0 for any a.

In the paper's terms, let p be the softmax of m_t and c = |dw| + alpha M f / t. The gradient is c p (1 - p) z for m_t,
and - c p pi_m z for any other m. The other pi_m add up to 1 - p. So the sum is c p (1 - p) z - c p (1 - p) z.

Robust: The proof allows |dw| or its square in (6), derivatives of P_t through one term or all, alpha = 0, and any noise
and number of samples. It uses only that a common shift leaves the softmax unchanged.
"""

import sys

import sympy as sp

EXPERTS = 4
weights = sp.symbols(f"e0:{EXPERTS}", positive=True)  # exp(h_m), of derivative exp(h_m) z in its gate
costs = sp.symbols(f"c0:{EXPERTS}", positive=True)  # |dw| + alpha M f / t of each expert, were it chosen
softmax = [weight / sum(weights) for weight in weights]

left = []
for chosen, cost in enumerate(costs):
    loss = cost * softmax[chosen]
    gradients = [sp.diff(loss, weight) * weight for weight in weights]  # in units of z
    left.append(sp.cancel(sum(gradients)))
    closed = [loss * (int(m == chosen) - softmax[m]) for m in range(EXPERTS)]
    left += [sp.cancel(one - other) for one, other in zip(gradients, closed, strict=True)]

share, cost, others = sp.symbols("p c q", positive=True)  # for any number of experts: the others' softmax adds up to q
left.append(sp.expand((cost * share * (1 - share) - cost * share * others).subs(others, 1 - share)))
found = ", ".join(map(str, set(left)))
print(f"sums of the gradients over {EXPERTS} experts, and gradients less their closed form: {found}")
print("proved: the gradients add up to 0" if set(left) == {0} else "not proved")
sys.exit(set(left) != {0})
