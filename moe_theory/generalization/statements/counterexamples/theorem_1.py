"""Counterexample to Theorem 1 (generalization error of sparse MoE): a fixed router with one active expert.

By the theorem, with probability 1 - delta no classifier of the class has a gap |L_S - L_D| above

    4 C R_m(H) + 2 sqrt((2 k d_N (1 + log(T/k)) + d_N log(2m) + log(4/delta)) / (2m)).

Cut [0, 1] into T cells, each with its own expert, +1 or -1 everywhere. The router sends an input to its cell's expert,
so k = 1. Labels are fair coins. So every classifier has L_D = 1/2 under the loss clip((1 - y f)/2, 0, 1), for which C =
1/2. The classifier that takes the majority of the labels in each cell has the largest gap, sum_j |S_j| / (2m), where
S_j sums the labels in cell j. A class of one router shatters nothing, so d_N = 0. We use the larger d_N = 1. The
program needs NumPy.
"""

import math
import sys

import numpy as np

DELTA, C, DRAWS = 0.05, 0.5, 100
generator = np.random.default_rng(0)


def largest_gap(samples: int, cells: int) -> float:
    cell = generator.integers(cells, size=samples)
    labels = generator.choice([-1.0, 1.0], size=samples)
    return float(np.sum(np.abs(np.bincount(cell, labels)))) / (2 * samples)


def bound(samples: int, cells: int, dimension: int) -> float:
    half = math.ceil(samples / 2)  # R_m of {+1, -1} is E|S_m| / m, exactly
    rademacher = 2 / math.sqrt(math.pi) * math.exp(math.lgamma(half + 0.5) - math.lgamma(half)) / samples
    inside = 2 * dimension * (1 + math.log(cells)) + dimension * math.log(2 * samples) + math.log(4 / DELTA)
    return 4 * C * rademacher + 2 * math.sqrt(inside / (2 * samples))


print(f"The theorem: the gap exceeds the bound in at most {DELTA:.0%} of samples, up to one constant for all sizes.\n")
print(f"{'m':>8} {'T':>9} {'gap':>6} {'bound':>6} {'ratio':>6} {'exceeds':>8}   bound for d_N = 0")
violated, ratios = True, []
for samples, cells in ((500, 5000), (10**4, 10**5), (10**6, 10**7)):
    gaps = np.array([largest_gap(samples, cells) for _ in range(DRAWS if samples <= 10**4 else 3)])
    limit = bound(samples, cells, dimension=1)
    exceeds, ratio = float(np.mean(gaps > limit)), float(np.mean(gaps)) / limit
    violated, ratios = violated and exceeds > 0.5, [*ratios, ratio]
    nothing = bound(samples, cells, dimension=0)
    print(f"{samples:8} {cells:9} {gaps.mean():6.3f} {limit:6.3f} {ratio:6.2f} {exceeds:8.0%}   {nothing:.3f}")
violated = violated and ratios[-1] > 10 * ratios[0]
print("\nViolated, and by more than any constant as m grows." if violated else "\nNot violated.")
sys.exit(0 if violated else 1)
