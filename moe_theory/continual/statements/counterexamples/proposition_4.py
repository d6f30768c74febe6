"""Counterexample to Proposition 4, Eq. (17): two orthonormal ground truths, one expert, Gaussian samples.

All samples are Gaussian, as in the proposition's proof. W = Delta = 1, so that (17) is 0 at every round. Exits 0 if the
forgetting of simulated experts is not 0, else 1.
"""

import sys

import numpy as np

FEATURES, SAMPLES, ROUNDS, EXPERTS = 10, 6, 100, 1000  # d, s, t, and how many experts are simulated apart
TRUTHS = np.eye(2, FEATURES)
RATIO = 1 - SAMPLES / FEATURES  # r


def forgetting(rng: np.random.Generator) -> np.ndarray:
    """F_t of (15) of every expert, all of which start at 0."""
    tasks = rng.integers(2, size=(ROUNDS, EXPERTS))
    experts, errors = np.zeros((EXPERTS, FEATURES)), []
    for task in tasks:
        bases, _ = np.linalg.qr(rng.standard_normal((EXPERTS, FEATURES, SAMPLES)))  # of the samples' spans
        experts += np.einsum("bds,bes,be->bd", bases, bases, TRUTHS[task] - experts)  # (5)
        errors.append(np.sum((experts - TRUTHS[task]) ** 2, axis=1))
    at_the_end = np.sum((experts - TRUTHS[tasks]) ** 2, axis=2)
    return np.mean(at_the_end[:-1] - errors[:-1], axis=0)


def main() -> int:
    found = forgetting(np.random.default_rng(0))
    mean, error = np.mean(found), np.std(found) / np.sqrt(EXPERTS)
    earlier = np.arange(1, ROUNDS)  # tau
    norm = np.mean(np.sum(TRUTHS**2, axis=1))  # W
    gap = np.mean(np.sum((TRUTHS[:, None] - TRUTHS) ** 2, axis=2))  # Delta
    drop = RATIO**earlier - RATIO**ROUNDS
    printed = np.mean(drop * gap - drop * norm)
    repaired = printed + np.mean((1 - RATIO) * (1 - RATIO ** (ROUNDS - earlier)) * gap)
    print(f"W = {norm:g}, Delta = {gap:g}, r = {RATIO:g}, t = {ROUNDS}")
    print(f"(17) says that forgetting is {printed:.3f}")
    print(f"{EXPERTS} simulated experts forget {mean:.3f} +- {error:.3f}")
    print(f"with distance 0 in the term l = tau (Appendix H: i) the formula says {repaired:.3f}")
    return 0 if abs(mean - printed) > 6 * error else 1


if __name__ == "__main__":
    sys.exit(main())
