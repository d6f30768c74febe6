"""What a network draws: delays by their laws, the servers' map, tasks and signals.

Every statistical test fails a true law with probability below LEVEL, and its keys are fixed.
"""

import functools
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

import moe_theory as mt
from moe_theory import edge
from moe_theory.edge import delays
from moe_theory.edge.algorithm import draw_execution, draw_pool
from moe_theory.edge.params import INDEPENDENT, ORTHOGONAL, PROPORTIONAL

LEVEL = 1e-7
M, N, P, S = 6, 4, 8, 3
DIMS = edge.Dims(M, N, P, S)
ROOT = mt.root_key(17)
NUM_DRAWS = 20_000
MAP = delays.even_map(M)
PARAMS = edge.Params(num_experts=M, min_transfer_delay=2, max_transfer_delay=9, noise_scale=0.0)


class Drawn(NamedTuple):
    """A network's pool and executions, and one arrival at it; leading axis NUM_DRAWS."""

    pool: Any
    execution: Any
    arrival: Any


@functools.cache
def program(law: delays.Law, dims: edge.Dims = DIMS) -> Any:
    def draw(key, params):
        keys = jax.random.split(key, 3)
        pool = draw_pool(keys[0], dims, params)
        positions = jnp.asarray(delays.even_map(dims.max_experts), jnp.result_type(float))
        execution = delays.uniform if law is delays.by_distance or isinstance(law, delays.Table) else law
        return Drawn(
            pool,
            draw_execution(keys[1], dims, positions, params, execution),
            edge.draw(keys[2], dims, pool, positions, params, law),
        )

    # Here running is what costs.
    return jax.jit(jax.vmap(draw, in_axes=(0, None)), compiler_options={"xla_backend_optimization_level": 1})


def drawn(law: delays.Law = delays.uniform, params: edge.Params = PARAMS, dims: edge.Dims = DIMS) -> Drawn:
    keys = jax.random.split(ROOT, NUM_DRAWS)
    values = edge.Params(*(np.asarray(value) for value in params))
    return jax.device_get(program(law, dims)(keys, values))


def assert_counts(values: np.ndarray, probabilities: np.ndarray) -> None:
    """Chi-square of whole numbers 0, 1, ... against their probabilities; none may lie beyond."""
    assert values.min() >= 0
    assert values.max() < len(probabilities)
    counts = np.bincount(values.ravel(), minlength=len(probabilities))
    assert not np.any(counts[probabilities == 0])
    possible = probabilities > 0
    expected = counts.sum() * probabilities[possible]
    assert expected.min() > 15, "too few draws for a chi-square"
    if len(expected) == 1:
        return
    assert stats.chisquare(counts[possible], expected).pvalue > LEVEL


def assert_uniform_pairs(one: np.ndarray, other: np.ndarray, bound: int) -> None:
    assert_counts(bound * one + other, np.full(bound**2, 1 / bound**2))


@pytest.mark.parametrize(("transfer", "execution"), [((2, 9), (1, 4)), ((1, 1), (2, 9)), ((0, 3), (1, 1))])
def test_uniform_delays_are_uniform_between_their_bounds(transfer: tuple[int, int], execution: tuple[int, int]) -> None:
    """Would catch an end that is left out or drawn half as often, and servers or rounds that share a delay."""
    params = PARAMS._replace(
        min_transfer_delay=transfer[0],
        max_transfer_delay=transfer[1],
        min_execution_delay=execution[0],
        max_execution_delay=execution[1],
    )
    result = drawn(delays.uniform, params)
    for values, (least, most) in ((result.arrival.transfer_delay, transfer), (result.execution, execution)):
        shifted, span = values - least, most - least + 1
        assert values.dtype == np.int32
        for server in range(M):
            assert_counts(shifted[:, server], np.full(span, 1 / span))
        assert_uniform_pairs(shifted[:, 0], shifted[:, 1], span)
        assert_uniform_pairs(shifted[:-1, 2], shifted[1:, 2], span)


def geometric_probabilities(stop: float, span: int) -> np.ndarray:
    probabilities = stats.geom.pmf(np.arange(1, span + 1), stop)
    probabilities[-1] = 1 - probabilities[:-1].sum()  # cut at the upper bound
    return probabilities


@pytest.mark.parametrize("stop", [0.15, 0.4, 0.75])
def test_geometric_delays_end_with_their_probability_each_round(stop: float) -> None:
    """Would catch a geometric law that counts from the wrong round, swaps its probabilities, or passes its bound."""
    ends = {"min_transfer_delay": 2, "max_transfer_delay": 7, "min_execution_delay": 1, "max_execution_delay": 5}
    result = drawn(delays.geometric, edge.Params(num_experts=M)._replace(**ends, geometric_stop=stop))
    for values, least, span in ((result.arrival.transfer_delay, 2, 6), (result.execution, 1, 5)):
        for server in range(M):
            assert_counts(values[:, server] - least, geometric_probabilities(stop, span))
        assert stats.pearsonr(values[:, 0], values[:, 1]).pvalue > LEVEL


