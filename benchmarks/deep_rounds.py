"""A round of the deep experiments in one compiled scan, against Python loops over rounds; what ResNet-18 costs to
compile.

    python benchmarks/deep_rounds.py            # the small presets on digits: about two minutes
    python benchmarks/deep_rounds.py --resnet   # also compiles the CIFAR-10 preset, on made-up images
    python benchmarks/deep_rounds.py --torch    # also the MNIST preset's network against the same in plain PyTorch

Ratios are within one process, of the best of several runs. `rounds in Python` calls a compiled round again and again;
`steps in Python` compiles the draw of a task, a gradient step and a forward pass, as training code is mostly written,
and has no router. Its steps are plain SGD, also where the preset's optimizer is Adam, which takes longer.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from moe_theory.core import engine
from moe_theory.core.machine import available_cores
from moe_theory.core.random import replicate_keys, root_key, step_key
from moe_theory.core.system import observe_info, simulate
from moe_theory.deep import continual, networks, reading, tasks, training
from moe_theory.deep.datasets import DataSet, Images, load
from moe_theory.deep.networks import NETWORKS, Weights
from moe_theory.deep.presets import Preset, preset
from moe_theory.deep.tasks import inputs_of, pool_of

TIMES = 3
BATCH, STEPS, TESTED, PART = 100, 20, 10_000, 500  # of the network beside PyTorch's
KEY = replicate_keys(root_key(0), jnp.arange(1))[0]


def seconds(run) -> float:
    """The best of several runs, the first of which compiles."""
    jax.block_until_ready(run())
    best = float("inf")
    for _ in range(TIMES):
        began = time.perf_counter()
        jax.block_until_ready(run())
        best = min(best, time.perf_counter() - began)
    return best


def compare(name: str) -> None:
    """Print the seconds of a run of a preset's largest number of experts, three ways."""
    of = preset(name)
    data = load(of.data)
    system, pool = of.system(data), pool_of(data, of.classes)
    params = reading("balanced").params(**list(of.cells().values())[-1])
    start = jax.jit(lambda key: continual.begin(key, of.dims, params, pool))(step_key(KEY, 0))

    def scan():
        return simulate(system, KEY, params, of.num_rounds, state=start)[1]

    one_round = jax.jit(system.step)

    def rounds_in_python():
        state, infos = start, []
        for time_ in range(1, of.num_rounds + 1):
            state, info = one_round(step_key(KEY, time_), state, params)
            infos.append(info)
        return infos

    whole, rounds, steps = seconds(scan), seconds(rounds_in_python), seconds(by_steps(of, start, params))
    each = 1e3 * whole / of.num_rounds
    print(
        f"{name}: {each:.2f} ms a round in a scan; rounds in Python take {rounds / whole:.2f} times that, "
        f"steps in Python {steps / whole:.2f} times"
    )


def by_steps(of: Preset, start, params):
    """Training alone, the router left out, as a Python loop over compiled gradient steps."""
    network = NETWORKS[of.dims.network]
    pool = start.pool
    draw = jax.jit(lambda key, pool: tasks.draw(key, of.dims, pool, params)[0])
    inputs_of_rows = jax.jit(lambda rows, pool: inputs_of(pool, pool.train.pixels[rows]))

    @jax.jit
    def step(weights, inputs, labels, batch, task):
        def loss(parameters):
            outputs, _ = network.apply(Weights(parameters, weights.statistics), inputs[batch], True)
            return jnp.mean(training.losses(outputs, labels[batch], task, params))

        gradient = jax.grad(loss)(weights.params)
        return weights._replace(params=jax.tree.map(lambda p, g: p - 0.1 * g, weights.params, gradient))

    evaluate = jax.jit(lambda weights, pool: network.apply(weights, inputs_of(pool, pool.test.pixels), False)[0])

    def run():
        found = []
        for time_ in range(1, of.num_rounds + 1):
            arrival = draw(step_key(KEY, time_), pool)
            weights = networks.expert(start.experts, jnp.int32(0))
            inputs, labels = inputs_of_rows(arrival.images, pool), pool.train.labels[arrival.images]
            for batch in np.asarray(arrival.batches):
                weights = step(weights, inputs, labels, batch, arrival.task)
            found.append(evaluate(weights, pool))
        return found

    return run


