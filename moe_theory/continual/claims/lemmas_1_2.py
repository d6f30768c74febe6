"""Lemmas 1 and 2 and Corollary 1: gate outputs of two tasks of one kind, and how smoothly routing follows gate outputs.

An O(sigma_0^e) is tested by the slope of log means over a grid of sigma_0. Definition 1 leaves the noise level sigma_t
open: Lemma 1 is tested with a reading's, which does not shrink, and with noise within O(sigma_0), as its proof needs.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from moe_theory.continual.claims.measurements import FAILURE, along, claim, per_cell, probable, rate
from moe_theory.continual.corrected import lemma_2, routing_probabilities
from moe_theory.continual.experiments import (
    FEWER_EXPERTS_CELLS,
    NEAR_SIGNALS_CELLS,
    ROUTER_CELLS,
    ROUTER_DIMS,
    ROUTER_FEW,
    ROUTER_GRID,
    ROUTER_MANY,
    ROUTER_SCALE,
    SMALL_NOISE_CELLS,
    router_cell,
)
from moe_theory.core.random import normals, root_key, symmetric_uniforms
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, named


def draws_of(run: Run, count: int, stream: int) -> Float[np.ndarray, "B n"]:
    """Numbers uniform on (-1, 1) that belong to each replicate alone."""
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(root_key(stream), run.replicates)
    draw = jax.vmap(lambda key: symmetric_uniforms(key, count, np.dtype(np.float32)))
    return np.asarray(draw(keys), np.float64)


def _noise_sums(run: Run) -> Float[np.ndarray, "B 2 d"]:
    """The sums over the s - 1 noise columns of two feature matrices."""
    shape = (2, ROUTER_DIMS.num_features, ROUTER_DIMS.num_samples - 1)
    columns = np.asarray(normals(jnp.asarray(draws_of(run, math.prod(shape), 5))), np.float64)
    return float(run.params.noise_scale) * columns.reshape(-1, *shape).sum(axis=-1)


def gate_output_pairs(run: Run) -> Float[np.ndarray, "B 2 M"]:
    """Gate outputs of two tasks of one cluster (of one task where there are no clusters), at the gates of round T."""
    params, num_tasks = run.params, ROUTER_DIMS.num_tasks
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
    entries = ROUTER_DIMS.num_samples * ROUTER_DIMS.num_features
    return _output_gap(run) > 2 * entries * float(run.params.truth_scale) * size


def _more_experts(dims, runs: Runs) -> list[tuple[str, bool]]:
    return [(f"M = {ROUTER_MANY} > N = {dims.num_tasks}", dims.num_tasks < ROUTER_MANY)]


def _fewer_experts(dims, runs: Runs) -> list[tuple[str, bool]]:
    return [(f"M = {ROUTER_FEW} < N = {dims.num_tasks}", dims.num_tasks > ROUTER_FEW)]


def _near_signals(dims, runs: Runs) -> list[tuple[str, bool]]:
    follow = not any(bool(runs[cell].params.independent_signals) for cell in NEAR_SIGNALS_CELLS)
    return [*_fewer_experts(dims, runs), ("signals of a cluster are within O(sigma_0^1.5) of each other", follow)]


@rate(
    "continual.lemma-1.same-signal",
    at_least=1.5,
    where="Lemma 1, Eq. (10); full version, Eq. (25), M > N",
    replaced_by="continual.lemma-1.small-noise",
)
class Lemma1:
    """With more experts than tasks, two arrivals of one task have outputs at every expert within O(sigma_0^1.5).

    Tested at the noise level of a reading, since the statement asks nothing of it; the largest gap of an expert.
    """

    formula = r"|h_m(X, \theta_t^{(m)}) - h_m(\tilde{X}, \theta_t^{(m)})| = O(\sigma_0^{1.5})"
    experiment = ROUTER_GRID
    hypotheses = _more_experts
    labels, observe, abscissa = along(ROUTER_CELLS, _output_gap)


@probable(
    "continual.lemma-1.probability",
    where="Lemma 1, with probability at least 1 - o(1)",
    is_likely=False,
    replaced_by="continual.lemma-1.small-noise-probability",
)
class Lemma1Probability:
    """The proof's bound on that gap, with its constant s d max |theta| for each matrix, fails with vanishing chance.

    Vanishing is read as at most 0.05, at every sigma_0 of the grid down to 0.000625.
    """

    formula = r"P(\max_m |h_m(X) - h_m(\tilde{X})| > 2 s d \sigma_0 \max_{t, j} |\theta_{t, j}|) = o(1)"
    experiment = ROUTER_GRID
    hypotheses = _more_experts
    labels, observe = per_cell(ROUTER_CELLS, _exceeds_proof)


@rate(
    "continual.lemma-1.same-cluster",
    at_least=1.5,
    where="Lemma 1, full version, Eq. (25), M < N",
    replaced_by="continual.lemma-1.same-cluster-small-noise",
)
class Lemma1Cluster:
    """With fewer experts than tasks, two tasks of one cluster have outputs at every expert within O(sigma_0^1.5).

    Truths of a cluster are within O(sigma_0^1.5); of noise and signals the statement asks nothing more than a reading.
    """

    formula = (
        r"w_n, w_{n'} \in W_k \Rightarrow |h_m(X, \theta_t^{(m)}) - h_m(\tilde{X}, \theta_t^{(m)})| = O(\sigma_0^{1.5})"
    )
    experiment = ROUTER_GRID
    hypotheses = _fewer_experts
    labels, observe, abscissa = along(FEWER_EXPERTS_CELLS, _output_gap)


def _exceeds_product(run: Run) -> np.ndarray:
    """Whether |<theta, sum_i X_i>| of an expert is above max |theta| |sum_ij X_ij|, over the noise columns."""
    noise, size = _noise_sums(run)[:, 0], run.records.gate_size.max(axis=0).astype(np.float64)
    inner = np.abs(np.einsum("mdb,bd->mb", _gates(run), noise)).max(axis=0)
    return inner > size * np.abs(noise.sum(axis=1)) * (1 + 1e-9)


@claim(
    "continual.lemma-1.product",
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
    experiment = ROUTER_GRID
    labels, observe = per_cell(ROUTER_CELLS, _exceeds_product)


@rate("continual.lemma-1.small-noise", at_least=1.5, where="replaces Lemma 1, M > N")
class Lemma1SmallNoise:
    """Where the noise level is O(sigma_0), two arrivals of one task have outputs within O(sigma_0^1.5)."""

    formula = r"\sigma_t = O(\sigma_0) \Rightarrow |h_m(X) - h_m(\tilde{X})| = O(\sigma_0^{1.5})"
    experiment = ROUTER_GRID
    hypotheses = _more_experts
    labels, observe, abscissa = along(SMALL_NOISE_CELLS, _output_gap)


def _exceeds_tail(run: Run) -> np.ndarray:
    """Whether some expert's |h_m(X) - h_m(X~)| is above its Gaussian tail bound at a joint chance of `FAILURE`."""
    norms = np.sqrt(np.sum(_gates(run) ** 2, axis=1))  # (M, B)
    deviations = float(run.params.noise_scale) * np.sqrt(2 * (ROUTER_DIMS.num_samples - 1)) * norms
    gaps = np.abs(np.diff(gate_output_pairs(run), axis=1))[:, 0].T
    return np.any(gaps > np.sqrt(2 * np.log(2 * len(norms) / FAILURE)) * deviations, axis=0)


