"""HCT and T-HOO of PyXAB on merging's rewards, beside Tanbr: bandits on a tree that know neither mix nor network.

    python benchmarks/pyxab_peers.py --slots 2000 --seeds 3 --reward peaked

They search the box [0, 1]^K, whose points become weights when divided by their sum (the origin: equal weights), and
are told psi' r, one number a slot. Each seed's tasks, surface and slots' noise are those of the package's replicate.
"""

import argparse
import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import moe_theory as mt
from moe_theory import merging
from moe_theory.core.errors import MoeTheoryError
from moe_theory.core.random import replicate_keys, step_key
from moe_theory.merging import tree

NU, RHO = 1.0, 0.9  # of the peers, as the defaults of merging.Params


class MissingPeerError(MoeTheoryError):
    """A peer that is not installed."""


def peers() -> dict[str, Callable[[int, int], Any]]:
    """Builders of PyXAB's algorithms, for so many experts and slots.

    Raises: MissingPeerError where PyXAB cannot be imported, naming what to install.
    """
    try:
        hct = importlib.import_module("PyXAB.algos.HCT").HCT
        hoo = importlib.import_module("PyXAB.algos.HOO").T_HOO
        partition = importlib.import_module("PyXAB.partition.BinaryPartition").BinaryPartition
    except ImportError as error:
        raise MissingPeerError(
            f"PyXAB cannot be imported ({error}). Install it: pip install 'moe-theory[peers]'."
        ) from error

    def box(num_experts: int) -> list[list[float]]:
        return [[0.0, 1.0] for _ in range(num_experts)]

    return {
        "HCT": lambda experts, slots: hct(nu=NU, rho=RHO, domain=box(experts), partition=partition),
        "T-HOO": lambda experts, slots: hoo(nu=NU, rho=RHO, rounds=slots, domain=box(experts), partition=partition),
    }


def regret_of_peer(
    build: Callable[[int, int], Any], reward: str, dims: Any, params: Any, slots: int, seed: int
) -> float:
    """R_T of one of `peers` on the replicate `seed`."""
    family = merging.rewards.named(reward)
    best: Any = family.best  # of a family of `rewards.REWARDS`, which all know it
    replicate = replicate_keys(mt.root_key(0), jnp.asarray([seed]))[0]
    world_key, _ = jax.random.split(step_key(replicate, jnp.int32(0)))
    world = jax.jit(lambda key: family.draw(key, dims, params))(world_key)

    @jax.jit
    def serve(time, point):
        total = jnp.sum(point)
        weights = jnp.where(total > 0, point / jnp.where(total > 0, total, 1), 1 / point.shape[0])
        weights = tree.truncated(weights, params.max_active)
        mix = family.mix(world, time, params)
        _, serve_key, _ = jax.random.split(step_key(replicate, time), 3)
        feedback = family.serve(serve_key, world, weights, mix, params)
        lost = jnp.sum(mix * (family.value(world, best(world, mix, params)) - family.value(world, weights)))
        return jnp.sum(mix * feedback.rewards), lost

    np.random.seed(seed)  # noqa: NPY002  (PyXAB draws from NumPy's own state)
    algorithm, total = build(params.num_experts, slots), 0.0
    for time in range(1, slots + 1):
        point = algorithm.pull(time)
        observed, lost = serve(jnp.int32(time), jnp.asarray(point, jnp.float32))
        algorithm.receive_reward(time, float(observed))
        total += float(lost)
    return total


def regret_of(policy: str, reward: str, dims: Any, params: Any, slots: int, seeds: int) -> np.ndarray:
    """R_T of one of the package's policies, on replicates 0, 1, ... (seeds,)."""
    system = merging.system(dims, reward, policy)

    def observe(state, info):
        return info.cumulative_regret

    _, regret = mt.simulate_batch(system, mt.root_key(0), seeds, params, slots, slots, observe=observe)
    return np.asarray(regret[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="HCT and T-HOO of PyXAB beside Tanbr.")
    parser.add_argument("--slots", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--reward", default="peaked", choices=sorted(merging.rewards.REWARDS))
    arguments = parser.parse_args()
    dims, params = merging.Dims(max_rounds=arguments.slots), merging.Params()
    try:
        builders = peers()
    except MissingPeerError as error:
        parser.exit(2, f"{error}\n")
    setting = (arguments.reward, dims, params, arguments.slots)
    rows = {policy: regret_of(policy, *setting, arguments.seeds) for policy in ("tanbr", "average")}
    for name, build in builders.items():
        rows[name] = np.array([regret_of_peer(build, *setting, seed) for seed in range(arguments.seeds)])
    print(f"regret after {arguments.slots} slots, reward {arguments.reward!r}, {arguments.seeds} seeds: mean (each)")
    for name, regrets in rows.items():
        print(f"{name:>8}  {regrets.mean():8.1f}  ({', '.join(f'{regret:.0f}' for regret in regrets)})")


if __name__ == "__main__":
    main()
