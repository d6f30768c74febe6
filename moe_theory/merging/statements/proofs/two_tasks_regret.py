"""The definition of the regret: two tasks, two experts, rewards x_1 and x_2, the mix (0.7, 0.3).

Let task v earn f_v(x) = x_v, K = V = 2. The tasks' own best weights are (1, 0) and (0, 1), and the mix applied to them,
psi_t argmax f, is (0.7, 0.3). It earns 0.7 * 0.7 + 0.3 * 0.3 = 0.58. But (1, 0) earns 0.7: the weights of the formula
are not those with the highest reward, which the sentence says they are.

Robust: any mix but (1/2, 1/2) and those of one task, and any number of tasks: sum psi_v^2 is below the largest psi_v.

Objection: the words beside it say what is meant. They do: with the mix inside the argmax it holds. As printed a vector
of V shares multiplies one of K weights, and this is the one reading that makes weights of it.
"""

import sys
from fractions import Fraction

MIX = (Fraction(7, 10), Fraction(3, 10))
PARTS = 100


def earned(weights: tuple[Fraction, ...]) -> Fraction:
    """psi' f(x), with f_v(x) = x_v."""
    return sum((share * weight for share, weight in zip(MIX, weights, strict=True)), Fraction(0))


feasible = [(Fraction(n, PARTS), 1 - Fraction(n, PARTS)) for n in range(PARTS + 1)]
bests = [max(feasible, key=lambda weights: weights[task]) for task in range(2)]
formula = tuple(sum(share * best[k] for share, best in zip(MIX, bests, strict=True)) for k in range(2))
best = max(feasible, key=earned)
print(f"the formula's weights {formula[0]}, {formula[1]} earn {earned(formula)}")
print(f"the weights {best[0]}, {best[1]} earn {earned(best)}")
violated = earned(best) > earned(formula)
print("violated: others earn more" if violated else "not violated")
sys.exit(not violated)
