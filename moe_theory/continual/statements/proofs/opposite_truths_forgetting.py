"""Proposition 4, Eq. (17): two opposite truths w and -w, |w| = 1; forgetting is 2 in mean, and it says less than 1.

The one expert always equals its last task's truth, so that it forgets each earlier task that is unlike the last one by
|2 w|^2 = 4: half of them in expectation. N = 2 with signals along w, s < d, any beta, sigma_t > 0 if s >= 2, and any
first model on the line of w, 0 for one. Every arrival's data span that line: after a task, an earlier one's error is 0
if the two are alike, and 4 if not. When it was learned it was 0. So F_t is the share of earlier tasks unlike the last
one, times 4: 2 in expectation, for every t >= 2. (17) has W = 1 and, over the pairs n != n', (4 + 4)/N^2 = 2: with r =
1 - s/d it says the mean of r^tau - r^t, below 1, and at most 1/4 at t = 2.

Robust: t, d, s, beta, the noise and a first model on that line do not matter; N = 2 alone is used.

Objection: two opposite truths are special. (17) is stated for any pool of truths; at the sizes of Fig. 2, where nothing
is special, the claim continual.proposition-4.forgetting finds it far above (17), too.
"""

import sys
from fractions import Fraction
from itertools import product

TRUTHS = (1, -1)  # along the one line that every arrival spans
FEATURES, SAMPLES, LAST = 10, 6, 2  # d, s, t
RATIO = 1 - Fraction(SAMPLES, FEATURES)  # r


def forgetting(tasks: tuple[int, ...]) -> Fraction:
    """F_t of (15): a model is the truth that it met last, so that a task's error was 0 when it was learned."""
    model = TRUTHS[tasks[-1]]
    return Fraction(sum((model - TRUTHS[task]) ** 2 for task in tasks[:-1]), len(tasks) - 1)


routes = list(product(range(2), repeat=LAST))
found = sum(map(forgetting, routes)) / len(routes)
norm = Fraction(sum(truth**2 for truth in TRUTHS), 2)
apart = Fraction(sum((one - other) ** 2 for one in TRUTHS for other in TRUTHS), 4)
printed = sum((RATIO**LAST - RATIO**tau) * (norm - apart) for tau in range(1, LAST)) / (LAST - 1)
print(f"expected forgetting at t = {LAST}: {found}")
print(f"(17) says {printed}")
print("violated: the two differ" if found != printed else "not violated")
sys.exit(found == printed)
