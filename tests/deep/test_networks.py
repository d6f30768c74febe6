"""Networks: layers against NumPy, sizes, initial weights, stacks of experts, one step of training."""

import functools
import itertools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from refusals import refusal

from moe_theory.core.errors import InvalidValueError
from moe_theory.core.random import root_key
from moe_theory.deep import networks
from moe_theory.deep.layers import (
    EPSILON,
    MOMENTUM,
    Affine,
    RunningStatistics,
    batch_normalized,
    batches,
    convolve,
    group_normalized,
    groups,
    he_kernels,
    max_pool,
)
from moe_theory.deep.networks import NETWORKS, Weights, resnet

KEY = root_key(7)
TINY = resnet("tiny", (4, 8), 1, batches())  # with stride 2, a shortcut, and running statistics
quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
stacked = quickly(networks.stacked, static_argnums=(0, 2, 3, 4))


def drawn(*arguments):
    return jax.device_get(stacked(*arguments))


def convolved(images, kernel, stride=1):
    """One window after another."""
    side = kernel.shape[0]
    margin = (side - 1) // 2
    padded = np.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    rows, columns = (range(0, padded.shape[axis] - side + 1, stride) for axis in (1, 2))
    windows = [[padded[:, i : i + side, j : j + side] for j in columns] for i in rows]
    return np.einsum("rsnijc,ijco->nrso", np.asarray(windows), np.asarray(kernel, np.float64))


def slopes_of(kernel_side, stride, shape, num_outputs=3):
    """Output and both gradients in both forms, in one program, and what they were given."""
    rng = np.random.default_rng(kernel_side + 10 * stride)
    images, kernel = rng.normal(size=shape), rng.normal(size=(kernel_side, kernel_side, shape[-1], num_outputs))

    @quickly
    def both(images, kernel):
        results = []
        for way in ("patches", "xla"):
            output, pull = jax.vjp(lambda *given, way=way: convolve(*given, stride, way), images, kernel)
            results.append((output, *pull(jnp.cos(output))))
        return results

    with jax.enable_x64(True):
        return images, kernel, both(images, kernel)


@pytest.mark.parametrize(
    ("kernel_side", "stride", "shape"),
    [
        (1, 2, (2, 5, 4, 2)),
        (3, 1, (2, 4, 5, 2)),
        (3, 2, (2, 6, 5, 2)),
        (3, 2, (2, 1, 1, 2)),
        (5, 2, (1, 7, 8, 2)),
    ],
)
def test_both_forms_and_their_gradients_agree_with_a_loop(kernel_side, stride, shape):
    """Would catch a flipped kernel, an order of patches that is not the kernel's, a shifted stride or padding."""
    images, kernel, (patches, xla) = slopes_of(kernel_side, stride, shape)
    np.testing.assert_allclose(patches[0], convolved(images, kernel, stride), atol=1e-12)
    for one, other in zip(patches, xla, strict=True):
        assert one.dtype == other.dtype == np.float64
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_the_platform_that_a_program_is_lowered_for_chooses_the_form():
    """Would catch XLA's convolution, and its slow gradient, in programs for a CPU, and patches on an accelerator."""

    def slope(images, kernel):
        return jax.grad(lambda *given: jnp.sum(jnp.square(convolve(*given))), argnums=(0, 1))(images, kernel)

    traced = jax.jit(jax.vmap(slope)).trace(jnp.ones((2, 1, 5, 5, 2)), jnp.ones((2, 3, 3, 2, 2)))
    for platform, is_expected in (("cpu", False), ("cuda", True), ("tpu", True)):
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        assert ("stablehlo.convolution" in text) == is_expected


