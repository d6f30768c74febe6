"""(13) to (15) in the proof on the generalization of sparse MoE, against masks of few inputs. Needs NumPy.

The chance of a gap of eps/2 between two samples S and S' of m inputs is to be at most 2 Gamma times the largest chance
for one mask, which (17) to (20) take to be chosen beforehand. Of 2^32 equally likely inputs a mask sends any four to an
expert whose loss is 1, and all others to one whose loss is 0. Gamma counts what that leaves on the 2m inputs.
"""

import math
import sys

import numpy as np

INPUTS, FLAGGED, SIZE, TRIALS = 2**32, 4, 16, 1000


def largest_difference(sample: list[int], ghost: list[int]) -> float:
    """Of L_S - L_S' over masks: those inputs of S are flagged that S' has not."""
    counts = sorted((sample.count(x) - ghost.count(x) for x in set(sample)), reverse=True)
    return sum(max(count, 0) for count in counts[:FLAGGED]) / SIZE


source = np.random.default_rng(15)
reached = 0
for _ in range(TRIALS):
    drawn = source.integers(INPUTS, size=2 * SIZE).tolist()
    reached += largest_difference(drawn[:SIZE], drawn[SIZE:]) >= FLAGGED / SIZE
patterns = sum(math.comb(2 * SIZE, number) for number in range(FLAGGED + 1))
beforehand = 2 * SIZE * FLAGGED / INPUTS  # chance that any of four given inputs is drawn at all, at most
print(f"A gap of {FLAGGED / SIZE} in {reached} of {TRIALS} pairs of samples;")
print(f"2 Gamma times the chance for a mask chosen beforehand is at most {2 * patterns * beforehand:.4f}.")
sys.exit(0 if reached > TRIALS / 2 and 2 * patterns * beforehand < 0.01 else 1)
