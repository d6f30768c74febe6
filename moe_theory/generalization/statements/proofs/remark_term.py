"""Section 1 and the remark on sparsity awareness: the term k (1 + log(T/k)) of (23) in k.

d_N is held fixed, as a constant. That is a hypothesis: by Definition 4 it is the dimension of the k-sparse masks, which
changes with k. At k = T there is one mask, d_N = 0, and (23) is without the term; of the term itself all below holds.
Let g(k) = k (1 + log(T/k)), which stands under the root, times 2 d_N. g'(k) = 1 + log(T/k) - 1 = log(T/k) is 0 at
k = T and above 0 before: g grows with k up to k = T, and so do its root and, at this d_N, (23).
From k to one the root of g falls by the factor sqrt(g(k)/g(1)), and g(k)/g(1) = k (1 + log(T/k))/(1 + log T) <= k, as
k >= 1: a factor of sqrt(k) at most. As an upper bound O(k) is right; the factor is never of the order of k.
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