def test_a_geometric_delay_that_stops_at_once_is_the_least() -> None:
    """Would catch a logarithm of 0, and a chance of a further round that is left over; and one that never stops."""
    result = drawn(delays.geometric, PARAMS._replace(geometric_stop=1.0))
    assert np.all(result.arrival.transfer_delay == 2)
    result = drawn(delays.geometric, PARAMS._replace(geometric_stop=1e-30))
    assert np.all(result.arrival.transfer_delay == 9)


def test_an_uplink_is_exponential_with_the_distance_as_its_mean() -> None:
    """Would catch a mean that is not distance times `uplink_delay`, an uplink a server, or rounding down."""
    params = PARAMS._replace(min_transfer_delay=0, max_transfer_delay=10_000, uplink_delay=20.0, fibre_delay=0.0)
    arrival = drawn(delays.by_distance, params).arrival
    assert np.all(arrival.transfer_delay == arrival.transfer_delay[:, :1])  # one way up, and no way on
    rounds, mean = arrival.transfer_delay[:, 0], 20 * arrival.distance.min(axis=1)
    # Rounds k hold the times from k - 1/2 to k + 1/2: spread uniformly over their probability, they are uniform.
    law = stats.expon(scale=mean)
    low, high = law.cdf(np.maximum(rounds - 0.5, 0)), law.cdf(rounds + 0.5)
    spread = low + np.random.default_rng(0).random(NUM_DRAWS) * (high - low)
    assert stats.kstest(spread, "uniform").pvalue > LEVEL
    assert stats.pearsonr(spread, arrival.distance.min(axis=1)).pvalue > LEVEL


def test_fibre_leads_from_the_nearest_server_to_the_chosen_one() -> None:
    """Would catch distances from the user, or from an absent server that is nearer."""
    params = PARAMS._replace(min_transfer_delay=0, max_transfer_delay=50, uplink_delay=0.0, fibre_delay=30.0)
    for num_experts in (M, 3):
        arrival = drawn(delays.by_distance, params._replace(num_experts=num_experts)).arrival
        nearest = arrival.distance[:, :num_experts].argmin(axis=1)
        assert len(np.unique(nearest)) == num_experts
        away = 30 * np.linalg.norm(MAP[None, :] - MAP[nearest][:, None], axis=2)
        assert np.abs(arrival.transfer_delay - away).max() <= 0.5 + 1e-5
        assert not np.any(np.take_along_axis(arrival.transfer_delay, nearest[:, None], axis=1))


@pytest.mark.parametrize("law", [delays.uniform, delays.geometric, delays.by_distance])
@pytest.mark.parametrize(("least", "most"), [(0, 1), (3, 3), (1, 4), (5, 2000)])
def test_bounds_are_respected(law: delays.Law, least: int, most: int) -> None:
    """Would catch a draw at the edge of the unit interval that leads beyond a bound, or infinite times."""
    params = PARAMS._replace(
        min_transfer_delay=least, max_transfer_delay=most, uplink_delay=1e30, fibre_delay=3.0, geometric_stop=1e-4
    )
    values = drawn(law, params).arrival.transfer_delay
    assert values.min() >= least
    assert values.max() <= most
    for unit in np.float32([2.0**-25, 1.0]):  # the ends of what a float32 draw can be
        trip = delays.Trip(
            uniform=np.full(M, unit),
            least=np.int32(least),
            most=np.int32(most),
            distance=np.ones(M, np.float32),
            nearest=np.int32(0),
            positions=np.asarray(MAP, np.float32),
            uplink=-np.log(unit),
        )
        extreme = jax.jit(law)(trip, params)
        assert least <= extreme.min()
        assert extreme.max() <= most


BY_SERVER, BY_PAIR = np.arange(2, M + 2), 2 + np.arange(M * M).reshape(M, M) % 7


@pytest.mark.parametrize("rounds", [BY_SERVER, BY_PAIR], ids=["server", "pair"])
def test_a_table_holds_what_it_is_given(rounds: np.ndarray, tmp_path: Path) -> None:
    """Would catch a table that is flattened, transposed or read in part."""
    file = tmp_path / "rounds.csv"
    file.write_text("\n".join(",".join(map(str, row)) for row in np.atleast_2d(rounds)) + "\n")
    for given in (rounds, rounds.astype(float), jnp.asarray(rounds), rounds.tolist(), str(file), file):
        np.testing.assert_array_equal(delays.Table(given).rounds, rounds)


