"""Tanbr as plain NumPy writes it, slot by slot: gradients are vectors, Z is a matrix, the loss is a sum over slots."""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass
class Leaf:
    """A box, its candidate weights and its pulls."""

    lower: np.ndarray
    upper: np.ndarray
    point: np.ndarray
    depth: int = 0
    count: int = 0


@dataclasses.dataclass
class Bandit:
    """Tanbr between slots."""

    layers: list[np.ndarray]  # theta
    start: list[np.ndarray]  # theta_0
    Z: np.ndarray
    seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]]  # of each slot: weights, rewards, which tasks there were
    leaves: list[Leaf]


def forward(layers, x):
    activations = [x]
    for layer in layers[:-1]:
        activations.append(np.maximum(layer @ activations[-1], 0))
    return activations, math.sqrt(layers[-1].shape[1]) * (layers[-1] @ activations[-1])


def gradient(layers, x, psi):
    """Of psi' f(x), a matrix a layer."""
    activations, _ = forward(layers, x)
    delta = math.sqrt(layers[-1].shape[1]) * psi
    parts = []
    for layer, a in zip(reversed(layers), reversed(activations), strict=True):
        parts.append(np.outer(delta, a))
        delta = (layer.T @ delta) * (a > 0)
    return parts[::-1]


def flat(parts):
    return np.concatenate([part.ravel() for part in parts])


def begin(layers, num_experts, B, regularization):
    root = Leaf(np.zeros(num_experts), np.ones(num_experts), cut(np.full(num_experts, 1 / num_experts), B))
    return Bandit(layers, layers, regularization * np.eye(flat(layers).size), [], [root])


def bounds(bandit, psi, *, nu, rho, gamma):
    """Eq. (4) of every leaf."""
    w = bandit.layers[-1].shape[1]
    inverse = np.linalg.inv(bandit.Z)
    values = []
    for leaf in bandit.leaves:
        g = flat(gradient(bandit.layers, leaf.point, psi))
        estimate = psi @ forward(bandit.layers, leaf.point)[1]
        values.append(estimate + nu * rho**leaf.depth + gamma * math.sqrt(g @ inverse @ g / w))
    return values


def loss_gradient(bandit, layers, regularization):
    """Of the paper's sum over slots, divided by the number of its squares."""
    total = [regularization * (layer - first) for layer, first in zip(layers, bandit.start, strict=True)]
    count = 0
    for x, rewards, present in bandit.seen:
        f = forward(layers, x)[1]
        for v in np.flatnonzero(present):
            count += 1
            parts = gradient(layers, x, np.eye(len(f))[v])
            total = [one + (f[v] - rewards[v]) * part for one, part in zip(total, parts, strict=True)]
    return [one / max(count, 1) for one in total]


def learn(bandit, chosen, psi, rewards, counts, t, *, C, nu, rho, delta, regularization, rate, J, B):
    """Lines 9 to 14 of Algorithm 1, with splits along each dimension in turn."""
    leaf = bandit.leaves[chosen]
    w = bandit.layers[-1].shape[1]
    leaf.count += 1
    g = flat(gradient(bandit.layers, leaf.point, psi))
    bandit.Z = bandit.Z + np.outer(g, g) / w
    bandit.seen.append((leaf.point, rewards, counts > 0))
    if leaf.count >= C**2 * math.log(t / delta) / nu**2 * rho ** (-2 * leaf.depth):
        children = [child for child in halves(leaf, B) if child is not None]
        bandit.leaves[chosen] = children[0]
        bandit.leaves += children[1:]
    for _ in range(J):
        slope = loss_gradient(bandit, bandit.layers, regularization)
        bandit.layers = [layer - rate / w * part for layer, part in zip(bandit.layers, slope, strict=True)]


def halves(leaf, B):
    k = leaf.depth % len(leaf.lower)
    middle = (leaf.lower[k] + leaf.upper[k]) / 2
    boxes = [(leaf.lower.copy(), leaf.upper.copy()) for _ in range(2)]
    boxes[0][1][k] = middle
    boxes[1][0][k] = middle
    return [child(lower, upper, leaf.depth + 1, B) for lower, upper in boxes]


def child(lower, upper, depth, B):
    """A leaf with the point of its diagonal that is on the simplex, if there is one."""
    if lower.sum() > 1 or upper.sum() < 1:
        return None
    share = (1 - lower.sum()) / (upper.sum() - lower.sum())
    return Leaf(lower, upper, cut(lower + share * (upper - lower), B), depth)


def cut(x, B):
    """The B largest, of equal ones the first, divided by their sum."""
    kept = np.zeros_like(x)
    for k in sorted(range(len(x)), key=lambda k: (-x[k], k))[:B]:
        kept[k] = x[k]
    return kept / kept.sum()
