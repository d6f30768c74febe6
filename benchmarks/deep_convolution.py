"""Convolution by patches against XLA's own: gradient steps of the deep networks inside a loop, outside, under vmap.

taskset -c 1 python benchmarks/deep_convolution.py                (about two minutes on one core of a CPU)
taskset -c 1 python benchmarks/deep_convolution.py --batch 32     (ResNet-18 at the papers' minibatch: ten minutes)

Every line is one ratio, time by XLA over time by patches, with both times beside it; above 1 patches are faster. Both
ways are timed in one process, by turns, and the fastest of their runs counts. Steps are SGD of a squared loss on random
images; inside a loop means two steps in `lax.fori_loop`, whose number of rounds the compiler does not know.
"""

import argparse
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp

from moe_theory.deep import networks
from moe_theory.deep.layers import batches
from moe_theory.deep.networks import five_layer, resnet

WAYS = ("patches", "xla")
STEPS = 2
ENOUGH = 5  # seconds of runs after which no other is begun


class Timed(NamedTuple):
    compiling: float  # seconds
    step: float  # seconds


def step(network, weights, images):
    """One step of SGD."""

    def loss(params):
        outputs, statistics = network.apply(networks.Weights(params, weights.statistics), images, True)
        return jnp.mean(jnp.square(outputs)), statistics

    slopes, statistics = jax.grad(loss, has_aux=True)(weights.params)
    return networks.Weights(jax.tree.map(lambda a, b: a - 1e-3 * b, weights.params, slopes), statistics)


def program(network, is_loop, num_experts):
    def once(weights, images):
        return step(network, weights, images)

    take = once if num_experts == 1 else jax.vmap(once, in_axes=(0, None))

    def run(weights, images, num_steps):
        if is_loop:
            return jax.lax.fori_loop(0, num_steps, lambda _, carried: take(carried, images), weights)
        return take(weights, images)

    return jax.jit(run)


def times(make, shape, batch, is_loop, num_experts=1) -> list[Timed]:
    """Time both ways by turns."""
    images = jax.random.normal(jax.random.key(1), (batch, *shape))
    compiled = []  # program and weights, by way
    compiling = []  # seconds, by way
    steps = [[], []]  # seconds of each run, by way
    for way in WAYS:
        network = make(way)
        weights = networks.stacked(network, jax.random.key(0), num_experts, shape, 1)
        if num_experts == 1:
            weights = networks.expert(weights, jnp.int32(0))
        lowered = program(network, is_loop, num_experts).lower(weights, images, STEPS)
        start = time.perf_counter()
        compiled.append((lowered.compile(), weights))
        compiling.append(time.perf_counter() - start)
    first = time.perf_counter()
    while not steps[0] or (time.perf_counter() - first < ENOUGH and len(steps[0]) < 20):
        for number, (run, weights) in enumerate(compiled):
            start = time.perf_counter()
            jax.block_until_ready(run(weights, images, STEPS))
            steps[number].append((time.perf_counter() - start) / (STEPS if is_loop else 1))
    return [Timed(seconds, min(of_way)) for seconds, of_way in zip(compiling, steps, strict=True)]


def line(name, patches, xla):
    print(f"{name:<58} {xla / patches:7.2f}   ({xla:.4g} s / {patches:.4g} s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=4, help="images of a step of ResNet-18")
    batch = parser.parse_args().batch

    def deep(way):
        return resnet(f"resnet18 by {way}", (64, 128, 256, 512), 2, batches(), way)

    def plain(way):
        return five_layer(f"five-layer by {way}", (16, 32), (128, 64), way)

    print(f"{jax.default_backend()}: time by XLA's convolution / time by patches")
    for name, make, shape, size, num_experts in (
        ("five-layer, 100 of 28 x 28 x 1", plain, (28, 28, 1), 100, 1),
        ("five-layer, 25 of 28 x 28 x 1, vmap over 4 experts", plain, (28, 28, 1), 25, 4),
        (f"resnet18, {batch} of 32 x 32 x 3", deep, (32, 32, 3), batch, 1),
    ):
        for is_loop in (True, False):
            patches, xla = times(make, shape, size, is_loop, num_experts)
            where = "inside" if is_loop else "outside"
            line(f"{name}, {where}", patches.step, xla.step)
            line(f"    compiling it, {where}", patches.compiling, xla.compiling)


if __name__ == "__main__":
    main()
