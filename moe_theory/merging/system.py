"""Online merging as a `System`: slots of tasks, a monitor, a policy and its rewards."""

import functools
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.core.constraints import SHARE, Undefined
from moe_theory.core.errors import unknown_name
from moe_theory.core.system import System
from moe_theory.merging import monitor as monitors
from moe_theory.merging import policies
from moe_theory.merging import rewards as families
from moe_theory.merging.params import Dims, Params, check_params
from moe_theory.merging.policies import Memory, Pick, Policy
from moe_theory.merging.rewards import Environment, Feedback, Reward

UNKNOWN = Undefined("the best weights are not known")  # the reason why regrets are undefined


class State(NamedTuple):
    """State that is carried from slot to slot."""

    world: Environment
    memory: Memory
    monitor: Any
    regret: Annotated[Float[Array, ""], UNKNOWN]  # R_t, the regret so far
    reward: Float[Array, ""]  # sum of psi' f*(x) so far
    round: Int[Array, ""]  # slots done


class Info(NamedTuple):
    """Observables of a slot."""

    pick: Pick
    feedback: Feedback
    mix: Annotated[Float[Array, " V"], SHARE]  # psi_t, the true mix
    estimated_mix: Annotated[Float[Array, " V"], SHARE]  # the monitor's estimate of psi_t
    value: Float[Array, ""]  # psi' f*(x_t)
    regret: Annotated[Float[Array, ""], UNKNOWN]  # psi' (f*(x*) - f*(x_t)) >= 0, NaN where the best weights are unknown
    mean_value: Float[Array, ""]  # mean of `value` over all slots so far
    cumulative_regret: Annotated[Float[Array, ""], UNKNOWN]  # R_t


@functools.lru_cache
def system(
    dims: Dims,
    reward: str | Reward = families.PEAKED,
    policy: str | Policy = policies.TANBR,
    monitor: str = monitors.ORACLE,
    uncertainty: str = policies.EXACT,
) -> System:
    """Return a system in which a policy merges experts slot by slot. Equal arguments give the same object.

    Args:
        reward: a name of `rewards.REWARDS`, or your own `Reward`.
        policy: a name of `policies.POLICIES`, or your own `Policy`.
        monitor: a name of `monitor.MONITORS`, to estimate the task mix.
        uncertainty: a name of `policies.UNCERTAINTIES`, for a neural policy's norm by Z^-1.
    Source: Alg. 1 (Tanbr) and baselines of Sec. V of `merging`.
    Raises: UnknownNameError for unknown names. The system's `init` raises InvalidValueError for parameters out of
        range, or a reward that does not fit `dims`.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import merging
        >>> dims, params = merging.Dims(max_experts=4, num_tasks=4), merging.Params(num_experts=4, max_active=4)
        >>> system = merging.system(dims, reward="shares", policy="average")  # a rival of Tanbr
        >>> state, info = mt.simulate(system, mt.root_key(0), params, num_rounds=5)
        >>> info.pick.weights[-1].tolist(), bool((info.regret >= 0).all())
        ([0.25, 0.25, 0.25, 0.25], True)
    """
    reward_functions = families.named(reward) if isinstance(reward, str) else reward
    chooser = policies.named(policy, dims, uncertainty) if isinstance(policy, str) else policy
    if monitor not in monitors.MONITORS:
        raise unknown_name("monitor", monitor, monitors.MONITORS)
    estimator = monitors.MONITORS[monitor]

    def init(key: Key[Array, ""], params: Params) -> State:
        check_params(dims, params)
        dtype = jnp.result_type(float)
        world_key, memory_key = jax.random.split(key)
        zero = jnp.zeros((), dtype)
        world = reward_functions.draw(world_key, dims, params)
        if not isinstance(reward, str):
            families.check_reward(reward_functions, world, dims, params)
        return State(
            world=world,
            memory=chooser.begin(memory_key, dims, params),
            monitor=estimator.begin(dims, params),
            regret=zero,
            reward=zero,
            round=jnp.zeros((), jnp.int32),
        )

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
        return _play_slot(reward_functions, chooser, estimator, key=key, state=state, params=params)

    return System(init, step)


def _play_slot(
    reward: Reward, policy: Policy, monitor: monitors.Monitor, key: Key[Array, ""], state: State, params: Params
) -> tuple[State, Info]:
    choose_key, serve_key, learn_key = jax.random.split(key, 3)
    time = state.round + 1
    mix = reward.mix(state.world, time, params)
    estimate = monitor.estimate(state.monitor, mix)
    pick = policy.choose(choose_key, state.memory, estimate, time, params)
    feedback = reward.serve(serve_key, state.world, pick.weights, mix, params)
    has_diverged = ~jnp.isfinite(pick.prediction + pick.bonus)  # if the network has diverged, the slot's value is NaN
    value = jnp.where(has_diverged, jnp.nan, jnp.sum(mix * reward.value(state.world, pick.weights)))
    if reward.best is None:
        slot_regret = jnp.full_like(value, jnp.nan)
        carried_regret = state.regret  # stays 0
        cumulative_regret = slot_regret
    else:
        best_weights = reward.best(state.world, mix, params)
        slot_regret = jnp.sum(mix * reward.value(state.world, best_weights)) - value
        carried_regret = state.regret + slot_regret
        cumulative_regret = carried_regret
    state = State(
        world=state.world,
        memory=policy.learn(learn_key, state.memory, pick, estimate, feedback, time, params),
        monitor=monitor.watch(state.monitor, feedback, params),
        regret=carried_regret,
        reward=state.reward + value,
        round=time,
    )
    info = Info(
        pick=pick._replace(found=None),  # only `learn` needs what was found
        feedback=feedback,
        mix=mix,
        estimated_mix=estimate,
        value=value,
        regret=slot_regret,
        mean_value=state.reward / time.astype(value.dtype),
        cumulative_regret=cumulative_regret,
    )
    return state, info
