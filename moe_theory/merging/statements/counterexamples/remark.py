"""Theorem 1's bound on the regret grows like T, although the remark after it says O(d sqrt(T) log T).

The program computes two things. The first is the right side of (6) divided by d sqrt(T) log T, which stays bounded if
the remark is true. The second is the sum of nu_1 rho^h over the picked leaves, which (6) writes as T. The tree has the
threshold (2), both halves of a split can be picked, and the shallowest leaf is always picked. C = nu_1 = v = S = lambda
= 1, the effective dimension is 10, rho = 0.9 and delta = 0.1.
"""

import math
import sys

DIMENSION, RATIO, DELTA = 10, 0.9, 0.1


def right_side(slots: float) -> float:
    """Return the right side of (6), with 0 for its term with J, which is the least value."""
    candidates = 2 ** (1 / (1 - RATIO)) * slots / math.log(slots / DELTA)  # N of Lemma 1
    information = DIMENSION * math.log1p(slots * candidates) + 2
    neural = 3 * math.sqrt(slots * information) * (math.sqrt(information - 2 * math.log(DELTA)) + 2)
    return neural + slots + 1


def largest_sums(horizons: list[int]) -> list[float]:
    """Return the sum of nu_1 rho^h up to each horizon if leaves are picked depth by depth until each is split."""
    depth, unsplit, pulls, total, found = 0, 1, 0, 0.0, []
    for slot in range(1, horizons[-1] + 1):
        total, pulls = total + RATIO**depth, pulls + 1
        if slot in horizons:
            found.append(total)
        if pulls >= math.log(slot / DELTA) * RATIO ** (-2 * depth):
            pulls, unsplit = 0, unsplit - 1
        if unsplit == 0:
            depth, unsplit = depth + 1, 2 ** (depth + 1)
    return found


sizes = [1e4, 1e6, 1e8, 1e10, 1e12]
ratios = [right_side(size) / (DIMENSION * math.sqrt(size) * math.log(size)) for size in sizes]
print("Remark on Theorem 1: the right side of (6) is O(d sqrt(T) log T), so its ratio to that stays bounded.")
for size, ratio in zip(sizes, ratios, strict=True):
    of_slots = size / (DIMENSION * math.sqrt(size) * math.log(size))
    print(f"  T = {size:.0e}: ratio {ratio:,.2f}, of which T alone {of_slots:,.2f}")
slope = math.log(ratios[-1] / ratios[-2]) / math.log(sizes[-1] / sizes[-2])
print(f"The ratio grows like T^{slope:.2f} at the end: (6) is linear in T, and T slots lose at most T anyway.")

horizons = [10**2, 10**3, 10**4, 10**5]
sums = largest_sums(horizons)
print("The sum of nu_1 rho^h that (6) writes as T, over sqrt(T) log T:")
for size, total in zip(horizons, sums, strict=True):
    print(f"  T = {size:,}: {total / (math.sqrt(size) * math.log(size)):.2f}")
power = math.log(2 / RATIO) / math.log(2 / RATIO**2)
print(f"It is not O(sqrt(T) log T) either: a bound is T^a (log T)^(1-a), a = {power:.2f}.")
sys.exit(0 if slope > 0.25 and sums[-1] / sums[-2] > 10**0.6 else 1)
