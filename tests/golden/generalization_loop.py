"""Training of a sparse-MoE classifier in NumPy, sample by sample; at k = 1 the router has the softmax's slope."""

import math
from typing import NamedTuple

import numpy as np

from .continual_loop import route, softmax

B1, B2, EPS = 0.9, 0.999, 1e-8  # of Adam


class Layers(NamedTuple):
    """Layers of the experts (T, ...) and of the router, from the input on."""

    experts: list[np.ndarray]
    router: list[np.ndarray]


def gate(scores, k):
    chosen = route(scores, k)
    a = np.zeros(len(scores))
    a[chosen] = softmax(scores[chosen])
    return a


def expert(layers, j, x):
    if len(layers.experts) == 1:
        return float(layers.experts[0][j] @ x)
    U, v = layers.experts
    return float(v[j] @ np.maximum(U[j] @ x, 0))


def scores_of(layers, x):
    if len(layers.router) == 1:
        return layers.router[0] @ x
    U, V = layers.router
    return V @ np.maximum(U @ x, 0)


def output(layers, x, k):
    a = gate(scores_of(layers, x), k)
    return sum(a[j] * expert(layers, j, x) for j in range(len(a)) if a[j])


def ramp_loss(y, f):
    return min(max((1 - y * f) / 2, 0.0), 1.0)


def gradient(layers, X, y, k):
    """Of the mean of -y f / 2 over the samples."""
    total = Layers([np.zeros_like(w) for w in layers.experts], [np.zeros_like(w) for w in layers.router])
    for x, label in zip(X, y, strict=True):
        scores = scores_of(layers, x)
        T, a = len(scores), gate(scores, k)
        h = np.array([expert(layers, j, x) for j in range(T)])
        f = float(a @ h)
        slope = -label / (2 * len(X))
        for j in range(T):
            _add_expert(layers, total, j, x, slope * a[j])
        s = softmax(scores) if k == 1 else a
        mean = float(s @ h) if k == 1 else f
        _add_router(layers, total, x, slope * s * (h - mean))
    return total


def _add_expert(layers, total, j, x, slope):
    if len(layers.experts) == 1:
        total.experts[0][j] += slope * x
        return
    U, v = layers.experts
    hidden = np.maximum(U[j] @ x, 0)
    total.experts[1][j] += slope * hidden
    total.experts[0][j] += slope * np.outer(v[j] * (hidden > 0), x)


def _add_router(layers, total, x, slopes):
    if len(layers.router) == 1:
        total.router[0][:] += np.outer(slopes, x)
        return
    U, V = layers.router
    hidden = np.maximum(U @ x, 0)
    total.router[1][:] += np.outer(slopes, hidden)
    total.router[0][:] += np.outer((V.T @ slopes) * (hidden > 0), x)


def adam(g, mean, square, step):
    """What Adam's step number `step` subtracts, for a learning rate of 1, given its moments before."""
    mean = B1 * mean + (1 - B1) * g
    square = B2 * square + (1 - B2) * g**2
    return mean / (1 - B1**step) / (np.sqrt(square / (1 - B2**step)) + EPS)


def into_ball(w, radius):
    length = math.sqrt(float(np.sum(w**2)))
    return w if length <= radius else w * radius / length


def train(layers, X, y, k, *, means, squares, step, rate, B, W):
    """One step of Adam in units of the norms B and W, then a projection on them."""
    g = gradient(layers, X, y, k)
    experts, router = (
        [w - rate * norm * adam(slope, mean, square, step) for w, slope, mean, square in zip(*parts, strict=True)]
        for norm, *parts in (
            (B, layers.experts, g.experts, means.experts, squares.experts),
            (W, layers.router, g.router, means.router, squares.router),
        )
    )
    experts = [np.stack([into_ball(w, B) for w in layer]) for layer in experts]
    if len(router) == 1:
        return Layers(experts, [np.stack([into_ball(v, W) for v in router[0]])])
    return Layers(experts, [into_ball(layer, W) for layer in router])
