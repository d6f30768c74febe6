"""Section 1 and the remark on sparsity awareness: with d_N fixed the term k (1 + log(T/k)) of (23) grows with k.

We hold d_N fixed, as a constant. This is a hypothesis, because by Definition 4 d_N is the dimension of the k-sparse
masks, which changes with k. At k = T there is only one mask, so d_N = 0, and (23) lacks the term. The results below
hold for the term itself.

Let g(k) = k (1 + log(T/k)), which stands under the root, multiplied by 2 d_N. Then g'(k) = 1 + log(T/k) - 1 = log(T/k)
is 0 at k = T and positive before. So g grows with k up to k = T. Its root grows too, and so does (23) at this d_N. From
k to one active expert the root of g falls by the factor sqrt(g(k)/g(1)). As k >= 1, g(k)/g(1) = k (1 + log(T/k))/(1 +
log T) <= k. So the factor is at most sqrt(k). The upper bound O(k) is right, but the factor never has the order of k.
"""

import sys

import sympy

k, T = sympy.symbols("k T", positive=True)
term = k * (1 + sympy.log(T / k))
slope = sympy.simplify(sympy.diff(term, k) - sympy.log(T / k))
gained = sympy.simplify(k * term.subs(k, 1) - term - k * sympy.log(k))  # k g(1) - g(k) = k log k >= 0
print(f"g'(k) less log(T/k): {sympy.expand_log(slope)}")
print(f"k g(1) - g(k) less k log k: {sympy.simplify(sympy.expand_log(gained))}")
holds = slope == 0 and sympy.simplify(sympy.expand_log(gained)) == 0
print("proved: the term grows with k, and falls by sqrt(k) at most" if holds else "not proved")
sys.exit(not holds)