@probable(
    "continual.lemma-1.small-noise-probability",
    where="replaces Lemma 1, with probability at least 1 - o(1)",
    is_likely=False,
)
class Lemma1SmallNoiseProbability:
    """The gaps of all experts are within sigma_t (4 (s - 1) ln(2M/delta))^0.5 |theta|, but for chance delta = 0.05.

    That is O(sigma_0^1.5) where sigma_t is O(sigma_0) and gates are O(sigma_0^0.5); strengths beta_t are equal.
    """

    formula = (
        r"P(\exists m: |h_m(X) - h_m(\tilde{X})| > \sigma_t \sqrt{4 (s - 1) \ln (2 M / \delta)} \|\theta^{(m)}\|_2) "
        r"\leq \delta"
    )
    experiment = ROUTER_GRID
    labels, observe = per_cell(SMALL_NOISE_CELLS, _exceeds_tail)

    @staticmethod
    def hypotheses(dims, runs: Runs) -> list[tuple[str, bool]]:
        params = runs[next(iter(SMALL_NOISE_CELLS))].params
        return [*_more_experts(dims, runs), ("beta_t is constant", params.min_strength == params.max_strength)]


@rate("continual.lemma-1.same-cluster-small-noise", at_least=1.5, where="replaces Lemma 1, M < N")
class Lemma1NearSignals:
    """Where noise is O(sigma_0) and a cluster's signals are within O(sigma_0^1.5), so are its tasks' outputs."""

    formula = (
        r"\sigma_t = O(\sigma_0), \|v_n - v_{n'}\|_\infty = O(\sigma_0^{1.5}) \Rightarrow "
        r"|h_m(X, \theta_t^{(m)}) - h_m(\tilde{X}, \theta_t^{(m)})| = O(\sigma_0^{1.5})"
    )
    experiment = ROUTER_GRID
    hypotheses = _near_signals
    labels, observe, abscissa = along(NEAR_SIGNALS_CELLS, _output_gap)


