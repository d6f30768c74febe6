"""Lemma 1, on the gate outputs of two tasks of one kind.

An O(sigma_0^e) is tested by its exponent: the slope of log means over a grid of sigma_0 on which Algorithm 1's inputs
shrink as it asks. Gates are those of round T; the two feature matrices of a pair are drawn anew. Definition 1 leaves
the noise level sigma_t open: the lemma is tested with a reading's, which does not shrink, and beside it with noise
within O(sigma_0), which its proof needs.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from moe_theory.continual.claims.values import (
    EXPONENT_MARGIN,
    FAILURE,
    FEWER_CELLS,
    NEAR_CELLS,
    QUIET_CELLS,
    SCALE_CELLS,
    named,
    over,
)
from moe_theory.continual.grids import SCALE_DIMS, SCALE_EXPERTS, SCALE_FEWER, SCALES, SCALING
from moe_theory.core.random import normals, root_key, symmetric_uniforms
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, claim


def draws_of(run: Run, count: int, stream: int) -> Float[np.ndarray, "B n"]:
    """Numbers uniform on (-1, 1) that belong to each replicate alone."""
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(root_key(stream), run.replicates)
    draw = jax.vmap(lambda key: symmetric_uniforms(key, count, np.dtype(np.float32)))
    return np.asarray(draw(keys), np.float64)


def _noise_sums(run: Run) -> Float[np.ndarray, "B 2 d"]:
    """The sums over the s - 1 noise columns of two feature matrices."""
    shape = (2, SCALE_DIMS.num_features, SCALE_DIMS.num_samples - 1)
    columns = np.asarray(normals(jnp.asarray(draws_of(run, math.prod(shape), 5))), np.float64)
    return float(run.params.noise_scale) * columns.reshape(-1, *shape).sum(axis=-1)


def gate_output_pairs(run: Run) -> Float[np.ndarray, "B 2 M"]:
    """Gate outputs of two tasks of one cluster (of one task where there are no clusters), at the gates of round T."""
    params, num_tasks = run.params, SCALE_DIMS.num_tasks
    units = (draws_of(run, 3, 6) + 1) / 2
    first = np.minimum((units[:, 0] * num_tasks).astype(int), num_tasks - 1)
    pair = np.stack([first, (first + int(params.num_clusters)) % num_tasks], axis=1)  # task n is in cluster n mod K
    signals = np.moveaxis(run.state.pool.signals, -1, 0).astype(np.float64)[np.arange(len(pair))[:, None], pair]
    most, least = float(params.max_strength), float(params.min_strength)
    strengths = most - (most - least) * units[:, 1:]
    inputs = strengths[:, :, None] * signals + _noise_sums(run)
    return np.einsum("mdb,bxd->bxm", _gates(run), inputs)


def _gates(run: Run) -> Float[np.ndarray, "M d B"]:
    return run.state.gates[: int(run.params.num_experts)].astype(np.float64)


def _output_gap(run: Run) -> np.ndarray:
    """max_m |h_m(X) - h_m(X~)|."""
    return np.abs(np.diff(gate_output_pairs(run), axis=1)).max(axis=(1, 2))


def _exceeds_proof(run: Run) -> np.ndarray:
    """Whether that is above 2 s d sigma_0 max |theta|, once s d sigma_0 max |theta| for each of the two matrices."""
    size = run.records.gate_size.max(axis=0).astype(np.float64)
    entries = SCALE_DIMS.num_samples * SCALE_DIMS.num_features
    return _output_gap(run) > 2 * entries * float(run.params.truth_scale) * size


def _more_experts(dims, runs: Runs) -> list[tuple[str, bool]]:
    return [(f"M = {SCALE_EXPERTS} > N = {dims.num_tasks}", dims.num_tasks < SCALE_EXPERTS)]


def _fewer_experts(dims, runs: Runs) -> list[tuple[str, bool]]:
    return [(f"M = {SCALE_FEWER} < N = {dims.num_tasks}", dims.num_tasks > SCALE_FEWER)]


def _near_signals(dims, runs: Runs) -> list[tuple[str, bool]]:
    follow = not any(bool(runs[cell].params.independent_signals) for cell in NEAR_CELLS)
    return [*_fewer_experts(dims, runs), ("signals of a cluster are within O(sigma_0^1.5) of each other", follow)]


@claim(
    "continual.lemma-1.same-signal",
    paper="continual",
    where="Lemma 1, Eq. (10); full version, Eq. (25), M > N",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.lemma-1.small-noise",
)
class Lemma1:
    """With more experts than tasks, two arrivals of one task have outputs at every expert within O(sigma_0^1.5).

    Tested at the noise level of a reading, since the statement asks nothing of it; the largest gap of an expert.
    """

    formula = r"|h_m(X, \theta_t^{(m)}) - h_m(\tilde{X}, \theta_t^{(m)})| = O(\sigma_0^{1.5})"
    experiment = SCALING
    hypotheses = _more_experts
    side = "at_least"
    abscissa = SCALES
    labels = named(*SCALE_CELLS)
    observe = over(SCALE_CELLS, _output_gap)
    predict = staticmethod(lambda runs: 1.5)


@claim(
    "continual.lemma-1.probability",
    paper="continual",
    where="Lemma 1, with probability at least 1 - o(1)",
    kind="probability",
    replaced_by="continual.lemma-1.small-noise-probability",
)
class Lemma1Probability:
    """The proof's bound on that gap, with its constant s d max |theta| for each matrix, fails with vanishing chance.

    Vanishing is read as at most 0.05, at every sigma_0 of the grid down to 0.000625.
    """

    formula = r"P(\max_m |h_m(X) - h_m(\tilde{X})| > 2 s d \sigma_0 \max_{t, j} |\theta_{t, j}|) = o(1)"
    experiment = SCALING
    hypotheses = _more_experts
    side = "at_most"
    labels = named(*SCALE_CELLS)
    observe = over(SCALE_CELLS, _exceeds_proof)
    predict = staticmethod(lambda runs: FAILURE)


@claim(
    "continual.lemma-1.same-cluster",
    paper="continual",
    where="Lemma 1, full version, Eq. (25), M < N",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.lemma-1.same-cluster-small-noise",
)
class Lemma1Cluster:
    """With fewer experts than tasks, two tasks of one cluster have outputs at every expert within O(sigma_0^1.5).

    Truths of a cluster are within O(sigma_0^1.5); of noise and signals the statement asks nothing more than a reading.
    """

    formula = (
        r"w_n, w_{n'} \in W_k \Rightarrow |h_m(X, \theta_t^{(m)}) - h_m(\tilde{X}, \theta_t^{(m)})| = O(\sigma_0^{1.5})"
    )
    experiment = SCALING
    hypotheses = _fewer_experts
    side = "at_least"
    abscissa = SCALES
    labels = named(*FEWER_CELLS)
    observe = over(FEWER_CELLS, _output_gap)
    predict = staticmethod(lambda runs: 1.5)


def _exceeds_product(run: Run) -> np.ndarray:
    """Whether |<theta, sum_i X_i>| of an expert is above max |theta| |sum_ij X_ij|, over the noise columns.

    The maximum is over all entries of all experts' gates in all rounds of the run.
    """
    noise, size = _noise_sums(run)[:, 0], run.records.gate_size.max(axis=0).astype(np.float64)
    inner = np.abs(np.einsum("mdb,bd->mb", _gates(run), noise)).max(axis=0)
    return inner > size * np.abs(noise.sum(axis=1)) * (1 + 1e-9)


@claim(
    "continual.lemma-1.product",
    paper="continual",
    where="Lemma 1, proof, first display",
    kind="counterexample",
    replaced_by="continual.lemma-1.small-noise-probability",
)
class Lemma1Product:
    """The noise moves no gate output by more than the gates' largest entry times the size of the sum of its entries.

    The proof's step to that sum, in which entries of both signs cancel. The left side is taken at the gates of round
    T, the largest entry over all experts and all rounds of the run.
    """

    formula = (
        r"|\sum_{i, j} \theta_{t, j}^{(m)} X_{t, (i, j)}| \leq "
        r"\max_{t, j} |\theta_{t, j}^{(m)}| \cdot |\sum_{i, j} X_{t, (i, j)}|"
    )
    experiment = SCALING
    labels = named(*SCALE_CELLS)
    observe = over(SCALE_CELLS, _exceeds_product)


@claim(
    "continual.lemma-1.small-noise",
    paper="continual",
    where="replaces Lemma 1, M > N",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Lemma1Quiet:
    """Where the noise level is O(sigma_0), two arrivals of one task have outputs within O(sigma_0^1.5)."""

    formula = r"\sigma_t = O(\sigma_0) \Rightarrow |h_m(X) - h_m(\tilde{X})| = O(\sigma_0^{1.5})"
    experiment = SCALING
    hypotheses = _more_experts
    side = "at_least"
    abscissa = SCALES
    labels = named(*QUIET_CELLS)
    observe = over(QUIET_CELLS, _output_gap)
    predict = staticmethod(lambda runs: 1.5)


def _exceeds_tail(run: Run) -> np.ndarray:
    """Whether some expert's |h_m(X) - h_m(X~)| is above its Gaussian tail bound at a joint chance of `FAILURE`."""
    norms = np.sqrt(np.sum(_gates(run) ** 2, axis=1))  # (M, B)
    deviations = float(run.params.noise_scale) * np.sqrt(2 * (SCALE_DIMS.num_samples - 1)) * norms
    gaps = np.abs(np.diff(gate_output_pairs(run), axis=1))[:, 0].T
    return np.any(gaps > np.sqrt(2 * np.log(2 * len(norms) / FAILURE)) * deviations, axis=0)


