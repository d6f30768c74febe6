"""Counterexample to the definition of the regret: its best weights earn 0.58, but others earn 0.7.

The definition confuses the mix of the tasks' best weights with the best weights for the mix. Let there be two tasks and
two experts, K = V = 2. Task 1 earns f_1(x) = (1 + x_1 - x_2)/2 and task 2 earns f_2(x) = (1 + x_2 - x_1)/2. The printed
argmax is over X = [0, 1]^2. There the tasks' best points are (1, 0) and (0, 1), and both sum to 1. The mix psi_t =
(0.7, 0.3) applied to them, psi_t argmax f, is (0.7, 0.3). There the rewards f are (0.7, 0.3), which earn 0.7 * 0.7 +
0.3 * 0.3 = 0.58. But (1, 0) earns 0.7, the most on all of X. So the formula's weights do not have the highest reward.

Robust: the argument works for any number of tasks, with f_v(x) = (V - 1 + x_v - the sum of the others)/V. Under the
mix, weights x earn 1 - 2/V + (2/V) psi'x. The sum of psi_v^2 is below the largest psi_v, except for mixes that are
uniform over some of the tasks.

Objection: the words next to the formula say what is meant, and with the mix inside the argmax the definition is right.
As printed, a vector of V shares multiplies a vector of K weights, and only our reading makes weights of the product.
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
