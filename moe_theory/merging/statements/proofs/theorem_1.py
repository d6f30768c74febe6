"""Theorem 1, Eq. (6), is vacuous: it allows a regret of T + 1 or more, but no policy can lose more than T.

Rewards are in [0, 1], because the proof of Lemma 4 normalizes them. So a slot's regret f_1^*(x_t^*) - f_1^*(x) is at
most 1, and R <= T for any policy and any network. The bound (6) ends in T + 1. Its other part is 3 sqrt(T) times sqrt(d
log(1 + T N/lambda) + 2), with the effective dimension d, times a bracket. The bracket's terms are each at least 0: v
times the root, -2 log delta > 0 for delta < 1, (lambda + C_3 T L)(1 - eta w lambda)^(J/2) sqrt(T/lambda), and 2
sqrt(lambda S). In the third, eta <= C_1/(T w L + w lambda) by Lemma 3. So eta w lambda <= C_1 lambda/(T L + lambda),
which is at most 1 for C_1 <= 1, or from some T on. So R <= T < T + 1 <= (6), with probability 1.

Robust: the proof allows all rewards in [0, 1] and any width, tree, effective dimension, delta and J. All
that (6) says about Tanbr also holds for a policy that picks arbitrary weights.

Objection: T + 1 is an estimate of a smaller term, the sum of nu_1 rho^h over the slots. But the printed bound contains
it, and the remark takes the order sqrt(T) log T from (6) without it. The correction bounds the sum.
"""

import sys
from fractions import Fraction
from itertools import product

rewards = [Fraction(n, 4) for n in range(5)]  # of the best weights and of those picked, any in [0, 1]
most = max(best - picked for best, picked in product(rewards, rewards) if best >= picked)
holds = most == 1
for slots in (1, 2, 10, 10_000):
    lost, left = slots * most, slots + 1
    print(f"T = {slots}: no policy loses more than {lost}, and (6) is at least {left}")
    holds = holds and lost < left
print("proved: (6) is above what T slots can lose" if holds else "not proved")
sys.exit(not holds)
