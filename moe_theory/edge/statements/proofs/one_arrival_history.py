"""Counterexample to Lemma 9, Eq. (34): with signals along ground truths a first task has error 0, not r |w|^2.

By Definition 1 one column of X_t is beta_t v_t. Let v_n lie along w_n. Then P_t w_t = w_t for any s < p, beta and
noise. A task shows its whole ground truth, and its error is 0 right after it. A model that starts from 0 becomes w_t
after its first task, but (34) gives an error of r |w_t|^2.

With ground truths w and -w of two types, a model is always the ground truth of its last task. The last task i has error
0, but (34) has r^L |w|^2 plus a positive term for every earlier task of the other type. For every earlier i, E|w -
w_i|^2 is 2 |w|^2. If v is across w, the other s - 1 columns span a uniformly random subspace of the p - 1 dimensions
across v. A first task then leaves (p - s)/(p - 1) of |w|^2, again not r = (p - s)/p.

Robust: any t, number of servers, delays, s, p, beta and noise. With v along w nothing is random.

Objection: the proof takes every column as redrawn from N(0, I), and then (34) is exact for task-independent routing. It
is also exact if no ground truth comes twice and each has its own isotropic signal. But by Definition 1 a type that
comes again shows the same signal, by which the router recognises it.
"""

import sys
from fractions import Fraction
from itertools import product

TRUTHS, FEATURES, SAMPLES = (1, -1), 15, 10  # along the line that every arrival spans; p and s of Fig. 3
RATIO = 1 - Fraction(SAMPLES, FEATURES)


def errors(load: int, task: int) -> tuple[Fraction, Fraction]:
    """Return a task's mean error after `load` tasks of a server, and the right side of (34), over all types."""
    found = stated = Fraction(0)
    for kinds in product(TRUTHS, repeat=load):
        own = kinds[task]
        found += (kinds[-1] - own) ** 2
        stated += RATIO**load * own**2
        stated += sum((1 - RATIO) * RATIO ** (load - 1 - at) * (other - own) ** 2 for at, other in enumerate(kinds))
    return found / 2**load, stated / 2**load


differ = []
for load in (1, 2, 3, 6):
    for task in {0, load - 1}:
        found, stated = errors(load, task)
        differ.append(found != stated)
        print(f"task {task + 1} of {load}: error {found}, (34) says {stated}")
across = Fraction(FEATURES - SAMPLES, FEATURES - 1)
differ.append(across != RATIO)
print(f"first task, signal across its truth: error {across}, (34) says {RATIO}")
print("violated: the two sides differ" if all(differ) else "not violated")
sys.exit(not all(differ))
