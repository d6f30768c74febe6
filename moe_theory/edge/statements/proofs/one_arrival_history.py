"""Lemma 9, Eq. (34): signals along truths; a server's first task leaves no error, and it says r |w_t|^2.

By Definition 1 one column of X_t is beta_t v_t. Let v_n lie along w_n, as signals that are the truths themselves do: a
task then shows its whole truth, and right after it its error is 0, which (34) has no room for. P_t w_t = w_t, for any s
< p, beta and noise. A model that starts from 0 is w_t after its first task; (34) says an error of r |w_t|^2. With w and
-w as the truths of two kinds a model is the truth of its last task for ever: the error of task i at its server is 0
right after it, where (34) has r^L |w|^2 and a positive term for every earlier task of the other kind; and E|w - w_i|^2
is 2 |w|^2 for every earlier i. With v across w instead, the other s - 1 columns span a uniformly random subspace of the
p - 1 dimensions across v, and a first task leaves (p - s)/(p - 1) of |w|^2, again not r = (p - s)/p.

Robust: t, the number of servers, delays, s, p, beta and noise do not matter; with v along w nothing is random.

Objection: the proof takes features to be rotationally symmetric, as if every column were drawn anew from N(0, I). With
that (34) is exact for blind routing, and so it is where no truth comes twice and each has an isotropic signal of its
own. But a kind that comes again shows the same signal: by that Definition 1 and the router tell it.
"""

import sys
from fractions import Fraction
from itertools import product

TRUTHS, FEATURES, SAMPLES = (1, -1), 15, 10  # along the line that every arrival spans; p and s of Fig. 3
RATIO = 1 - Fraction(SAMPLES, FEATURES)


def errors(load: int, task: int) -> tuple[Fraction, Fraction]:
    """Mean error of a task of one server after `load` of them, and the right side of (34), over all kinds."""
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
