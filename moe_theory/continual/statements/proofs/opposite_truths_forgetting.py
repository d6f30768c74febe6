"""Counterexample to Proposition 4, Eq. (17): mean forgetting is 2, but (17) says that it is below 1.

Let N = 2 with opposite ground truths w and -w, |w| = 1, signals along w, s < d, and sigma_t > 0 if s >= 2. Let the
first model be on the line of w, such as 0.

Proof. (a) Every arrival's data span that line. So the one expert always equals its last task's ground truth. (b) After
a task, an earlier task's error is 0 if the two are equal, and |2 w|^2 = 4 if not. Right after the earlier task it was
0. (c) So F_t is 4 times the share of earlier tasks unlike the last one. This share is 1/2 in expectation. (d) (17) has
W = 1 and, over the pairs n != n', (4 + 4)/N^2 = 2. With r = 1 - s/d it says the mean of r^tau - r^t, which is below 1,
and at most 1/4 at t = 2.

Robust: The proof allows any t, d, s, beta, noise and first model on that line. It uses only that N = 2.

Objection: Two opposite ground truths are special, but (17) is stated for any pool. At Fig. 2's sizes the claim
continual.proposition-4.forgetting also finds forgetting far above (17).
"""

import sys
from fractions import Fraction
from itertools import product

TRUTHS = (1, -1)  # along the one line that every arrival spans
FEATURES, SAMPLES, LAST = 10, 6, 2  # d, s, t
RATIO = 1 - Fraction(SAMPLES, FEATURES)  # r


def forgetting(tasks: tuple[int, ...]) -> Fraction:
    """F_t of (15), where a model is the ground truth of its last task."""
    model = TRUTHS[tasks[-1]]
    return Fraction(sum((model - TRUTHS[task]) ** 2 for task in tasks[:-1]), len(tasks) - 1)


routes = list(product(range(2), repeat=LAST))
found = sum(map(forgetting, routes)) / len(routes)
norm = Fraction(sum(truth**2 for truth in TRUTHS), 2)
apart = Fraction(sum((one - other) ** 2 for one in TRUTHS for other in TRUTHS), 4)
printed = sum((RATIO**LAST - RATIO**tau) * (norm - apart) for tau in range(1, LAST)) / (LAST - 1)
print(f"expected forgetting at t = {LAST}: {found}; (17) says {printed}")
print("violated: the two differ" if found != printed else "not violated")
sys.exit(found == printed)
