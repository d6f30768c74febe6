"""Training of sparse-MoE classifiers as a `System`: full-batch steps, each followed by a projection onto the class."""

import functools
from collections.abc import Callable, Hashable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key, PyTree

from moe_theory.core import constraints
from moe_theory.core.constraints import SHARE
from moe_theory.core.system import System
from moe_theory.generalization import data as source
from moe_theory.generalization import model
from moe_theory.generalization.data import Sample
from moe_theory.generalization.model import ClassifierWeights, Dims, Params

Optimizer = Callable[[Any], optax.GradientTransformation]  # made from a traced learning rate
LONG_STEP = 1e6  # a step, in units of the norm, that aligns an expert with any gradient above about 1e-4


@jax.tree_util.register_static
class Source(str):
    """Name of the sample's distribution, part of a state's structure."""


class State(NamedTuple):
    """The checkpoint."""

    weights: ClassifierWeights
    optimizer_state: PyTree
    sample: Sample
    teacher: ClassifierWeights | None  # labels the inputs of "teacher"
    num_experts: Int[Array, ""]  # T
    num_active: Int[Array, ""]  # k
    label_noise: Float[Array, ""]  # probability that a label of the population is flipped
    source: Source
    round: Int[Array, ""]  # steps done


class Info(NamedTuple):
    """Observables of a round, at the weights of its start."""

    loss: Float[Array, ""]  # the mean of -y f / 2, which training minimises
    error: Annotated[Float[Array, ""], SHARE]  # share of the sample where the sign of f is not y, including f = 0
    mean_square_gate: Annotated[Float[Array, ""], SHARE]  # mean of |a(x_i)|^2: 1 at k = 1, 1/k for equal gates


@functools.lru_cache
def system(dims: Dims, data: str = source.RANDOM_LABELS, optimizer: Optimizer | None = None) -> System:
    """Return a `System` that fits a sparse MoE to a sample of `data`. Equal arguments give the same object.

    Training minimises the mean of -y f / 2, which is the unclipped ramp loss minus 1/2. On random labels minus twice
    this mean is at most the supremum in the Rademacher complexity. A round takes a step on the whole sample, in units
    of a layer's norm (B of experts, W of the router), and then projects onto the norms.

    Args:
        data: one of `data.DATA`.
        optimizer: makes an optax transformation from a traced learning rate, Adam by default.
    Source: Eqs. (3)-(5) of `generalization`, which leaves open how to train.
    Raises: UnknownNameError for unknown data, or InvalidValueError for unsuitable sizes.

    Examples:
        >>> import jax.numpy as jnp
        >>> import moe_theory as mt
        >>> from moe_theory import generalization
        >>> dims = generalization.Dims(max_experts=4, num_features=3, max_samples=16)
        >>> params = generalization.Params(num_experts=4, num_samples=16)
        >>> system = generalization.system(dims, optimizer=generalization.best_experts)
        >>> def observe(state, info):
        ...     return generalization.true_risk(state), generalization.empirical_risk(state), generalization.gap(state)
        >>> state, (true, empirical, gap) = mt.simulate(system, mt.root_key(0), params, num_rounds=3, observe=observe)
        >>> true.tolist(), bool(jnp.allclose(gap, abs(empirical - true)))
        ([0.5, 0.5, 0.5], True)
    """
    source.check_data(dims, data)
    make_transform = optimizer or optax.adam

    def init(key: Key[Array, ""], params: Params) -> State:
        constraints.check(params, dims)
        dtype = jnp.result_type(float)
        weight_key, sample_key, teacher_key = jax.random.split(key, 3)
        teacher = source.draw_teacher(teacher_key, dims) if data == source.TEACHER else None
        weights = model.draw_weights(weight_key, dims, params)
        return State(
            weights=weights,
            optimizer_state=make_transform(jnp.asarray(params.learning_rate, dtype)).init(weights),
            sample=source.draw_sample(sample_key, dims, params, data, teacher),
            teacher=teacher,
            num_experts=jnp.asarray(params.num_experts, jnp.int32),
            num_active=jnp.asarray(params.num_active, jnp.int32),
            label_noise=jnp.asarray(params.label_noise, dtype),
            source=Source(data),
            round=jnp.zeros((), jnp.int32),
        )

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
        del key
        return learn(state, params, optimizer=make_transform)

    return System(init, step)


