"""The first-order term of what costs tell of features, where gates are weak and where they are not (`loads.md`).

python -m benchmarks.cost_channel    # a minute of two cores

For each setting: by how much forgetting in runs is off what is expected along their routes, in per cent; the term of
first order of that, from the derivative of a route's log chance in its costs and from features drawn anew along the
route; and the change of that log chance by the runs' own costs, to first order, in the median of its size.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory import continual
from moe_theory.continual.algorithm import balance_cost
from moe_theory.core import gating

RUNS = 1024
REPLAYS = 8  # of a run's route, with features drawn anew
SETTINGS = {
    "two samples, signals that are the truths": (continual.Dims(12, 6, 10, 2), 150, {"signal_scale": 1.0}),
    "Fig. 2's sizes": (continual.Dims(10, 6, 10, 6), 100, {}),
}
nodes, weights = np.polynomial.legendre.leggauss(24)
NODES, WEIGHTS = (nodes + 1) / 2, weights / 2  # on (0, 1)


def run(dims: Any, params: Any, num_rounds: int, key: Key[Array, ""]) -> tuple[Any, tuple[Array, ...]]:
    """A run's pool; of each round the task, the expert, the features' sum, the cost, whether gates are fixed; F_T."""
    begin_key, rounds_key = jax.random.split(key)

    def step(state: Any, key: Key[Array, ""]) -> tuple[Any, tuple[Array, ...]]:
        arrival, perturbation = continual.draw(key, dims, state.pool, params)
        after, info = continual.learn(state, arrival, perturbation, params)
        shown = info.task, info.expert, arrival.features.sum(axis=1), info.update_norm, after.terminated
        return after, (*shown, info.forgetting)

    state = continual.system(dims).init(begin_key, params)
    state, records = jax.lax.scan(step, state, jax.random.split(rounds_key, num_rounds))
    return state.pool, (*records[:-1], records[-1][-1])


def log_chance(
    costs: Float[Array, " T"],
    experts: Int[Array, " T"],
    inputs: Float[Array, "T d"],
    fixed: Bool[Array, " T"],
    params: Any,
    num_experts: int,
) -> Float[Array, ""]:
    """The log chance of a route, given what its moves cost: h + r is largest at the expert that was chosen."""
    indices = jnp.arange(num_experts)

    def step(carry: tuple[Array, ...], move: tuple[Array, ...]) -> tuple[tuple[Array, ...], Array]:
        gates, visits, time = carry
        expert, gate_input, cost, is_fixed = move
        outputs = gates @ gate_input
        ahead = jnp.clip(NODES[:, None] + (outputs[expert] - outputs)[None, :] / params.perturbation_scale, 0, 1)
        chance = jnp.sum(WEIGHTS * jnp.prod(jnp.where(indices == expert, 1, ahead), axis=1))
        visits = visits + (indices == expert)
        charged = jnp.where(indices == expert, cost + balance_cost(visits, time, params), 0)
        moved = gates - params.learning_rate * gating.gate_gradient(jax.nn.softmax(outputs), gate_input, charged)
        return (jnp.where(is_fixed, gates, moved), visits, time + 1), jnp.log(jnp.maximum(chance, 1e-12))

    start = jnp.zeros((num_experts, inputs.shape[1])), jnp.zeros(num_experts), jnp.ones(())
    return jnp.sum(jax.lax.scan(step, start, (experts, inputs, costs, fixed))[1])


def replay(dims: Any, pool: Any, tasks: Int[Array, " T"], experts: Int[Array, " T"], key: Key[Array, ""]) -> Any:
    """What moves are, and F_T, with features drawn anew along a route."""
    samples = jax.random.normal(key, (len(tasks), dims.num_features, dims.num_samples - 1))

    def step(models: Array, given: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        task, expert, noise = given
        basis = jnp.linalg.qr(jnp.concatenate([pool.signals[task][:, None], noise], axis=1))[0]
        missing = pool.truths[task] - models[expert]
        change = basis @ (basis.T @ missing)
        return models.at[expert].add(change), (jnp.linalg.norm(change), jnp.sum((missing - change) ** 2))

    models, (moves, fresh) = jax.lax.scan(
        step, jnp.zeros((dims.max_experts, dims.num_features)), (tasks, experts, samples)
    )
    errors = jnp.sum((models[experts] - pool.truths[tasks]) ** 2, axis=1)
    return moves, jnp.sum((errors - fresh)[:-1]) / (len(tasks) - 1)


@functools.partial(jax.jit, static_argnums=(0, 2))
def terms(dims: Any, params: Any, num_rounds: int, keys: Key[Array, " B"]) -> tuple[Array, ...]:
    """Of each run F_T, what is expected of it, the first-order term, and the log chance's change."""

    def terms_of_run(key: Key[Array, ""]) -> tuple[Array, ...]:
        run_key, replay_key = jax.random.split(key)
        pool, (tasks, experts, inputs, costs, fixed, forgetting) = run(dims, params, num_rounds, run_key)
        score = jax.grad(log_chance)(costs, experts, inputs, fixed, params, dims.max_experts)
        replay_route = functools.partial(replay, dims, pool, tasks, experts)
        moves, replayed = jax.vmap(replay_route)(jax.random.split(replay_key, REPLAYS))
        covariance = (moves - moves.mean(axis=0)).T @ (replayed - replayed.mean()) / (REPLAYS - 1)
        return forgetting, replayed.mean(), score @ covariance, score @ (costs - moves.mean(axis=0))

    return jax.lax.map(terms_of_run, keys, batch_size=64)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    for name, (dims, num_rounds, choices) in SETTINGS.items():
        params = continual.Params(num_experts=dims.max_experts, num_clusters=dims.num_tasks, **choices)
        keys = jax.random.split(jax.random.key(0), RUNS)
        forgetting, expected, first_order, change = map(np.asarray, terms(dims, params, num_rounds, keys))
        percent = expected.mean() / 100
        words = [
            f"{label} {part.mean() / percent:.2f} ± {part.std() / RUNS**0.5 / percent:.2f} %"
            for label, part in (("off by", forgetting - expected), ("first order", first_order))
        ]
        print(f"{name}: {', '.join(words)}; log chance moved by {np.median(np.abs(change)):.2g}")


if __name__ == "__main__":
    main()
