"""Merging of a model's experts into one per layer, by given weights, by Fisher information or by RegMean.

Expert e's Fisher information and Gram matrices use inputs of its own tasks, whose numbers are e modulo K.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from moe_theory.core import programs
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.tasks import Examples
from moe_theory.merging.testbed.transformer import Experts, Model

CALIBRATION_SIZE = 64  # inputs of each expert's own tasks
FISHER_FLOOR = 1e-8  # added to information, so that the merge is the average where all information is 0
OFF_DIAGONAL = 0.9  # RegMean's factor on off-diagonal entries of the Gram matrices
RIDGE = 1e-6  # relative to the mean diagonal entry. Units that are dead in all experts need it


def weighted(model: Model, weights: Float[Array, " K"]) -> Model:
    """Return one expert per layer, the weighted average of the experts. Source: Eq. (1) of `merging`."""
    merged = [transformer.merge_experts(experts, weights) for experts in experts_of(model)]
    return transformer.replace_experts(model, merged)


def average(model: Model) -> Model:
    return weighted(model, equal_weights(model))


def equal_weights(model: Model) -> Float[Array, " K"]:
    num_experts = num_experts_of(model)
    return jnp.full(num_experts, 1 / num_experts, jnp.float32)


def fisher(model: Model, calibration: Examples) -> Model:
    """Average every parameter with the diagonal Fisher information as weights.

    Source: M. S. Matena, C. Raffel, "Merging Models with Fisher-Weighted Averaging", NeurIPS 2022, Eq. (4), exact over
        the classes of the experts' own predictions.
    """
    information = fisher_information(model, own_inputs(calibration, num_experts_of(model)))
    merged = list(map(fisher_average, experts_of(model), information))  # layer by layer
    return transformer.replace_experts(model, merged)


def fisher_average(experts: Experts, information: Experts) -> Experts:
    """Return sum_e F_e W_e / sum_e F_e, entry by entry (E = 1)."""

    def mean(part: Float[Array, "E *i"], weights: Float[Array, "E *i"]) -> Float[Array, "1 *i"]:
        weights = weights + FISHER_FLOOR
        return jnp.sum(weights * part, axis=0, keepdims=True) / jnp.sum(weights, axis=0, keepdims=True)

    return Experts(*map(mean, experts, information))


@programs.jit
def fisher_information(model: Model, inputs: Float[Array, "E m s p"]) -> list[Experts]:
    """Return the diagonal of each expert's Fisher information on the inputs of its own tasks."""

    def information_of_expert(arguments: tuple[list[Experts], Float[Array, "m s p"]]) -> list[Experts]:
        expert, examples = arguments
        squares = jax.lax.map(functools.partial(_expected_squares, model, expert), examples)
        return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), squares)

    return jax.lax.map(information_of_expert, (experts_of(model), inputs))


def _expected_squares(model: Model, expert: list[Experts], example: Float[Array, "s p"]) -> list[Experts]:
    """Return E over classes y ~ p(. | x) of the squared gradient of log p(y | x) in one expert's parameters."""

    def log_probabilities(expert: list[Experts]) -> Float[Array, " C"]:
        return jax.nn.log_softmax(transformer.forward(_with_one_expert(model, expert), example[None], single)[0])

    probabilities = jnp.exp(log_probabilities(expert))
    jacobian = jax.jacrev(log_probabilities)(expert)
    return jax.tree.map(lambda leaf: jnp.tensordot(probabilities, jnp.square(leaf), axes=1), jacobian)


def _with_one_expert(model: Model, expert: list[Experts]) -> Model:
    """Return the model with one expert per layer, whose parameters come without the axis E."""
    return transformer.replace_experts(model, [jax.tree.map(lambda leaf: leaf[None], layer) for layer in expert])