def test_max_pooling_takes_each_squares_maximum_and_shares_the_gradient_of_ties():
    """Would catch overlapping squares, a left-over row that is pooled, and a gradient that counts ties twice."""
    images = np.random.default_rng(0).integers(0, 3, (2, 5, 6, 3)).astype(np.float32)

    @quickly
    def both(images):
        pooled, pull = jax.vjp(max_pool, images)
        return pooled, pull(jnp.ones_like(pooled))[0]

    pooled, shares = map(np.asarray, both(images))
    for row in range(2):
        for column in range(3):
            square = images[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            largest = square.max((1, 2), keepdims=True)
            np.testing.assert_array_equal(pooled[:, row, column], largest[:, 0, 0])
            ties = square == largest
            got = shares[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            np.testing.assert_allclose(got, ties / ties.sum((1, 2), keepdims=True), rtol=1e-6)
    assert pooled.shape == (2, 2, 3, 3)
    assert not shares[:, 4].any()


def test_images_smaller_than_a_square_are_refused():
    refusal(InvalidValueError, NETWORKS["five-layer"].init, KEY, (1, 9, 1), 1)


def given(channels, seed=0):
    rng = np.random.default_rng(seed)
    values = 3 + 2 * rng.normal(size=(4, 3, 2, channels))
    return values, rng.normal(size=channels), rng.normal(size=channels)


def test_batches_train_by_their_own_moments_and_move_the_running_ones():
    """Would catch a biased running variance, an unbiased one in training, and momentum taken for its complement."""
    values, scale, shift = given(5)
    mean, variance = values.mean((0, 1, 2)), values.var((0, 1, 2))
    running = RunningStatistics(np.full(5, 0.5), np.full(5, 2.0))
    with jax.enable_x64(True):
        affine = Affine(scale, shift)
        normalized = quickly(batch_normalized, static_argnums=3)
        trained, after = normalized(values, affine, running, True)
        evaluated, unmoved = normalized(values, affine, after, False)
    np.testing.assert_allclose(trained, (values - mean) / np.sqrt(variance + EPSILON) * scale + shift, rtol=1e-10)
    np.testing.assert_allclose(after.mean, (1 - MOMENTUM) * 0.5 + MOMENTUM * mean, rtol=1e-12)
    np.testing.assert_allclose(
        after.variance, (1 - MOMENTUM) * 2 + MOMENTUM * values.var((0, 1, 2), ddof=1), rtol=1e-12
    )
    mean, variance = map(np.asarray, after)
    np.testing.assert_allclose(evaluated, (values - mean) / np.sqrt(variance + EPSILON) * scale + shift, rtol=1e-10)
    chex.assert_trees_all_equal(unmoved, after)


def test_running_statistics_are_not_differentiated():
    values, scale, shift = given(2)
    running = RunningStatistics(np.zeros(2, np.float32), np.ones(2, np.float32))

    def spilled(values):
        return sum(map(jnp.sum, batch_normalized(values, Affine(scale, shift), running, True)[1]))

    assert not np.any(jax.grad(spilled)(jnp.asarray(values)))


def test_groups_are_normalised_image_by_image():
    """Would catch channels that are interleaved into groups, and moments over the batch or over pixels alone."""
    values, scale, shift = given(6, seed=1)
    expected = np.empty_like(values)
    for image in range(len(values)):
        for group in range(3):
            part = values[image, :, :, 2 * group : 2 * group + 2]
            expected[image, :, :, 2 * group : 2 * group + 2] = (part - part.mean()) / np.sqrt(part.var() + EPSILON)
    with jax.enable_x64(True):
        got = quickly(group_normalized, static_argnums=2)(values, Affine(scale, shift), 3)
    np.testing.assert_allclose(got, expected * scale + shift, rtol=1e-10)
    assert groups(4) is groups(4)


def test_normalisations_without_meaning_are_refused():
    affine, running = Affine(np.ones(6), np.zeros(6)), RunningStatistics(np.zeros(6), np.ones(6))
    refusal(InvalidValueError, batch_normalized, np.ones((1, 1, 1, 6)), affine, running, True)


def begun(network, key, shape, num_outputs):
    return jax.device_get(quickly(lambda: network.init(key, shape, num_outputs))())


def abstract(name, shape, num_outputs):
    """Shapes of a network's weights; nothing is drawn or compiled."""
    return jax.eval_shape(lambda key: NETWORKS[name].init(key, shape, num_outputs), KEY)


def dense(*widths):
    return sum((a + 1) * b for a, b in itertools.pairwise(widths))


def basic_blocks(widths, num_blocks):
    """Trained numbers of all blocks: 3 x 3 kernels, shortcuts, and two numbers a normalised channel."""
    total, before = 0, widths[0]
    for stage, width in enumerate(widths):
        for block in range(num_blocks):
            total += 9 * before * width + 9 * width**2 + 4 * width
            total += before * width + 2 * width if stage and not block else 0
            before = width
    return total


@pytest.mark.parametrize(
    ("name", "shape", "num_outputs", "count"),
    [
        ("mlp", (8, 8, 1), 1, dense(64, 32, 1)),
        ("five-layer", (28, 28, 1), 1, 10 * 16 + (9 * 16 + 1) * 32 + dense(14 * 14 * 32, 128, 64, 1)),
        ("five-layer-small", (9, 8, 3), 3, 28 * 8 + (9 * 8 + 1) * 16 + dense(4 * 4 * 16, 32, 16, 3)),
        ("resnet18", (32, 32, 3), 10, 27 * 64 + 128 + basic_blocks((64, 128, 256, 512), 2) + dense(512, 10)),
        ("resnet18-small", (8, 8, 1), 1, 9 * 8 + 16 + basic_blocks((8, 16), 1) + dense(16, 1)),
    ],
)
def test_numbers_of_parameters_are_those_of_the_layers(name, shape, num_outputs, count):
    """Would catch a missing layer, bias or shortcut, and running statistics that are counted or trained."""
    weights = abstract(name, shape, num_outputs)
    assert networks.num_parameters(weights) == count
    if name == "resnet18":
        assert count == 11_173_962  # the usual count for CIFAR-10, known from elsewhere
        channels = [64] + [64] * 4 + [128] * 5 + [256] * 5 + [512] * 5
        assert [moments.mean.shape[0] for moments in weights.statistics] == channels
    else:
        assert weights.statistics == ()


@pytest.mark.parametrize(("side", "last"), [(32, 4), (64, 4), (40, 5), (1, 1)])
def test_the_resnet_halves_its_sides_upwards_and_64_by_its_stem(side, last):
    """Would catch a stride too many or too few: seen in the sides of what the last convolutions put out."""
    weights = abstract("resnet18", (side, side, 3), 2)
    images = jax.ShapeDtypeStruct((2, side, side, 3), jnp.float32)
    jaxpr = jax.make_jaxpr(lambda *given: NETWORKS["resnet18"].apply(*given, True))(weights, images)
    shapes = [shape for equation in jaxpr.eqns for variable in equation.outvars if (shape := variable.aval.shape)]
    sides = {shape[1:3] for shape in shapes if len(shape) == 4 and shape[-1] == 512}
    assert (last, last) in sides
    outputs, statistics = jaxpr.out_avals[0], jaxpr.out_avals[1:]
    assert outputs.shape == (2, 2)
    assert [leaf.shape for leaf in statistics] == [leaf.shape for leaf in jax.tree.leaves(weights.statistics)]


def test_kernels_start_by_hes_rule_and_biases_at_zero():
    """Would catch a deviation for a variance, fan-out for fan-in, and kernels that share their draws."""
    assert not any(np.any(layer.bias) for layer in begun(NETWORKS["mlp"], KEY, (2, 2, 1), 1).params)
    kernels = jax.device_get(quickly(lambda: he_kernels(KEY, [(3, 3, 16, 32), (300, 40), (300, 40)]))())
    for kernel, fan_in in zip(kernels, (144, 300, 300), strict=True):
        standard = np.asarray(kernel, np.float64) / math.sqrt(2 / fan_in)
        bound = 6 / math.sqrt(standard.size)  # six deviations of the mean, and of the mean square over sqrt(2)
        assert abs(standard.mean()) < bound
        assert abs(np.mean(standard**2) - 1) < math.sqrt(2) * bound
    correlation = np.mean(np.asarray(kernels[1]) * np.asarray(kernels[2])) / (2 / 300)
    assert abs(correlation) < 6 / math.sqrt(kernels[1].size)


def five_layers_in_numpy(layers, images):
    first, second, *dense_layers = layers
    values = np.maximum(convolved(images, first.kernel) + first.bias, 0)
    n, height, width, channels = values.shape
    values = values.reshape(n, height // 2, 2, width // 2, 2, channels).max((2, 4))
    values = np.maximum(convolved(values, second.kernel) + second.bias, 0).reshape(n, -1)
    for layer in dense_layers[:-1]:
        values = np.maximum(values @ np.asarray(layer.kernel) + layer.bias, 0)
    return values @ np.asarray(dense_layers[-1].kernel) + dense_layers[-1].bias


def resnet_in_numpy(params, images):
    """Of basic blocks under GroupNorm of one group, strides 1 and 2."""

    def normed(values, layer, stride=1):
        values = convolved(values, layer.kernel, stride)
        mean, variance = (moment(values, axis=(1, 2, 3), keepdims=True) for moment in (np.mean, np.var))
        return (values - mean) / np.sqrt(variance + 1e-5) * layer.affine.scale + layer.affine.shift

    values = np.maximum(normed(images, params.stem), 0)
    for block, stride in zip(params.blocks, (1, 2), strict=True):
        inner = normed(np.maximum(normed(values, block.first, stride), 0), block.second)
        around = values if stride == 1 else normed(values, block.shortcut, stride)
        values = np.maximum(inner + around, 0)
    return values.mean((1, 2)) @ np.asarray(params.last.kernel) + params.last.bias


def perturbed(params):
    """Scales, shifts and biases that matter, unlike those that a network starts from."""
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: leaf + 0.3 * rng.normal(size=leaf.shape).astype(np.float32), params)


@pytest.mark.parametrize(
    ("network", "in_numpy"),
    [(NETWORKS["five-layer-small"], five_layers_in_numpy), (resnet("small", (4, 8), 1, groups(1)), resnet_in_numpy)],
    ids=["five-layer", "resnet"],
)
def test_outputs_are_those_of_the_papers_networks(network, in_numpy):
    """Would catch a ReLU, shortcut or bias that is missing or misplaced, wrong pooling, and a sigmoid at the end."""
    weights = begun(network, KEY, (8, 6, 2), 3)
    params = perturbed(weights.params)
    images = np.random.default_rng(1).normal(size=(3, 8, 6, 2)).astype(np.float32)
    outputs, statistics = quickly(network.apply, static_argnums=2)(Weights(params, ()), images, True)
    assert statistics == ()
    np.testing.assert_allclose(outputs, in_numpy(jax.tree.map(np.asarray, params), images), rtol=1e-4, atol=1e-5)


def trained(stack, images, targets):
    """Every expert of `TINY` a step of gradient descent on, and its outputs before."""

    def loss(params, statistics, images):
        outputs, after = TINY.apply(Weights(params, statistics), images, True)
        return jnp.mean(jnp.square(outputs[:, 0] - targets)), (outputs, after)

    slopes, (outputs, statistics) = jax.vmap(jax.grad(loss, has_aux=True))(*stack, images)
    return Weights(jax.tree.map(lambda a, b: a - b, stack.params, slopes), statistics), outputs


def test_a_step_of_training_under_vmap_moves_every_parameter_and_statistic():
    """Would catch a layer that is not connected, an expert left out, and a distance that is not the raw sum."""
    with jax.enable_x64(True):
        stack = drawn(TINY, KEY, 2, (5, 4, 2), 1)
        images = np.random.default_rng(2).normal(size=(2, 6, 5, 4, 2))
        after, outputs = quickly(trained)(stack, images, np.ones(6))
        distance = quickly(networks.squared_distance)(after.params, stack.params)
    assert np.all(np.isfinite(outputs))
    for old, new in zip(jax.tree.leaves(stack), jax.tree.leaves(after), strict=True):
        assert all(np.any(one != other) for one, other in zip(np.asarray(old), np.asarray(new), strict=True))
    leaves = zip(jax.tree.leaves(stack.params), jax.tree.leaves(after.params), strict=True)
    np.testing.assert_allclose(distance, sum(np.sum((np.asarray(a) - np.asarray(b)) ** 2) for a, b in leaves))


@pytest.mark.parametrize("is_x64", [False, True])
def test_training_and_evaluation_keep_types_and_trees(is_x64):
    """Would catch weights or statistics that a loop cannot carry; evaluation must hand back the statistics given."""
    with jax.enable_x64(is_x64):
        real = jnp.result_type(float)
        images = jax.ShapeDtypeStruct((2, 6, 5, 4, 2), real)
        stack = jax.eval_shape(lambda: networks.stacked(TINY, KEY, 2, (5, 4, 2), 1))
        after, outputs = jax.eval_shape(trained, stack, images, jax.ShapeDtypeStruct((6,), real))
        for network in NETWORKS.values():
            weights = jax.eval_shape(lambda network=network: network.init(KEY, (8, 8, 1), 3))
            for is_training in (False, True):
                given = weights, jax.ShapeDtypeStruct((7, 8, 8, 1), real)
                answer, statistics = jax.eval_shape(functools.partial(_apply, network, is_training), *given)
                assert (answer.shape, answer.dtype) == ((7, 3), real)
                assert statistics == weights.statistics
    assert after == stack
    assert (outputs.shape, outputs.dtype) == ((2, 6, 1), real)
    assert {leaf.dtype for leaf in jax.tree.leaves(stack)} == {np.dtype(np.float64 if is_x64 else np.float32)}


def _apply(network, is_training, weights, images):
    return network.apply(weights, images, is_training)


def test_experts_are_the_same_however_many_there_are():
    """Would catch padding that changes an expert's start, experts that start alike, and keys that are folded twice."""
    few, many = (drawn(NETWORKS["mlp"], KEY, num_experts, (8, 8, 1), 1) for num_experts in (1, 5))
    chex.assert_trees_all_equal(few, jax.tree.map(lambda leaf: leaf[:1], many))
    assert len(np.unique(np.asarray(many.params[0].kernel).reshape(5, -1), axis=0)) == 5


def test_one_expert_is_taken_and_put_back_alone():
    """Would catch a write that touches others, and the -1 of a dropped task taken for the last expert."""
    stack = drawn(NETWORKS["mlp"], KEY, 4, (3, 2, 1), 1)
    put = quickly(networks.with_expert)
    one = jax.device_get(quickly(networks.expert)(stack, np.int32(2)))
    chex.assert_trees_all_equal(one, jax.tree.map(lambda leaf: leaf[2], stack))
    after = jax.device_get(put(stack, np.int32(1), one))
    for old, new, given in zip(*map(jax.tree.leaves, (stack, after, one)), strict=True):
        np.testing.assert_array_equal(np.delete(new, 1, axis=0), np.delete(old, 1, axis=0))
        np.testing.assert_array_equal(new[1], given)
    for outside in (-1, 4):
        chex.assert_trees_all_equal(put(stack, np.int32(outside), one), stack)
