"""Counterexample to Proposition 4, Eq. (17): two orthonormal ground truths and one expert.

W = Delta = 1, so (17) is 0 at every round. Either one sample is the signal v_n = w_n, as in Definition 1, or all are
Gaussian, as in the proposition's proof. Exits 0 if simulated experts forget in both cases.
"""

import sys

import numpy as np

FEATURES, SAMPLES, ROUNDS, EXPERTS = 10, 6, 100, 1000  # d, s, t, and the number of independent experts
TRUTHS = np.eye(2, FEATURES)
RATIO = 1 - SAMPLES / FEATURES  # r


def forgetting(rng: np.random.Generator, has_signal: bool) -> np.ndarray:
    """F_t of (15) of every expert, all of which start at 0."""
    tasks = rng.integers(2, size=(ROUNDS, EXPERTS))
    experts, errors = np.zeros((EXPERTS, FEATURES)), []
    for task in tasks:
        samples = rng.standard_normal((EXPERTS, FEATURES, SAMPLES))
        if has_signal:
            samples[:, :, 0] = TRUTHS[task]
        bases, _ = np.linalg.qr(samples)  # bases of the samples' spans
        experts += np.einsum("bds,bes,be->bd", bases, bases, TRUTHS[task] - experts)  # (5)
        errors.append(np.sum((experts - TRUTHS[task]) ** 2, axis=1))
    at_the_end = np.sum((experts - TRUTHS[tasks]) ** 2, axis=2)
    return np.mean(at_the_end[:-1] - errors[:-1], axis=0)


def main() -> int:
    earlier = np.arange(1, ROUNDS)  # tau
    norm = np.mean(np.sum(TRUTHS**2, axis=1))  # W
    gap = np.mean(np.sum((TRUTHS[:, None] - TRUTHS) ** 2, axis=2))  # Delta
    drop = RATIO**earlier - RATIO**ROUNDS
    printed = np.mean(drop * gap - drop * norm)
    repaired = printed + np.mean((1 - RATIO) * (1 - RATIO ** (ROUNDS - earlier)) * gap)
    print(f"W = {norm:g}, Delta = {gap:g}, r = {RATIO:g}, t = {ROUNDS}")
    print(f"(17) says that forgetting is {printed:.3f}")
    rng, is_violated = np.random.default_rng(0), True
    for has_signal, name in ((False, "all samples are Gaussian"), (True, "one sample is the signal")):
        found = forgetting(rng, has_signal)
        mean, error = np.mean(found), np.std(found) / np.sqrt(EXPERTS)
        print(f"{EXPERTS} simulated experts forget {mean:.3f} +- {error:.3f} if {name}")
        is_violated = is_violated and abs(mean - printed) > 6 * error
    print(f"with distance 0 in the term l = tau (Appendix H: i) the formula says {repaired:.3f} for Gaussian samples")
    return 0 if is_violated else 1


if __name__ == "__main__":
    sys.exit(main())