def regmean(model: Model, calibration: Examples) -> Model:
    """Fit every linear map by least squares to all experts' maps, each on the inputs of its own tasks.

    Source: X. Jin, X. Ren, D. Preotiuc-Pietro, P. Cheng, "Dataless Knowledge Fusion by Merging Weights of Language
    Models", ICLR 2023, Eq. (2), with off-diagonal entries scaled by `OFF_DIAGONAL`. Biases are weights of a constant
    input 1.
    """
    inputs = own_inputs(calibration, num_experts_of(model))
    merged = []
    for experts, (gram_in, gram_out) in zip(experts_of(model), gram_matrices(model, inputs), strict=True):
        first = regression_mean(_with_bias(experts.w_in, experts.b_in), gram_in)[None]
        second = regression_mean(_with_bias(experts.w_out, experts.b_out), gram_out)[None]
        merged.append(Experts(w_in=first[:, :-1], b_in=first[:, -1], w_out=second[:, :-1], b_out=second[:, -1]))
    return transformer.replace_experts(model, merged)


def regression_mean(
    maps: Float[Array, "E i o"], gram: Float[Array, "E i i"], off_diagonal: float = OFF_DIAGONAL
) -> Float[Array, "i o"]:
    """Return (sum_e G_e)^-1 sum_e G_e W_e with G_e = X_e' X_e, which minimises sum_e |X_e (W - W_e)|^2."""
    eye = jnp.eye(gram.shape[-1], dtype=gram.dtype)
    shrunk = gram * (off_diagonal + (1 - off_diagonal) * eye)
    ridge = RIDGE * jnp.trace(jnp.mean(shrunk, axis=0)) / gram.shape[-1]
    total = jnp.sum(shrunk, axis=0) + ridge * eye
    target = jnp.einsum("eij,ejo->io", shrunk, maps) + ridge * jnp.mean(maps, axis=0)
    return jnp.linalg.solve(total, target)


@programs.jit
def gram_matrices(
    model: Model, inputs: Float[Array, "E m s p"]
) -> list[tuple[Float[Array, "E i i"], Float[Array, "E j j"]]]:
    """Return X'X of the inputs of each expert's linear maps, with a constant 1 for the bias."""

    def grams_of_expert(arguments: tuple[list[Experts], Float[Array, "m s p"]]) -> list[tuple[Array, Array]]:
        expert, examples = arguments
        grams: list[tuple[Array, Array]] = []  # Gram matrices of both maps, by layer

        def moe(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
            flat = tokens.reshape(-1, tokens.shape[-1])
            grams.append((_gram(flat), _gram(jax.nn.relu(flat @ experts.w_in[0] + experts.b_in[0]))))
            return single(experts, tokens, layer)

        transformer.forward(_with_one_expert(model, expert), examples, moe)
        return grams

    return jax.lax.map(grams_of_expert, (experts_of(model), inputs))


def own_inputs(calibration: Examples, num_experts: int) -> Float[np.ndarray, "E m s p"]:
    """Return m evenly spaced inputs of each expert's own tasks."""
    tasks = np.asarray(calibration.tasks)
    inputs = np.asarray(calibration.inputs)
    places_by_expert = [np.flatnonzero(tasks % num_experts == expert) for expert in range(num_experts)]
    size = min(CALIBRATION_SIZE, *map(len, places_by_expert))
    selected = [places[np.linspace(0, len(places) - 1, size).astype(int)] for places in places_by_expert]
    return np.stack([inputs[places] for places in selected])


def experts_of(model: Model) -> list[Experts]:
    return [layer.experts for layer in model.layers]


def num_experts_of(model: Model) -> int:
    return experts_of(model)[0].b_out.shape[0]


def single(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
    """Compute, as an `MoE`, the only expert of a layer."""
    del layer
    return transformer.dense(experts, tokens)


def _with_bias(weights: Float[Array, "E i o"], bias: Float[Array, "E o"]) -> Float[Array, "E j o"]:
    return jnp.concatenate([weights, bias[:, None]], axis=1)


def _gram(rows: Float[Array, "N i"]) -> Float[Array, "j j"]:
    extended = jnp.concatenate([rows, jnp.ones((rows.shape[0], 1), rows.dtype)], axis=1)
    return extended.T @ extended
