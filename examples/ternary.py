"""A top-1 sparse mixture of linear experts whose weights are -1, 0 and 1, trained for a bound on its risk.

A certificate bounds the risk by the length of a code for the weights. Weights of three levels have short codes, of log2
3 bits each. Norms are bounded before any sample is seen, by sqrt(d) for each row. `python examples/ternary.py` trains a
mixture that tells digits of 5 or more from the others, and prints the bounds on its risk.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from moe_theory import generalization
from moe_theory.core.constraints import Count, require
from moe_theory.core.digits import handwritten_digits
from moe_theory.core.errors import InvalidValueError

LEARNING_RATE = 0.02  # of Adam, at the start
BATCH = 256  # samples in a step
SHARPNESS = 0.5  # of the gates in training. The choice of the expert does not depend on it
BALANCE = 0.1  # weight of the loss that keeps experts in use


class Ternary(NamedTuple):
    """Weights of router and experts, each -1, 0 or 1."""

    router: Float[np.ndarray, "d T"]
    experts: Float[np.ndarray, "T d K"]  # one output for two classes, otherwise one for each class


def train(
    features: Float[np.ndarray, "m d"],
    labels: Int[np.ndarray, " m"],
    num_experts: int,
    num_steps: int = 1500,
    seed: int = 0,
) -> Ternary:
    """Train a mixture by Adam on weights that are rounded in each step.

    Gradients pass through the rounding as if it were not there (Bengio, Leonard and Courville 2013). The output of the
    chosen expert is multiplied by its gate, so that the router learns. A loss keeps experts in use (Fedus, Zoph and
    Shazeer 2022).

    Args:
        labels: classes from 0 on.
    Raises: InvalidValueError unless labels give one class for each row.

    Examples:
        >>> import numpy as np
        >>> from examples import ternary
        >>> features = np.float32([[1, -1], [1, 1], [-1, 1], [-1, -1]])
        >>> weights = ternary.train(features, np.array([1, 1, 0, 0]), num_experts=1)
        >>> ternary.outputs(weights, features)[:, 0] > 0
        array([ True,  True, False, False])
    """
    require(Count, num_experts=num_experts, num_steps=num_steps)
    features, labels = np.asarray(features, np.float32), np.asarray(labels)
    if labels.shape != features.shape[:1] or not labels.size or labels.min() < 0 or labels.dtype.kind not in "iu":
        raise InvalidValueError(
            f"labels of shape {labels.shape} must give a class from 0 on for each of {len(features)} rows of features. "
            "Change labels or features."
        )
    num_classes, chance = int(labels.max()) + 1, np.random.default_rng(seed)
    sizes = ((features.shape[1], num_experts), (num_experts, features.shape[1], num_classes if num_classes > 2 else 1))
    weights = Ternary(*(chance.uniform(-1, 1, size).astype(np.float32) for size in sizes))
    optimiser = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, num_steps))

    @jax.jit
    def step(weights: Ternary, state: optax.OptState, features: Array, labels: Array) -> tuple[Ternary, optax.OptState]:
        updates, state = optimiser.update(jax.grad(_loss)(weights, features, labels), state)
        return optax.apply_updates(weights, updates), state  # pyright: ignore[reportReturnType]

    state = optimiser.init(weights)
    for _ in range(num_steps):
        rows = chance.integers(0, len(features), BATCH)
        weights, state = step(weights, state, features[rows], labels[rows])
    return Ternary(*(np.clip(np.round(np.asarray(leaf)), -1, 1) for leaf in weights))


def outputs(weights: Ternary, features: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m K"]:
    """Return the outputs of the expert with the largest logit. With two classes, an output above 0 means class 1.

    Source: Eq. (5) at k = 1.

    Examples:
        >>> import numpy as np
        >>> from examples import ternary
        >>> weights = ternary.Ternary(router=np.float32([[1, -1]]), experts=np.float32([[[1]], [[-1]]]))
        >>> ternary.outputs(weights, np.float32([[2], [-3]]))
        array([[2.],
               [3.]], dtype=float32)
    """
    chosen = np.argmax(features @ weights.router, axis=1)
    every = np.einsum("md,tdk->mtk", features, weights.experts)
    return every[np.arange(len(features)), chosen]


def _loss(weights: Ternary, features: Array, labels: Array) -> Array:
    router, experts = _rounded(weights.router), _rounded(weights.experts)
    gates = jax.nn.softmax(SHARPNESS * (features @ router))
    chosen = jnp.argmax(gates, axis=1)
    scores = jnp.einsum("md,mdk->mk", features, experts[chosen]) * jnp.max(gates, axis=1, keepdims=True)
    if scores.shape[1] == 1:
        scores = jnp.concatenate([jnp.zeros_like(scores), scores], axis=1)
    shares = jnp.mean(jax.nn.one_hot(chosen, gates.shape[1]), axis=0)
    balance = gates.shape[1] * jnp.sum(shares * jnp.mean(gates, axis=0))
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(scores, labels)) + BALANCE * balance


def _rounded(weight: Array | np.ndarray) -> Array:
    return jnp.asarray(weight) + jax.lax.stop_gradient(jnp.clip(jnp.round(weight), -1, 1) - weight)


def main() -> None:
    """Print all bounds on the risk of a mixture trained on scikit-learn's digits, and its loss on test images."""
    pixels, digits, is_test = handwritten_digits()
    blocks = pixels.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16) / 8 - 1
    features = np.hstack([blocks, np.ones((len(blocks), 1))]).astype(np.float32)  # |x|^2 <= 17, and so is |w|^2
    weights = train(features[~is_test], (digits >= 5)[~is_test].astype(int), num_experts=2)
    # The ramp loss is half the error or more. It is 1/2-Lipschitz in the output, which the older bounds need.
    signs = np.where(digits >= 5, 1, -1)
    losses = np.clip((1 - signs * outputs(weights, features)[:, 0]) / 2, 0, 1)
    num_weights = weights.router.size + weights.experts.size
    bounds = generalization.bound(
        training_error=float(losses[~is_test].mean()),
        code_bits=math.ceil(num_weights * math.log2(3)),
        num_samples=int((~is_test).sum()),
        num_experts=2,
        num_active=1,
        num_features=17,
        bits=2,
        expert_norm=4.13,  # sqrt(17)
        router_norm=4.13,
        feature_norm=4.13,
        lipschitz=0.5,
    )
    for bound in bounds:
        print(f"{bound.form.id}: {bound.value:.2f}")
    print(f"loss on the test images: {losses[is_test].mean():.3f}")


if __name__ == "__main__":
    main()
