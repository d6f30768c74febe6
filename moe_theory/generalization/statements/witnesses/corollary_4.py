"""Corollary 4, (9): linear experts behind a learned linear router, of which one is active. Needs NumPy.

Inputs have a place on a line, which the router reads with 2 weights an expert, and a unit vector of their own, which
the experts read. Cut at quantiles, each of T experts has m/T inputs, and in a ball of radius sqrt(m/T) fits any labels
of theirs. Labels are fair coins, so that every true risk is 1/2 under the loss (1 - y f)/2, C = 1/2: the gap is 1/2.
First that is done, for m = 64; then (9) is printed for m = T^5. Exits 0 if the gap outgrows any multiple of it.
"""

import sys

import numpy as np

DELTA, C = 0.05, 0.5


def largest_gap(samples: int, experts: int) -> float:
    rng, share = np.random.default_rng(0), samples // experts
    places, signs = np.sort(rng.uniform(size=samples)), rng.choice([-1.0, 1.0], size=samples)
    vectors = np.eye(samples)  # of the inputs
    cuts = (places[share - 1 : -1 : share] + places[share::share]) / 2
    slopes = np.arange(experts, dtype=float)  # the router's lines, which cross at the cuts
    chosen = np.argmax(slopes * places[:, None] - np.concatenate([[0.0], np.cumsum(cuts)]), axis=1)
    models = np.array([signs * (chosen == expert) @ vectors for expert in range(experts)])
    assert np.max(np.linalg.norm(models, axis=1)) <= np.sqrt(share) + 1e-9
    return 0.5 - float(np.mean((1 - signs * np.sum(models[chosen] * vectors, axis=1)) / 2))


def right_side(samples: float, experts: int) -> float:
    radius, router = np.sqrt(samples / experts), experts * (2 * experts) ** 2  # router: d p^2, d outputs, p = 2 T
    inside = 2 * router * (1 + np.log(experts)) + router * np.log(2 * samples) + np.log(4 / DELTA)
    return float(4 * C * radius / np.sqrt(samples) + 2 * np.sqrt(inside / (2 * samples)))


found = largest_gap(64, 4)
print(f"m = 64, T = 4: the gap is {found:.3f}, as for any m that T divides")
times = []
for experts in (64, 512, 4096, 32768, 262144):
    times.append(found / right_side(float(experts) ** 5, experts))
    print(f"T = {experts}, m = T^5: (9) is {found / times[-1]:.4f}, and the gap {times[-1]:.1f} times as large")
sys.exit(0 if found > 0.499 and min(np.divide(times[1:], times[:-1])) > 2 else 1)
