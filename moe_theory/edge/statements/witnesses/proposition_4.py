"""Proposition 4, (22): with one server and ten tasks the error is a tenth below what is stated."""

import sys

import numpy as np

features, samples, tasks, replicates = 15, 10, 10, 8_000  # p and s of Fig. 3
truths = np.eye(2, features)  # w_1 and w_2, orthonormal; arrivals are one or the other, with probability 1/2
rng = np.random.default_rng(0)

arrived = rng.integers(2, size=(tasks, replicates))
model = np.zeros((replicates, features))
for kind in arrived:  # the server is the nearest, the most powerful and the only one
    # Every column is isotropic, the signal's too: the rotational symmetry that the proof of (34) takes.
    columns = np.linalg.qr(rng.standard_normal((replicates, features, samples)))[0]
    change = truths[kind] - model  # the nearest model that fits: the difference is projected onto the columns
    model += np.einsum("bps,bqs,bq->bp", columns, columns, change, optimize=True)
errors = np.mean([np.sum((model - truths[kind]) ** 2, axis=1) for kind in arrived], axis=0)
mean, deviation = errors.mean(), errors.std() / np.sqrt(replicates)

faded = (1 - samples / features) ** tasks  # r^L with L = T
gap = np.mean([np.sum((one - other) ** 2) for one in truths for other in truths])  # E|w_n - w_n'|^2 = 1
stated = faded * 1 + (1 - faded) * gap
corrected = faded * 1 + (1 - 1 / tasks) * (1 - faded) * gap
print(f"T = {tasks}, p = {features}, s = {samples}, two orthonormal truths, one server")
print(f"stated by (22):                {stated:.4f}")
print(f"error of {replicates} runs:          {mean:.4f} +- {deviation:.4f}")
print(f"without the own-task term:     {corrected:.4f}")
is_violated = abs(mean - stated) > 6 * deviation
print("violated" if is_violated else "not violated")
sys.exit(not is_violated)
