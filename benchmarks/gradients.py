"""Gradients through many rounds: from which horizon on is a slope in float32 wrong by more than 1 %?

The slope of the first expert's gate output after T rounds in the learning rate, for the same arrivals in both
precisions. Algorithm 1 runs with and without early termination. Run it as `python -m benchmarks.gradients`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import moe_theory as mt
from moe_theory import continual

HORIZONS = (10, 20, 40, 60, 80, 100, 200)
REPLICATES = 64
RATE = 0.3
DIMS = continual.Dims(max_experts=4, num_tasks=3, num_features=8, num_samples=4)


def arrivals_of(replicate: Any, params: continual.Params, num_rounds: int) -> Any:
    """Return the pool of a replicate, its arrivals and its perturbations of routes, in float32."""
    key = jax.random.fold_in(mt.root_key(0), replicate)
    pool = continual.system(DIMS).init(jax.random.fold_in(key, 0), params).pool

    def draw(time: Any) -> Any:
        return continual.draw(jax.random.fold_in(key, time), DIMS, pool, params)

    return pool, *jax.vmap(draw)(jnp.arange(1, num_rounds + 1))


def gate_output(rate: Any, stream: Any, params: continual.Params) -> tuple[Any, Any]:
    """Return the first expert's gate output in the last round as a function of the learning rate, and all routes."""
    pool, arrivals, perturbations = stream
    params = params._replace(learning_rate=rate)

    def one_round(state: continual.State, drawn: Any) -> Any:
        return continual.learn(state, *drawn, params)

    _, info = jax.lax.scan(one_round, continual.begin(DIMS, params, pool), (arrivals, perturbations))
    return info.gate_outputs[-1, 0], info.expert


def cast(stream: Any, dtype: Any) -> Any:
    """Return the same numbers in another precision."""
    leaves = jax.tree.map(np.asarray, stream)
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if leaf.dtype.kind == "f" else leaf, leaves)


def slopes_and_routes(stream: Any, params: continual.Params, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the slope of each replicate and its routes."""
    with jax.enable_x64(dtype == np.float64):
        slope = jax.jit(
            jax.vmap(jax.grad(lambda rate, stream: gate_output(rate, stream, params), has_aux=True), (None, 0))
        )
        slopes, routes = slope(dtype(RATE), cast(stream, dtype))
    return np.asarray(slopes), np.asarray(routes)


def row(params: continual.Params, num_rounds: int) -> str:
    """Return a line of the table for one horizon."""
    draw = jax.jit(jax.vmap(lambda replicate: arrivals_of(replicate, params, num_rounds)))
    stream = draw(np.arange(REPLICATES))
    narrow, narrow_routes = slopes_and_routes(stream, params, np.float32)
    wide, wide_routes = slopes_and_routes(stream, params, np.float64)
    errors = np.abs(narrow - wide) / np.abs(wide)
    worst = int(np.argmax(errors))
    is_rerouted = np.any(narrow_routes != wide_routes, axis=1)
    return (
        f"{num_rounds:6}  {np.sum(errors > 0.01):9}  {np.sum(is_rerouted):12}  {errors[worst]:9.2g}  "
        f"{narrow[worst]:12.6g}  {wide[worst]:12.6g}  {np.max(np.abs(wide)):9.2g}"
    )


def main() -> None:
    start = continual.reading("unit-signal").params(num_experts=4)
    for terminate in (True, False):
        print(f"terminate={terminate}, of {REPLICATES} replicates")
        print("rounds  wrong > 1%  other routes  worst error  there float32, float64   largest slope")
        for num_rounds in HORIZONS:
            print(row(start._replace(terminate=terminate), num_rounds))


if __name__ == "__main__":
    main()
