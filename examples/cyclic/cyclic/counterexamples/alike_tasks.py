"""Counterexample: of two pairs of tasks in turn, the more similar pair forgets more."""

import sys

import numpy as np


def forgetting(cosine, num_rounds=2):
    tasks = np.array([[1.0, 0.0], [cosine, np.sqrt(1 - cosine**2)]])
    model, truth = np.zeros(2), np.array([0.0, 1.0])
    for round in range(num_rounds):
        x = tasks[round % 2]
        model = model + x * (x @ (truth - model))  # the nearest solution
    seen = tasks[np.arange(num_rounds) % 2]
    return np.mean((seen @ (model - truth)) ** 2)


print("claimed: the more similar two tasks are, the less is forgotten\n")
print("cosine  forgotten after two rounds")
found = {cosine: forgetting(cosine) for cosine in (1.0, 0.9, 0.8, 0.6, 5 / 13, 0.0)}
for cosine, forgotten in found.items():
    print(f"{cosine:6.3f}  {forgotten:.4f}")
is_violated = found[0.8] > found[5 / 13]
print("\nviolated: at 0.8 more is forgotten than at 5/13" if is_violated else "\nnot violated")
sys.exit(not is_violated)
