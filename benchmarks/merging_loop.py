"""Tanbr as one would write it first, in NumPy: a loop over slots, over arms, and over what was seen.

What the package's form is timed against. An arm's gradient is a vector of p numbers, Z^-1 a matrix kept by rank-one
updates, and a training step goes through the slots seen one by one, as reference code of neural bandits does.
"""

import math
import time
from dataclasses import dataclass, field

import numpy as np

PEAK_WIDTH = 0.5  # as of the package's peaked rewards


@dataclass
class Leaf:
    lower: np.ndarray
    upper: np.ndarray
    depth: int = 0
    count: int = 0
    x: np.ndarray = field(init=False)

    def __post_init__(self):
        room = self.upper.sum() - self.lower.sum()
        self.x = self.lower + (1 - self.lower.sum()) / room * (self.upper - self.lower)


def outputs(layers, x):
    activations = [x]
    for layer in layers[:-1]:
        activations.append(np.maximum(layer @ activations[-1], 0))
    return activations, math.sqrt(len(activations[-1])) * layers[-1] @ activations[-1]


def gradient(layers, x, coefficients):
    """Of coefficients' f(x), a matrix a layer, and f(x)."""
    activations, f = outputs(layers, x)
    passed, parts = math.sqrt(len(activations[-1])) * coefficients(f), []
    for layer, a in zip(layers[::-1], activations[::-1], strict=True):
        parts.append(np.outer(passed, a))
        passed = (layer.T @ passed) * (a > 0)
    return parts[::-1], f


def split(leaf, rng):
    """The children that meet the simplex."""
    k, children = rng.integers(len(leaf.lower)), []
    middle = (leaf.lower[k] + leaf.upper[k]) / 2
    for low, high in ((leaf.lower[k], middle), (middle, leaf.upper[k])):
        lower, upper = leaf.lower.copy(), leaf.upper.copy()
        lower[k], upper[k] = low, high
        if lower.sum() <= 1 <= upper.sum():
            children.append(Leaf(lower, upper, leaf.depth + 1))
    return children


def run(num_slots, seen_before=0, K=8, V=8, width=64, nu=1.0, rho=0.9, gamma=0.3, regularization=1.0, rate=0.5, J=8):
    """Seconds of CPU and candidates of each slot, and the regret so far, on a surface with one peak.

    Args:
        seen_before: slots of random weights that are taken as seen, so that slots beyond them can be timed alone.
    """
    rng = np.random.default_rng(0)
    peak, heights, psi = rng.dirichlet(np.ones(K)), rng.uniform(0.5, 1, V), rng.dirichlet(np.ones(V))
    start = [rng.normal(0, math.sqrt(4 / width), (width, K)), rng.normal(0, math.sqrt(2 / width), (V, width))]
    layers, seen, leaves = [layer.copy() for layer in start], [], [Leaf(np.zeros(K), np.ones(K))]
    inverse = np.eye(sum(layer.size for layer in layers)) / regularization

    def rewards_of(x):
        return heights * math.exp(-np.sum((x - peak) ** 2) / (2 * PEAK_WIDTH**2))

    seen += [(x, rewards_of(x)) for x in rng.dirichlet(np.ones(K), seen_before)]
    seconds, counts, regrets = [], [], []
    for t in range(seen_before + 1, seen_before + num_slots + 1):
        began = time.process_time()
        bounds = []
        for leaf in leaves:
            parts, f = gradient(layers, leaf.x, lambda f: psi)
            g = np.concatenate([part.ravel() for part in parts]) / math.sqrt(width)
            bounds.append(psi @ f + nu * rho**leaf.depth + gamma * math.sqrt(g @ inverse @ g))
        chosen = leaves[int(np.argmax(bounds))]
        value = rewards_of(chosen.x)
        seen.append((chosen.x, value + 0.1 * rng.standard_normal(V)))
        parts, _ = gradient(layers, chosen.x, lambda f: psi)
        g = np.concatenate([part.ravel() for part in parts]) / math.sqrt(width)
        product = inverse @ g
        inverse -= np.outer(product, product) / (1 + g @ product)
        counts.append(len(leaves))
        chosen.count += 1
        if chosen.count >= math.log(t) / nu**2 * rho ** (-2 * chosen.depth):
            leaves = [leaf for leaf in leaves if leaf is not chosen] + split(chosen, rng)
        for _ in range(J):
            slope = [regularization * (layer - first) for layer, first in zip(layers, start, strict=True)]
            for x, rewards in seen:
                parts, _ = gradient(layers, x, lambda f, rewards=rewards: f - rewards)
                slope = [total + part for total, part in zip(slope, parts, strict=True)]
            layers = [layer - rate / width / (V * t) * part for layer, part in zip(layers, slope, strict=True)]
        seconds.append(time.process_time() - began)
        regrets.append(psi @ (heights - value))
    return np.array(seconds), np.array(counts), np.cumsum(regrets)
