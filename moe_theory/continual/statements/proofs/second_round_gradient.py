"""Counterexample to Lemma 12: a specialist's gradient is Theta(sigma_0), not 0 or O(sigma_0^1.5).

Claim. In round 2 the gradient at a specialist of the task is of size sigma_0 pi (1 - pi) with pi >= 1/M, with a
probability that does not depend on sigma_0. Divided by sigma_0 it tends to (1 - 1/M)/M. Let v_n = e_n be orthonormal,
w_n = sigma_0 e_n, s = 1, beta = 1, without spread inside clusters. Proof. (a) Gates start at 0. So round 1, with n =
n_1 and cost C > 0, adds eta C e_n/M^2 to the gates of the M - 1 experts not chosen and lowers the chosen one's gate.
(b) By (11) all M - 1 are in M_n, because their largest theta'v_j is at j = n, but they have not learned the task. (c)
With probability 1/N the task comes again, or a task of its cluster with probability 1/K. Their outputs are larger, so
one of the M - 1 experts is chosen with probability (M - 1)/M or more, and moves by sigma_0. (d) The gradient at gate m
is pi sigma_0 (1[m = m_2] - pi_m) e_n.

Robust: The proof allows any N, K, M, d, eta, alpha, lambda and Gamma. A spread of sigma_0^1.5 inside clusters changes
the move by as much. In later rounds, with s > 1 and noise, a task moves its expert unless the model already equals the
ground truth. If ground truths are not along the signals, no model ever does (Lemma 16, first sentence).

Objection: The lemma is meant for t > T1, when experts have learned, but it is stated for any round. For s = 2 and after
T1 the script finds a median gradient of such arrivals that is a fixed share of sigma_0.
"""

import sys
from fractions import Fraction

STEP = Fraction(1, 100)  # eta C, any that is positive


def second_round(groups, experts):
    """Least probability that a correct expert moves, and the least gradient at it over sigma_0."""
    first = 0  # the task or cluster of round 1, and the expert that is chosen, by symmetry
    gates = [[Fraction(0)] * groups for _ in range(experts)]
    for expert, gate in enumerate(gates):
        gate[first] -= STEP * Fraction(1, experts) * ((expert == 0) - Fraction(1, experts))  # (28), (29): pi = 1/M
    correct = [expert for expert, gate in enumerate(gates) if max(range(groups), key=gate.__getitem__) == first]
    assert correct == list(range(1, experts))
    outputs = [gate[first] for gate in gates]
    assert outputs[0] == min(outputs)  # its probability is 1/M or less
    # A correct expert's softmax is 1/(M - 1 + exp(-x)) for its gap x to the chosen one, and 1 - x <= exp(-x) <= 1.
    gap = outputs[1] - outputs[0]
    low, high = Fraction(1, experts), 1 / (experts - gap)
    return Fraction(len(correct), experts * groups), min(low * (1 - low), high * (1 - high))


tasks = second_round(groups=3, experts=4)  # M = 4 > N = 3
clusters = second_round(groups=2, experts=3)  # K = 2 < M = 3 < N
for name, (chance, size) in (("1) says 0, M > N", tasks), ("2) says O(sigma_0^1.5), M < N", clusters)):
    print(f"{name}: with probability {chance} or more the gradient is {size} sigma_0 or more")
is_violated = all(chance > 0 < size for chance, size in (tasks, clusters))
print("violated: of order sigma_0, with a probability that does not depend on it" if is_violated else "not violated")
sys.exit(not is_violated)
