"""Four tasks: where the first two are opposite, less is forgotten than where they are equal."""

import sys

import numpy as np

P, N, RUNS = 4, 2, 20_000


def forgetting(second, random):
    truths = np.zeros((4, P))
    truths[0, 0], truths[1, 0] = 1.0, second
    total = np.zeros(RUNS)
    for run in range(RUNS):
        model, then = np.zeros(P), np.zeros(3)
        for t in range(4):
            features = random.normal(size=(P, N))
            model = model + features @ np.linalg.solve(features.T @ features, features.T @ (truths[t] - model))
            if t < 3:
                then[t] = np.sum((model - truths[t]) ** 2)
        total[run] = np.mean(np.sum((model - truths[:3]) ** 2, axis=1) - then)
    return total.mean(), total.std() / RUNS**0.5


print("stated: the farther apart two tasks are, the more is forgotten\n")
found = {name: forgetting(second, np.random.default_rng(0)) for name, second in (("equal", 1.0), ("opposite", -1.0))}
for name, (mean, error) in found.items():
    print(f"first two {name:9}  F_4 = {mean:7.4f} +- {error:.4f}")
(equal, one), (opposite, other) = found.values()
is_violated = equal - opposite > 5 * (one**2 + other**2) ** 0.5
print(f"\nviolated: by {equal - opposite:.4f}, in mean 1/12 = 0.0833" if is_violated else "\nnot violated")
sys.exit(not is_violated)
