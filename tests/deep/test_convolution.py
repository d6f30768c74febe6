"""Convolution in both of its forms and pooling, against loops in NumPy and against each other."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.core.errors import InvalidDimsError
from moe_theory.deep.networks.layers import convolve, max_pool

quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def convolved(images, kernel, stride, padding):
    """One window after another."""
    padded = np.pad(images, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    side = kernel.shape[0]
    starts = [range(0, padded.shape[axis] - side + 1, stride) for axis in (1, 2)]
    return np.stack(
        [
            np.stack([np.einsum("nijc,ijco->no", padded[:, r : r + side, c : c + side], kernel) for c in starts[1]], 1)
            for r in starts[0]
        ],
        axis=1,
    )


def slopes_of(kernel_side, stride, padding, shape, num_outputs=3):
    """Output and both gradients in both forms, in one program, and what they were given."""
    rng = np.random.default_rng(kernel_side + 10 * stride)
    images, kernel = rng.normal(size=shape), rng.normal(size=(kernel_side, kernel_side, shape[-1], num_outputs))

    @quickly
    def both(images, kernel):
        results = []
        for way in ("patches", "xla"):
            output, pull = jax.vjp(lambda *given, way=way: convolve(*given, stride, padding, way), images, kernel)
            results.append((output, *pull(jnp.cos(output))))
        return results

    with jax.enable_x64(True):
        return images, kernel, both(jnp.asarray(images), jnp.asarray(kernel))


@pytest.mark.parametrize(
    ("kernel_side", "stride", "padding", "shape"),
    [
        (1, 2, None, (2, 5, 4, 2)),
        (3, 1, None, (2, 4, 5, 2)),
        (3, 2, None, (2, 6, 5, 2)),
        (3, 2, None, (2, 1, 1, 2)),
        (5, 1, 0, (2, 6, 5, 1)),
        (5, 2, None, (1, 7, 8, 2)),
    ],
)
def test_both_forms_and_their_gradients_agree_with_a_loop(kernel_side, stride, padding, shape):
    """Would catch a flipped kernel, an order of patches that is not the kernel's, a shifted stride or padding."""
    images, kernel, (patches, xla) = slopes_of(kernel_side, stride, padding, shape)
    padding = kernel_side // 2 if padding is None else padding
    np.testing.assert_allclose(patches[0], convolved(images, kernel, stride, padding), atol=1e-12)
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
    pooled, pull = jax.vjp(max_pool, jnp.asarray(images))
    shares = np.asarray(pull(jnp.ones_like(pooled))[0])
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


def test_images_that_nothing_is_left_of_are_refused():
    with pytest.raises(InvalidDimsError, match="1 x 4 pixels must be at least 2 x 2"):
        max_pool(jnp.ones((1, 1, 4, 1)))
    with pytest.raises(InvalidDimsError, match="at least as large as the kernel, 5 x 5"):
        convolve(jnp.ones((1, 3, 3, 1)), jnp.ones((5, 5, 1, 1)), padding=0)