@pytest.mark.parametrize("rounds", [BY_SERVER, BY_PAIR], ids=["server", "pair"])
def test_a_table_is_read_from_the_nearest_to_the_chosen_server(rounds: np.ndarray) -> None:
    """Would catch a table that is read by the chosen server where the nearest counts."""
    arrival = drawn(delays.Table(rounds)).arrival
    nearest = arrival.distance.argmin(axis=1)
    assert len(np.unique(nearest)) == M
    expected = np.broadcast_to(rounds, (NUM_DRAWS, M)) if rounds.ndim == 1 else rounds[nearest]
    np.testing.assert_array_equal(arrival.transfer_delay, expected)


def test_a_column_of_a_file_is_a_table_by_server(tmp_path: Path) -> None:
    """Would catch a file with one number a line that is not read as (M,), and blank lines that count."""
    file = tmp_path / "column.csv"
    file.write_text("\n".join(map(str, BY_SERVER)) + "\n\n")
    np.testing.assert_array_equal(delays.Table(file).rounds, BY_SERVER)


def test_a_run_takes_its_delays_from_the_laws() -> None:
    """Would catch a system that draws otherwise than by the laws it was given: tables, and a user's own function."""

    def mine(trip: delays.Trip, params: edge.Params) -> jax.Array:
        return trip.least + jnp.where(jnp.arange(M) == trip.nearest, 0, params.max_transfer_delay)

    execution = delays.Table(BY_SERVER)
    params = edge.Params(num_experts=M, max_transfer_delay=4, min_execution_delay=2, max_execution_delay=7)
    system = edge.system(DIMS, edge.policies.nearest, transfer=mine, execution=execution)
    state, info = mt.simulate(system, ROOT, params, 60)
    np.testing.assert_array_equal(state.execution_delay, BY_SERVER)
    routed = info.expert >= 0
    transfer = np.asarray(info.delay)[routed] - BY_SERVER[info.expert[routed]]
    assert set(transfer) == {0, 4}
    assert transfer[0] == 0  # the first task meets idle servers, and goes to the nearest


@pytest.mark.parametrize("count", [1, 2, 5, 10, 50, 200])
def test_the_map_is_even(count: int) -> None:
    """Would catch servers on one spot or outside the square, or a map no more even than chance."""
    places = delays.even_map(count)
    assert places.shape == (count, 2)
    assert places.min() >= 0
    assert places.max() < 1
    np.testing.assert_array_equal(delays.even_map(300)[:count], places)
    if count > 1:
        apart = np.linalg.norm(places[:, None] - places[None], axis=2) + 9 * np.eye(count)
        assert apart.min() > 0.4 / np.sqrt(count)
    if count >= 50:
        rng = np.random.default_rng(0)
        by_chance = [qmc.discrepancy(rng.random((count, 2))) for _ in range(50)]
        assert qmc.discrepancy(places) < min(by_chance)
        quadrants = np.bincount((2 * places[:, 0]).astype(int) + 2 * (2 * places[:, 1]).astype(int), minlength=4)
        assert np.abs(quadrants - count / 4).max() <= 3


def test_users_are_uniform_on_the_square() -> None:
    """Would catch users on a line or outside the square: their places follow from three distances."""
    squares = drawn().arrival.distance.astype(np.float64) ** 2
    centred = MAP[1:] - MAP[0]
    right = (squares[:, :1] - squares[:, 1:] + np.sum(MAP[1:] ** 2 - MAP[0] ** 2, axis=1)) / 2
    places, misses, *_ = np.linalg.lstsq(centred, right.T)
    assert misses.max() < 1e-9
    for axis in places:
        assert stats.kstest(axis, "uniform").pvalue > LEVEL
    assert stats.pearsonr(*places).pvalue > LEVEL


def test_own_truths_scatter_around_their_centres() -> None:
    """Would catch a variance for a deviation, a spread that tasks share, or centres of another scale."""
    params = PARAMS._replace(cluster_spread=0.7, truth_scale=2.5)
    result = drawn(delays.uniform, params)
    rows = np.arange(NUM_DRAWS)
    own = result.arrival.truth - result.pool.truths[rows, result.arrival.task]
    assert_counts(result.arrival.task, np.full(N, 1 / N))
    assert stats.kstest(own.ravel(), stats.norm(0, 0.7).cdf).pvalue > LEVEL
    assert stats.pearsonr(own[:, 0], own[:, 1]).pvalue > LEVEL
    assert stats.pearsonr(own[:, 0], result.pool.truths[rows, result.arrival.task, 0]).pvalue > LEVEL
    assert stats.kstest(result.pool.truths[:2000].ravel(), stats.norm(0, 2.5).cdf).pvalue > LEVEL
    variance = drawn(delays.uniform, params._replace(scale_is_variance=True))
    assert stats.kstest(variance.pool.truths[:2000].ravel(), stats.norm(0, 2.5**0.5).cdf).pvalue > LEVEL