SMOOTH_EXPERTS = (2, 5, 10)
SMOOTH_CELL = router_cell(ROUTER_SCALE)  # whose lambda = sigma_0^1.25 is the router's
NUM_PAIRS = 4  # pairs of outputs that a replicate draws for each M
by_experts = named(*(f"M = {number}" for number in SMOOTH_EXPERTS))


def output_pairs(
    run: Run, num_experts: int, spread: float, change: float
) -> tuple[Float[np.ndarray, "B pairs M"], Float[np.ndarray, "B pairs M"]]:
    """Pairs h, h^ in units of lambda: h over a width of up to `spread`, and h^ apart by up to `change`.

    In every other pair one expert rises and all others fall; in the rest experts move at random.
    """
    draws = draws_of(run, NUM_PAIRS * (2 * num_experts + 2), 7).reshape(-1, NUM_PAIRS, 2 * num_experts + 2)
    units = (draws[..., :2] + 1) / 2
    before = spread * units[..., :1] * draws[..., 2 : 2 + num_experts]
    opposed = np.where(np.arange(num_experts) == 0, 1.0, -1.0)
    is_opposed = (np.arange(NUM_PAIRS) % 2 == 0)[:, None]
    moves = np.where(is_opposed, opposed, draws[..., 2 + num_experts :])
    return before, before + change * units[..., 1:] * moves


def _steepness(run: Run, num_experts: int, spread: float, change: float) -> Float[np.ndarray, "B pairs"]:
    """|p - p^|_inf / |h - h^|_inf at the run's lambda."""
    scale = float(run.params.perturbation_scale)
    before, after = (scale * part for part in output_pairs(run, num_experts, spread, change))
    moved = routing_probabilities(after, scale) - routing_probabilities(before, scale)
    return np.abs(moved).max(axis=-1) / np.abs(after - before).max(axis=-1)


def _over_experts(value):
    return lambda runs: np.stack([value(runs[SMOOTH_CELL], number) for number in SMOOTH_EXPERTS], axis=1)


