"""Counterexample to the definition of the regret: its best weights earn 0.58, but others earn 0.7.

The definition takes the mix of the tasks' best weights, a compromise, for the best weights of the mix. Let there be two
tasks and two experts, K = V = 2. Task 1 earns f_1(x) = (1 + x_1 - x_2)/2 and task 2 earns f_2(x) = (1 + x_2 - x_1)/2.
On X = [0, 1]^2, as the argmax is printed, each task has one best point, (1, 0) and (0, 1). Both points sum to 1. The
mix psi_t = (0.7, 0.3) applied to them, psi_t argmax f, is (0.7, 0.3). There the rewards f are (0.7, 0.3), which earn
0.7 * 0.7 + 0.3 * 0.3 = 0.58. But (1, 0) earns 0.7, the most on all of X. So the formula's weights do not have the
highest reward, although the sentence says so.

Robust: the argument works for any number of tasks, with f_v(x) = (V - 1 + x_v - the sum of the others)/V. On weights
the mix earns 1 - 2/V + (2/V) psi'x. The sum of psi_v^2 is below the largest psi_v, except for mixes that are uniform
over some of the tasks or on one task.

Objection: the words next to the formula say what is meant, and with the mix inside the argmax the definition is right.
As printed, a vector of V shares multiplies one of K weights, and only our reading makes weights of it.
"""

import sys
from fractions import Fraction

MIX = (Fraction(7, 10), Fraction(3, 10))
PARTS = 20


def reward(task: int, weights: tuple[Fraction, ...]) -> Fraction:
    """Return f_v(x) for v = 0 or 1."""
    return (1 + weights[task] - weights[1 - task]) / 2


def earned(weights: tuple[Fraction, ...]) -> Fraction:
    """Return psi' f(x)."""
    return sum((share * reward(task, weights) for task, share in enumerate(MIX)), Fraction(0))


space = [(Fraction(n, PARTS), Fraction(k, PARTS)) for n in range(PARTS + 1) for k in range(PARTS + 1)]  # X
rewards = [[reward(task, point) for point in space] for task in range(2)]
is_single = all(each.count(max(each)) == 1 for each in rewards)
bests = [space[each.index(max(each))] for each in rewards]
formula = tuple(sum(share * best[k] for share, best in zip(MIX, bests, strict=True)) for k in range(2))
best = max(space, key=earned)
are_weights = sum(formula) == sum(best) == 1
print(f"the formula's weights {formula[0]}, {formula[1]} earn {earned(formula)}")
print(f"the weights {best[0]}, {best[1]} earn {earned(best)}")
violated = is_single and are_weights and earned(best) > earned(formula)
print("violated: others earn more" if violated else "not violated")
sys.exit(not violated)