def test_a_task_without_spread_has_its_centre_for_truth() -> None:
    """Would catch a rest of spread at 0."""
    result = drawn(delays.uniform, PARAMS._replace(cluster_spread=0.0))
    np.testing.assert_array_equal(result.arrival.truth, result.pool.truths[np.arange(NUM_DRAWS), result.arrival.task])


def hidden_signals(result: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """beta v (draws, p), which is alone where there is no noise, and its column."""
    occupied = np.any(result.arrival.features != 0, axis=1)
    assert np.all(occupied.sum(axis=1) == 1)
    return result.arrival.features.sum(axis=2), occupied.argmax(axis=1)


@pytest.mark.parametrize("law", [PROPORTIONAL, ORTHOGONAL, INDEPENDENT])
def test_signals_obey_their_law(law: int) -> None:
    """Would catch a law in another's place, a scale that is lost, or the centre's signal for the own truth's."""
    c, low, high = 1.7, 0.25, 1.5
    params = PARAMS._replace(signal_law=law, signal_scale=c, min_strength=low, max_strength=high)
    result = drawn(delays.uniform, params)
    pool, rows = result.pool, np.arange(NUM_DRAWS)
    hidden, column = hidden_signals(result)
    if law == PROPORTIONAL:
        signal = c * result.arrival.truth
        assert np.abs(pool.signals - c * pool.truths).max() < 1e-5
    else:
        signal = pool.signals[rows, result.arrival.task]
    if law == ORTHOGONAL:
        products = np.einsum("bnp,bmp->bnm", pool.signals, pool.signals)
        assert np.abs(products - c**2 * np.eye(N)).max() < 1e-4
    if law == INDEPENDENT:
        assert np.abs(np.abs(pool.signals).max(axis=2) - c).max() < 1e-6
        assert_counts(np.abs(pool.signals[:, 0]).argmax(axis=1), np.full(P, 1 / P))
    if law != PROPORTIONAL:
        assert stats.pearsonr(pool.signals[:, 0, 0], pool.truths[:, 0, 0]).pvalue > LEVEL
    strength = np.sum(hidden * signal, axis=1) / np.sum(signal**2, axis=1)
    assert np.abs(hidden - strength[:, None] * signal).max() < 1e-5 * np.abs(hidden).max()
    assert low - 1e-5 < strength.min() < low + 0.01
    assert high - 0.01 < strength.max() < high + 1e-5
    assert stats.kstest(strength, stats.uniform(low, high - low).cdf).pvalue > LEVEL
    assert_counts(column, np.full(S, 1 / S))
    assert_uniform_pairs(column[:-1], column[1:], S)


@pytest.mark.parametrize("strength", [0.4, 1.0])
def test_equal_ends_give_a_constant_strength(strength: float) -> None:
    """Would catch a strength that is drawn although its interval is a point."""
    params = PARAMS._replace(signal_law=ORTHOGONAL, min_strength=strength, max_strength=strength)
    result = drawn(delays.uniform, params)
    hidden, _ = hidden_signals(result)
    signal = result.pool.signals[np.arange(NUM_DRAWS), result.arrival.task]
    assert np.abs(hidden - strength * signal).max() < 1e-6


def test_noise_and_perturbations_have_their_scales() -> None:
    """Would catch a variance for a deviation, a symmetric perturbation, or servers that share one."""
    arrival = drawn(
        delays.uniform, PARAMS._replace(noise_scale=0.3, perturbation_scale=0.2, signal_scale=100.0)
    ).arrival
    column = np.abs(arrival.features).max(axis=1).argmax(axis=1)  # the signal's, by far the largest
    noise = np.moveaxis(arrival.features, 1, 2)[np.arange(S)[None] != column[:, None]]
    assert stats.kstest(noise[:50_000].ravel()[::8], stats.norm(0, 0.3).cdf).pvalue > LEVEL
    for server in range(M):
        assert stats.kstest(arrival.perturbation[:, server], stats.uniform(0, 0.2).cdf).pvalue > LEVEL
        assert stats.kstest(arrival.uniform[:, server], "uniform").pvalue > LEVEL
    assert_counts(arrival.perturbation.argmax(axis=1), np.full(M, 1 / M))
    assert stats.pearsonr(arrival.perturbation[:, 0], arrival.uniform[:, 0]).pvalue > LEVEL
    assert stats.pearsonr(arrival.uniform[:, 0], arrival.uniform[:, 1]).pvalue > LEVEL