@claim(
    "continual.lemma-1.small-noise-probability",
    paper="continual",
    where="replaces Lemma 1, with probability at least 1 - o(1)",
    kind="probability",
)
class Lemma1QuietProbability:
    """The gaps of all experts are within sigma_t (4 (s - 1) ln(2M/delta))^0.5 |theta|, but for chance delta = 0.05.

    That is O(sigma_0^1.5) where sigma_t is O(sigma_0) and gates are O(sigma_0^0.5); strengths beta_t are equal.
    """

    formula = (
        r"P(\exists m: |h_m(X) - h_m(\tilde{X})| > \sigma_t \sqrt{4 (s - 1) \ln (2 M / \delta)} \|\theta^{(m)}\|_2) "
        r"\leq \delta"
    )
    experiment = SCALING
    side = "at_most"
    labels = named(*QUIET_CELLS)
    observe = over(QUIET_CELLS, _exceeds_tail)
    predict = staticmethod(lambda runs: FAILURE)

    @staticmethod
    def hypotheses(dims, runs: Runs) -> list[tuple[str, bool]]:
        params = runs[QUIET_CELLS[0]].params
        return [*_more_experts(dims, runs), ("beta_t is constant", params.min_strength == params.max_strength)]


@claim(
    "continual.lemma-1.same-cluster-small-noise",
    paper="continual",
    where="replaces Lemma 1, M < N",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Lemma1NearSignals:
    """Where noise is O(sigma_0) and a cluster's signals are within O(sigma_0^1.5), so are its tasks' outputs."""

    formula = (
        r"\sigma_t = O(\sigma_0), \|v_n - v_{n'}\|_\infty = O(\sigma_0^{1.5}) \Rightarrow "
        r"|h_m(X, \theta_t^{(m)}) - h_m(\tilde{X}, \theta_t^{(m)})| = O(\sigma_0^{1.5})"
    )
    experiment = SCALING
    hypotheses = _near_signals
    side = "at_least"
    abscissa = SCALES
    labels = named(*NEAR_CELLS)
    observe = over(NEAR_CELLS, _output_gap)
    predict = staticmethod(lambda runs: 1.5)