def learn(state: State, params: Params, *, optimizer: Optimizer = optax.adam) -> tuple[State, Info]:
    """Take one step on the state's own sample, without randomness.

    Source: Eqs. (3)-(5) of `generalization`, which leaves open how to train.

    Examples:
        >>> import jax
        >>> import moe_theory as mt
        >>> from moe_theory import generalization
        >>> dims = generalization.Dims(max_experts=4, num_features=3, max_samples=16)
        >>> params = generalization.Params(num_experts=4, num_samples=16)
        >>> state = jax.jit(generalization.system(dims).init)(mt.root_key(0), params)
        >>> state, info = jax.jit(generalization.learn)(state, params)
        >>> int(state.round), 0 <= float(info.error) <= 1
        (1, True)
    """
    differentiate = jax.value_and_grad(_surrogate, has_aux=True)
    (loss, (outputs, mean_square_gate)), gradients = differentiate(state.weights, state.sample, params)
    transform = optimizer(jnp.asarray(params.learning_rate, outputs.dtype))
    updates: Any
    updates, optimizer_state = transform.update(gradients, state.optimizer_state, state.weights)
    moved = ClassifierWeights(
        experts=_moved(state.weights.experts, updates.experts, params.expert_norm),
        router=_moved(state.weights.router, updates.router, params.router_norm),
    )
    is_wrong = jnp.where(jnp.isnan(outputs), jnp.nan, state.sample.labels * outputs <= 0)  # NaN is not a right answer
    info = Info(loss=loss, error=_mean(state.sample, is_wrong), mean_square_gate=mean_square_gate)
    weights = model.project(moved, params)
    return state._replace(weights=weights, optimizer_state=optimizer_state, round=state.round + 1), info


def best_experts(learning_rate: Any) -> optax.GradientTransformation:
    """Return an optimizer for the largest gap: Adam for the router, and the best linear experts for this router.

    The training loss is linear in linear experts, so the best ones in a ball are at its boundary, along the gradient.
    """
    steps: dict[Hashable, optax.GradientTransformation] = {
        "experts": optax.sgd(LONG_STEP),
        "router": optax.adam(learning_rate),
    }
    # Each part of the weights is labelled with the key of its steps.
    return optax.multi_transform(steps, lambda weights: weights._replace(experts="experts", router="router"))


def empirical_risk(state: State, info: Any = None) -> Float[Array, ""]:
    """Return L_S(f), the mean ramp loss over the sample, in [0, 1]."""
    del info
    outputs = model.outputs(state.weights, state.sample.features, state.num_active, state.num_experts)
    return _mean(state.sample, model.ramp_loss(state.sample.labels, outputs))


def true_risk(state: State, info: Any = None) -> Float[Array, ""]:
    """Return L_D(f), the exact mean ramp loss over the distribution."""
    del info
    return source.true_risk(
        state.weights, state.num_active, state.num_experts, state.source, state.teacher, label_noise=state.label_noise
    )


def gap(state: State, info: Any = None) -> Float[Array, ""]:
    """Return |L_S(f) - L_D(f)|, the generalization error of Eq. (3)."""
    return jnp.abs(empirical_risk(state, info) - true_risk(state, info))


def _surrogate(weights: ClassifierWeights, sample: Sample, params: Params) -> tuple[Array, tuple[Array, Array]]:
    logits = model.logits(weights, sample.features)
    gates = model.gates_straight_through(logits, params.num_active, params.num_experts)
    outputs = jnp.sum(gates * model.expert_outputs(weights, sample.features), axis=1)
    squares = jax.lax.stop_gradient(jnp.sum(jnp.square(gates), axis=1))
    return _mean(sample, -sample.labels * outputs / 2), (outputs, _mean(sample, squares))


def _moved(layers: tuple[Array, ...], updates: tuple[Array, ...], norm: Any) -> tuple[Array, ...]:
    return tuple(layer + jnp.asarray(norm, layer.dtype) * update for layer, update in zip(layers, updates, strict=True))


def _mean(sample: Sample, values: Array) -> Float[Array, ""]:
    dtype = sample.labels.dtype
    count = jnp.sum(sample.is_drawn, dtype=jnp.int32).astype(dtype)
    return jnp.sum(jnp.where(sample.is_drawn, values, 0).astype(dtype)) / count
