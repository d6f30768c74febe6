"""Lemma 5, second sentence: outputs stay 1 apart, and no constant bounds the gap of their probabilities from below."""

import sys

import numpy as np

gap, differences = 1.0, []
print("three experts with outputs a, 1 and 0: the last two are 1 apart, and their probabilities")
for lead in (2.0, 5.0, 10.0, 20.0):
    outputs = np.array([lead, gap, 0.0])
    probabilities = np.exp(outputs - lead) / np.exp(outputs - lead).sum()
    differences.append(probabilities[1] - probabilities[2])
    print(f"    a = {lead:g}: {differences[-1]:.3g} apart, claimed at least a constant")
is_violated = differences[-1] < 1e-6 * differences[0]
print("violated: the gap vanishes" if is_violated else "not violated")
sys.exit(not is_violated)
