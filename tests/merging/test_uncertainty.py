"""The four forms of Z against matrices written out in NumPy, slot by slot."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.core.errors import UnknownNameError
from moe_theory.merging import network, uncertainty
from moe_theory.merging.params import Dims, Params

PARAMS = Params(regularization=0.7)
CANDIDATES = 5
QUICKLY = {"xla_backend_optimization_level": 0}


def slots(dims, count):
    """Factors of each slot's gradient (count, ...), and of candidates that no slot changes (C, ...).

    Drawn at random: neither of them need be a network's.
    """
    rng = np.random.default_rng(dims.width)
    dtype = np.dtype(jnp.result_type(float))

    def factors(size):
        lengths = (
            (*[dims.width] * dims.num_hidden, dims.num_tasks),
            (dims.max_experts, *[dims.width] * dims.num_hidden),
        )
        outer = [rng.standard_normal((size, n)).astype(dtype) for n in lengths[0]]
        return network.Factors(tuple(outer), tuple(rng.uniform(size=(size, n)).astype(dtype) for n in lengths[1]))

    return factors(count), factors(CANDIDATES)


def written(factors):
    """The gradients in full, layer by layer and row by row."""
    pairs = zip(*(map(np.float64, part) for part in factors), strict=True)
    return np.concatenate([np.einsum("ci,cj->cij", *pair).reshape(len(pair[0]), -1) for pair in pairs], axis=1)


def carried(form, seen, candidates):
    """Squared norms of the candidates and log det after each slot, and the last memory."""

    @functools.partial(jax.jit, compiler_options=QUICKLY)
    def run(seen, candidates):
        def slot(memory, factors):
            memory = form.add(memory, factors, PARAMS)
            return memory, (form.squared_norms(memory, candidates, PARAMS), form.log_det(memory, PARAMS))

        return jax.lax.scan(slot, form.begin(PARAMS), seen)

    memory, records = run(seen, candidates)
    return *(np.asarray(record, np.float64) for record in records), memory


def written_out(dims, seen, candidates):
    """The same by np.linalg, from the gradients themselves."""
    rows, wanted = (written(factors) for factors in (seen, candidates))
    Z, squares, log_dets = PARAMS.regularization * np.eye(dims.num_parameters), [], []
    for g in rows:
        Z = Z + np.outer(g, g) / dims.width
        squares.append(np.sum(wanted * np.linalg.solve(Z, wanted.T).T, axis=1) / dims.width)
        log_dets.append(np.linalg.slogdet(Z / PARAMS.regularization)[1])
    return np.array(squares), np.array(log_dets)


@pytest.mark.parametrize("x64", [False, True], ids=["float32", "float64"])
def test_exact_forms_are_the_inverse_written_out(x64, monkeypatch):
    """Would catch a constant, a row of L^-1, a tile or a determinant; single precision is good to 1e-4, really 5e-6."""
    monkeypatch.setattr(uncertainty, "SLOTS_A_TILE", 64)
    dims = Dims(4, 3, 200, width=16)
    with jax.enable_x64(x64):
        seen, candidates = slots(dims, 200)
        squares, log_dets = written_out(dims, seen, candidates)
        for name in (uncertainty.DUAL, uncertainty.FULL):
            actual, actual_log_dets, _ = carried(uncertainty.named(name, dims), seen, candidates)
            np.testing.assert_allclose(actual, squares, rtol=1e-9 if x64 else 1e-4)
            np.testing.assert_allclose(actual_log_dets, log_dets, rtol=1e-9 if x64 else 1e-5)


def test_the_full_inverse_lasts_for_2000_slots_in_single_precision():
    """Would catch an inverse that drifts, or that rounding makes asymmetric."""
    dims = Dims(4, 3, 2000, width=16)
    seen, candidates = slots(dims, 2000)
    squares, _, memory = carried(uncertainty.full(dims), seen, candidates)
    rows = written(seen)
    inverse = np.linalg.inv(PARAMS.regularization * np.eye(dims.num_parameters) + rows.T @ rows / dims.width)
    wanted = written(candidates)
    np.testing.assert_allclose(squares[-1], np.sum(wanted @ inverse * wanted, axis=1) / dims.width, rtol=1e-3)
    np.testing.assert_array_equal(memory.inverse, memory.inverse.T)
    assert np.max(np.abs(memory.inverse - inverse)) < 1e-4


def test_the_diagonal_form_is_the_diagonal_of_z():
    """Would catch squares of sums for sums of squares, a layer that is transposed, and a determinant of all of Z."""
    dims = Dims(4, 3, 30, width=5, num_hidden=2)
    with jax.enable_x64(True):
        seen, candidates = slots(dims, 30)
        actual, log_dets, _ = carried(uncertainty.named("diagonal", dims), seen, candidates)
        rows, wanted = (written(factors) for factors in (seen, candidates))
    diagonals = PARAMS.regularization + np.cumsum(rows**2, axis=0) / dims.width
    squares = [np.sum(wanted**2 / diagonal, axis=1) / dims.width for diagonal in diagonals]
    np.testing.assert_allclose(actual, squares, rtol=1e-12)
    np.testing.assert_allclose(log_dets, np.sum(np.log(diagonals / PARAMS.regularization), axis=1), rtol=1e-12)


def test_norms_are_computed_for_blocks_in_which_one_is_wanted(monkeypatch):
    """Would catch candidates in a wrong place, a last block that is cut off, and work for blocks nobody wants."""
    monkeypatch.setattr(uncertainty, "CANDIDATES_A_BLOCK", 2)
    dims = Dims(4, 3, 30, width=5)
    seen, candidates = slots(dims, 30)
    form = uncertainty.named("exact", dims)
    squares, _, memory = carried(form, seen, candidates)
    wanted = jnp.asarray([False, True, False, False, True])
    norms = jax.jit(
        lambda memory: uncertainty.norms(form, memory, candidates, wanted, PARAMS), compiler_options=QUICKLY
    )(memory)
    np.testing.assert_allclose(norms, np.sqrt(squares[-1]) * [1, 1, 0, 0, 1], rtol=1e-5)


def test_exact_is_the_cheaper_form_and_unknown_forms_are_refused():
    """Would catch p^2 numbers for a run of few slots, and a name that falls back to another form."""
    for max_rounds, kind in ((1024, uncertainty.Full), (1023, uncertainty.Dual)):
        form = uncertainty.named("exact", Dims(max_rounds=max_rounds))
        assert type(jax.eval_shape(form.begin, PARAMS)) is kind
    with pytest.raises(UnknownNameError, match=r"'exakt'.*'exact'"):
        uncertainty.named("exakt", Dims())
