"""Corollary 2: once the state has settled, (t - 1) F_t and t G_t no longer change.

Let the state settle after round T_s. Proof. (a) No model moves after T_s. (b) (t - 1) F_t is the sum over rounds tau <
t of how much the error on task n_tau at expert m_tau has grown since tau. Rounds from T_s on add 0, because their
expert has the task's model then and now. Earlier ones add the same as in F_{T_s}. (c) t G_t is the sum over tau <= t of
the error at m_tau now. Rounds after T_s add 0, and earlier rounds add the same as in G_{T_s}. The program takes every
run of two experts and three tasks, of which two recur after the third, with T_s = 3 and two more rounds. It uses the
errors that Definitions (15) and (16) sum.

Robust: The proof allows any numbers of experts and tasks, lengths of ground truths, T_s, and learners before T_s. It
uses only that no model moves after T_s.

Objection: An expert settles for one task. Here two experts have one task each, so rounds after T_s are of these tasks.

Caveat: Slow learners keep moving. It is not proved that their moves shrink and leave the state settled.
"""

import sys
from fractions import Fraction
from itertools import product

TRUTHS = ((3, 0), (0, 2), (1, 5))


def error(model, n):
    return sum((a - b) ** 2 for a, b in zip(model, TRUTHS[n], strict=True))


def metrics(run, models):
    """Return F_t and G_t of the rounds so far, each given as (task, expert, error in that round)."""
    t, now = len(run), [error(models[m], n) for n, m, _ in run]
    grown = sum(after - then for after, (_, _, then) in zip(now[:-1], run[:-1], strict=True))
    return Fraction(grown, max(t - 1, 1)), Fraction(sum(now), t)


off, num_runs = Fraction(0), 0
for start in product(product(range(3), range(2)), repeat=3):
    models, run, last = [(0, 0), (0, 0)], [], {}
    for n, m in start:
        models[m], last[m] = TRUTHS[n], n
        run.append((n, m, error(models[m], n)))
    if len(set(last.values())) < 2:
        continue
    (F, G), settled = metrics(run, models), len(run)
    for later in product(last, repeat=2):
        longer = [*run]
        for m in later:
            longer.append((last[m], m, 0))
            t = len(longer)
            F_t, G_t = metrics(longer, models)
            off = max(off, abs(F_t - F * Fraction(settled - 1, t - 1)), abs(G_t - G * Fraction(settled, t)))
        num_runs += 1
print(f"F_t and G_t less what is stated, largest of {num_runs} runs: {off}; stated: 0")
is_proved = num_runs > 0 and off == 0
print("proved: nothing more is forgotten" if is_proved else "not proved")
sys.exit(not is_proved)
