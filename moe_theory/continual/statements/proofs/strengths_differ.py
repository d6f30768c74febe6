"""Counterexample to Lemma 1: at two strengths, outputs are sigma_0/6 or more apart, not O(sigma_0^1.5).

Let s = 1, so that the signal is the only sample. Let M = 3, N = 2, w_n = sigma_0 v_n for orthonormal signals v_n, eta =
alpha = sigma_0^.5, and beta be uniform on {1/2, 1}.

Proof. (a) An output is a gate times beta v. (b) In round 1 the chosen expert learns its task, moves by sigma_0 and has
all tasks so far. Its gate becomes -eta (sigma_0 + alpha M)(1/3)(2/3) beta_1 v_{n_1}. (c) Two arrivals of that signal
have strengths 1 and 1/2 with probability 1/2. The outputs for them at this expert are then eta (sigma_0 + alpha M)
beta_1/9 apart, which is at least eta alpha M/18 = sigma_0/6. For M < N let each task have a twin, whose ground truth
and signal are sigma_0^2 away.

Robust: The proof allows any lambda, Gamma, lengths of ground truths, noise of further samples, and distribution of beta
with two values in (0, C].

Objection: Both matrices are meant to carry one beta, as in the proof. But the sentence is about any two matrices with
one signal, and by Definition 1 two arrivals draw their strengths independently. With one beta the lemma holds for noise
O(sigma_0).
"""

import sys
from fractions import Fraction

STRENGTHS, EXPERTS = (Fraction(1, 2), Fraction(1)), 3


def gaps(root: Fraction) -> list[Fraction]:
    """|h(X) - h(X~)| of round 1's expert for its signal, for each beta_1 and pair of strengths, all as likely."""
    scale, found = root**2, []  # sigma_0
    for first in STRENGTHS:
        move = first * (first * scale) / (first * first)  # (5) from a model of 0, along v of length 1
        cost = abs(move) + root * EXPERTS * 1  # |dw| + alpha M f_1 / 1
        softmax = Fraction(1, EXPERTS)
        gate = -root * cost * softmax * (1 - softmax) * first
        found += [abs(gate * (one - other)) for one in STRENGTHS for other in STRENGTHS]
    return found


least = []
for inverse in (10, 100, 1000, 10_000):  # sigma_0^-.5
    root = Fraction(1, inverse)
    apart = [gap / root**3 for gap in gaps(root) if gap]
    share = Fraction(len(apart), len(gaps(root)))
    least.append(min(apart))
    print(f"sigma_0 = {root**2}: with probability {share} the outputs are {least[-1]} sigma_0^1.5 apart or more")
is_violated = share == Fraction(1, 2) and all(each * 6 > 10**k for k, each in enumerate(least, 1))
print("violated: with probability 1/2 by sigma_0^-.5/6 and more" if is_violated else "not violated")
sys.exit(not is_violated)
