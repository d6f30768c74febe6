"""Counterexample to Lemma 7: round 1 raises the chosen expert's output for a signal at an obtuse angle.

Let M = 3, N = 2, s = 1, d = 2, beta = 1, v_1 = (1, 0), v_2 = (-3/5, 4/5), w_n = sigma_0 v_n, and let task 1 arrive
first. Proof. (a) All outputs are 0 and each softmax is 1/3. The chosen expert learns w_1: it moves by sigma_0. It has
all tasks so far, so f_1 = 1, and its cost is c = sigma_0 + alpha M. (b) By (9) its gate moves by -eta c (1/3) (2/3)
v_1, and all other gates move by eta c (1/9) v_1. (c) Because v_1'v_2 = -3/5, the chosen expert's output for v_2 rises
by 2 eta c/15 and all other outputs fall by eta c/15, against the lemma. So if task 2 comes next, the chosen softmax is
above 1/3, and the others are below. For v_1 the lemma is right.

Robust: The proof allows any sigma_0, eta, alpha, beta, lambda, Gamma, M and lengths of ground truths, and any two
signals at an obtuse angle. Further samples may be added if their noise is small.

Objection: In Section 3, x = O(y) means x < c_1 |y|, so the display bounds one side and fixes no sign. But the text
below says that for any feature signal the softmax of the chosen expert falls and all others rise, from the next task
on. The proof ends with the same signal. With this amendment signs and sizes are right.
"""

import sys
from fractions import Fraction

SIGNALS = ((Fraction(1), Fraction(0)), (Fraction(-3, 5), Fraction(4, 5)))
SCALE, ROOT, EXPERTS = Fraction(1, 100), Fraction(1, 10), 3  # sigma_0; eta and alpha, its root


def dot(one: tuple, other: tuple) -> Fraction:
    return sum(a * b for a, b in zip(one, other, strict=True))


truth = tuple(SCALE * entry for entry in SIGNALS[0])
sample = SIGNALS[0]  # s = 1: the signal alone
reach = dot(sample, truth) / dot(sample, sample)  # (5) from a model of 0
move = tuple(reach * entry for entry in sample)
assert dot(move, move) == SCALE**2  # so that |dw| = sigma_0
cost = SCALE + ROOT * EXPERTS * Fraction(1, 1)  # |dw| + alpha M f_1 / 1
softmax = Fraction(1, EXPERTS)
steps = {
    name: tuple(-ROOT * cost * softmax * (is_chosen - softmax) * entry for entry in sample)
    for name, is_chosen in (("the chosen expert", 1), ("each other", 0))
}
changes = {name: [dot(step, signal) for signal in SIGNALS] for name, step in steps.items()}
for name, (own, other) in changes.items():
    print(f"output of {name}: for its task's signal {own}, for the other signal {other}")
# The softmax of an expert is above 1/M if its output is above all others, which are equal.
leads = [changes["the chosen expert"][task] - changes["each other"][task] for task in range(2)]
print(f"the chosen one leads by {leads[0]} for its task's signal, by {leads[1]} for the other: its softmax rises there")
is_violated = leads[0] < 0 < leads[1] and changes["the chosen expert"][1] > 0 > changes["each other"][1]
is_violated = is_violated and changes["the chosen expert"][0] < 0 < changes["each other"][0]
print("violated: both signs, for the other signal" if is_violated else "not violated")
sys.exit(not is_violated)