def against_torch() -> None:
    """Print what a gradient step and an evaluation of the MNIST preset's network take, and those in plain PyTorch."""
    import torch
    from torch import nn

    torch.set_num_threads(available_cores())
    layers = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    layers += [nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1)]
    peer = nn.Sequential(*layers)
    descent = torch.optim.SGD(peer.parameters(), lr=0.1)
    random = np.random.default_rng(0)
    images, labels = random.normal(size=(TESTED, 28, 28, 1)).astype(np.float32), random.integers(0, 2, BATCH)
    their_images, their_labels = torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(labels).float()

    def their_steps():
        for _ in range(STEPS):
            descent.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(peer(their_images[:BATCH])[:, 0], their_labels)
            loss.backward()
            descent.step()
        return 0.0

    def their_evaluation():
        with torch.no_grad():
            return [peer(part).numpy() for part in their_images.split(PART)]

    network = NETWORKS["five-layer"]
    weights = network.init(KEY, (28, 28, 1), 1)

    def our_steps(weights, images):
        def step(weights, _):
            def loss(parameters):
                outputs, _ = network.apply(Weights(parameters, weights.statistics), images, True)
                return jnp.mean(
                    training.losses(outputs, jnp.asarray(labels), jnp.int32(1), reading("balanced").params())
                )

            gradient = jax.grad(loss)(weights.params)
            return weights._replace(params=jax.tree.map(lambda p, g: p - 0.1 * g, weights.params, gradient)), None

        return jax.lax.scan(step, weights, length=STEPS)[0]

    def our_evaluation(weights, images):
        return jax.lax.map(lambda part: network.apply(weights, part, False)[0], images.reshape(-1, PART, 28, 28, 1))

    options = engine.cpu_options(is_large=True) if jax.default_backend() == "cpu" else None
    steps, evaluation = (jax.jit(form, compiler_options=options) for form in (our_steps, our_evaluation))
    on_device = jnp.asarray(images)
    runs = [lambda: steps(weights, on_device[:BATCH]), lambda: evaluation(weights, on_device)]
    ours, theirs = [list(map(seconds, pair)) for pair in (runs, [their_steps, their_evaluation])]
    print(
        f"five-layer, {available_cores()} cores: a step of {BATCH} images {1e3 * ours[0] / STEPS:.1f} ms, in PyTorch "
        f"{1e3 * theirs[0] / STEPS:.1f} ms; {TESTED:,} test images {ours[1]:.2f} s, in PyTorch {theirs[1]:.2f} s"
    )


def compile_resnet() -> None:
    """Print what the CIFAR-10 preset takes to trace and to compile, on made-up images of its shape."""
    of, random = preset("continual-cifar10"), np.random.default_rng(0)

    def images(count: int) -> Images:
        return Images(random.integers(0, 256, (count, 32, 32, 3), np.uint8), np.arange(count, dtype=np.int32) % 10)

    data = DataSet("made-up", "made up", images(5000), images(1000), tuple(map(str, range(10))))
    pool = pool_of(data, of.classes)
    params = reading("balanced").params(**list(of.cells().values())[-1])
    start = jax.eval_shape(lambda key: continual.begin(key, of.dims, params, pool), KEY)
    arguments = (of.system(data), KEY, start, params, 10, 1, observe_info, None, False)
    began = time.perf_counter()
    lowered = engine.program(jax.default_backend()).lower(*arguments)
    traced = time.perf_counter()
    lowered.compile()
    print(
        f"continual-cifar10 (ResNet-18, M = 12): {traced - began:.1f} s to trace and lower, "
        f"{time.perf_counter() - traced:.1f} s to compile"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resnet", action="store_true", help="also compile the CIFAR-10 preset")
    parser.add_argument(
        "--torch", action="store_true", help="also compare a network with PyTorch, of the extra `peers`"
    )
    chosen = parser.parse_args()
    if chosen.torch:
        against_torch()
    for name in ("continual-mnist-small", "continual-cifar100-small", "continual-cifar10-small"):
        compare(name)
    if chosen.resnet:
        compile_resnet()