@claim("continual.lemma-2.constant", where="Lemma 2", kind="counterexample", replaced_by="continual.lemma-2.lipschitz")
class Lemma2:
    """Routing probabilities move by at most lambda M^2 times the largest move of a gate output.

    Instances, all four of a replicate: outputs within lambda/4 of 0, moved by up to lambda/4, at lambda = 0.04^1.25.
    """

    formula = r"\|p - \hat{p}\|_\infty \leq \lambda M^2 \|h - \hat{h}\|_\infty"
    experiment = ROUTER_GRID
    labels = by_experts

    @staticmethod
    @_over_experts
    def observe(run: Run, number: int) -> np.ndarray:
        return np.all(_steepness(run, number, 0.25, 0.25) > float(run.params.perturbation_scale) * number**2, axis=1)


@claim("continual.lemma-2.lipschitz", where="replaces Lemma 2", kind="identity", margin=1e-6)
class Lemma2Lipschitz:
    """Routing probabilities move by at most 2/lambda times the largest move of a gate output, for every M.

    The largest relative excess over outputs within lambda of 0, moved by up to lambda.
    """

    formula = r"\|p - \hat{p}\|_\infty \leq \frac{2}{\lambda} \|h - \hat{h}\|_\infty"
    experiment = ROUTER_GRID
    labels = by_experts

    @staticmethod
    @_over_experts
    def observe(run: Run, number: int) -> np.ndarray:
        bound = lemma_2(float(run.params.perturbation_scale))
        return np.maximum(_steepness(run, number, 1.0, 1.0) / bound - 1, 0).max(axis=1)


@claim("continual.lemma-2.sharp", where="replaces Lemma 2", kind="equality", margin=0.01)
class Lemma2Sharp:
    """No constant below 2/lambda will do: nearly equal outputs, one raised and all others lowered a little, attain it.

    The share of 2/lambda that is attained with outputs within 0.001 lambda of 0, moved by up to 0.001 lambda.
    """

    formula = r"\sup_{h, \hat{h}} \frac{\|p - \hat{p}\|_\infty}{\|h - \hat{h}\|_\infty} = \frac{2}{\lambda}"
    experiment = ROUTER_GRID
    labels = by_experts
    predict = staticmethod(lambda runs: 1.0)

    @staticmethod
    @_over_experts
    def observe(run: Run, number: int) -> np.ndarray:
        bound = lemma_2(float(run.params.perturbation_scale))
        return _steepness(run, number, 1e-3, 1e-3).max(axis=1) / bound


def _probability_gap(run: Run) -> np.ndarray:
    probabilities = routing_probabilities(gate_output_pairs(run), float(run.params.perturbation_scale))
    return np.abs(np.diff(probabilities, axis=1)).max(axis=(1, 2))


@rate(
    "continual.corollary-1.probabilities",
    at_least=2.75,
    where="Corollary 1",
    replaced_by="continual.corollary-1.lipschitz",
)
class Corollary1:
    """Two arrivals of one task are routed with probabilities within O(lambda M^2 sigma_0^1.5) = O(sigma_0^2.75).

    M is fixed and lambda = sigma_0^1.25; the noise is small, so that Lemma 1 is not what fails.
    """

    formula = r"\|p - \hat{p}\|_\infty = O(\lambda M^2 \sigma_0^{1.5}), \lambda = \Theta(\sigma_0^{1.25})"
    experiment = ROUTER_GRID
    labels, observe, abscissa = along(SMALL_NOISE_CELLS, _probability_gap)


@rate("continual.corollary-1.lipschitz", at_least=0.25, where="replaces Corollary 1")
class Corollary1Lipschitz:
    """Where noise is O(sigma_0), they are routed with probabilities within O(sigma_0^1.5/lambda) = O(sigma_0^0.25)."""

    formula = r"\|p - \hat{p}\|_\infty = O(\sigma_0^{1.5} / \lambda), \lambda = \Theta(\sigma_0^{1.25})"
    experiment = ROUTER_GRID
    labels, observe, abscissa = along(SMALL_NOISE_CELLS, _probability_gap)
