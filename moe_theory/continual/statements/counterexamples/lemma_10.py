"""Counterexample to Lemma 10, second sentence: two probabilities differ by less than 1 for any gap.

For two experts pi_1 - pi_2 = tanh(delta / 2). Exits 0 if the ratio of this to delta falls below any constant, but is
not small up to delta = 1.
"""

import math
import sys

print("Stated: where delta is not close to 0, |pi_1 - pi_2| is at least a multiple of delta.")
ratios = []
for gap in (1 / 512, 1 / 8, 1, 2, 8, 32, 128, 512):
    weights = [1.0, math.exp(-gap)]
    difference = (weights[0] - weights[1]) / sum(weights)  # (2) at outputs of delta and 0
    ratios.append(difference / gap)
    print(f"delta = {gap:g}: |pi_1 - pi_2| = {difference:.5f}, {ratios[-1]:.4f} delta")
print("For delta up to 1, as Lemma 6 has it, the multiple 0.46 will do; for all delta none will.")
sys.exit(0 if ratios[-1] < 0.01 and ratios[-1] < ratios[-2] / 3 and min(ratios[:3]) > 0.46 else 1)
