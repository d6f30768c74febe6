"""The package's continual-learning round against a plain NumPy loop of the paper.

Runs without termination are chaotic, so whole trajectories are never compared. The loop is driven along, and in every
round the package takes one round from the loop's state. The streamed metrics need their own past: there the package is
driven along and the loop takes its routes; models and metrics then no longer depend on the gates, so that whole runs
may be compared.

Both sides get the same bits: what the package is given is rounded to its precision first, for the loop as well.
"""

import copy
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory import continual

from .continual_loop import Outcome, Reference, Settings, minimum_norm_update

pytestmark = pytest.mark.usefixtures("compiled_to_run")

NUM_TASKS, NUM_FEATURES, NUM_SAMPLES = 6, 10, 6  # Fig. 2 (Appendix A.2)
NUM_ROUNDS = 50
TOLERANCES = {"float64": 1e-12, "float32": 1e-5}  # absolute plus relative to an array's largest entry
CLEARANCE = 1e-4  # no decision of a drawn round is closer than this, so that rounding cannot decide it

learn = jax.jit(continual.learn, static_argnames="max_active")


class Scenario(NamedTuple):
    """One run of `NUM_ROUNDS`: its parameters and what it is padded to."""

    name: str
    params: continual.Params
    max_experts: int = 10

    @property
    def max_active(self) -> int:
        return 1 if self.params.num_active == 1 else 3


def scenarios() -> Iterator[Scenario]:
    """All readings at M = 1, 3, 10, then each switch that no reading turns. Gamma: such that a run ends on the way."""
    gammas = {"weak-signal": 0.3, "strong-signal": 16.0, "squared-locality": 8.0}
    for name, reading in continual.READINGS.items():
        for num_experts in (1, 3, 10):
            params = reading.params(num_experts=num_experts, termination_threshold=gammas.get(name, 1.0))
            yield Scenario(f"{name}-M{num_experts}", params)
            if num_experts > 1:
                yield Scenario(f"{name}-endless-M{num_experts}", params._replace(terminate=False))
    switches = {
        "momentary-flags": {"accumulate_flags": False, "termination_threshold": 5.0},
        "momentary-flags-endless": {"accumulate_flags": False, "terminate": False},
        "random-strength": {"min_strength": 0.0, "termination_threshold": 0.3},
        "no-noise": {"noise_scale": 0.0, "termination_threshold": 3.0},
        "variance": {"scale_is_variance": True, "termination_threshold": 6.0},
        "unbalanced": {"balance_weight": 0.0},
        "small-steps": {"learning_rate": 0.3, "termination_threshold": 3.0},
        "top-2": {"num_active": 2, "termination_threshold": 0.3},
        "top-3": {"num_active": 3, "termination_threshold": 0.3},
        "top-2-squared-no-noise": {"num_active": 2, "locality_power": 2.0, "noise_scale": 0.0},
        "top-3-momentary-random-strength": {
            "num_active": 3,
            "accumulate_flags": False,
            "min_strength": 0.0,
            "termination_threshold": 0.2,
        },
    }
    for name, choices in switches.items():
        for num_experts in (3, 10):
            params = continual.Params(num_experts=num_experts, termination_threshold=1.0)._replace(**choices)
            yield Scenario(f"{name}-M{num_experts}", params)
    for num_experts, num_active in ((1, 1), (3, 1), (3, 3)):
        params = continual.Params(num_experts=num_experts, num_active=num_active, termination_threshold=1.0)
        yield Scenario(f"unpadded-top-{num_active}-M{num_experts}", params, max_experts=num_experts)


SCENARIOS = list(scenarios())


@pytest.fixture(params=TOLERANCES)
def precision(request: pytest.FixtureRequest) -> Iterator[np.dtype]:
    """The package's precision, switched on for one test."""
    with jax.enable_x64(request.param == "float64"):
        yield np.dtype(request.param)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_round_agrees_with_the_paper_from_the_same_state(scenario: Scenario, precision: np.dtype) -> None:
    """Would catch a slip in (1)-(9), (27)-(30) or lines 5 to 13: routing, padding, f_t, T1, flags, the last update."""
    world = World(scenario, precision)
    reference, M = world.reference, scenario.params.num_experts
    start = world.begin()
    terminated_at = None
    for _ in range(NUM_ROUNDS):
        reference.w, reference.theta = world.rounded(reference.w), world.rounded(reference.theta)
        task, features, perturbation = world.draw_clear()
        state = start._replace(
            experts=world.padded(reference.w),
            gates=world.padded(reference.theta),
            visits=world.padded(reference.visits),
            converged=world.padded(reference.flags),
            terminated=np.asarray(reference.terminated),
            round=np.asarray(reference.t, np.int32),
        )
        after, info = world.take_round(state, task, features, perturbation)
        outcome = reference.learn(task, features, perturbation[:M])
        assert_routed(info, after.visits - state.visits, outcome)
        np.testing.assert_array_equal(after.visits[:M], reference.visits)
        np.testing.assert_array_equal(after.converged[:M], reference.flags)
        assert after.terminated == reference.terminated
        assert after.round == reference.t
        world.assert_close("experts", after.experts[:M], reference.w)
        world.assert_close("gates", after.gates[:M], reference.theta)
        world.assert_close("gate outputs", info.gate_outputs[:M], outcome.h)
        world.assert_close("gate probabilities", info.gate_probabilities[:M], outcome.pi)
        world.assert_close("update norm", info.update_norm, outcome.update_norm)
        world.assert_close("error", info.error, reference.error())
        assert not np.any(info.gate_probabilities[M:])
        assert not np.any(after.experts[M:])
        assert not np.any(after.gates[M:])
        if reference.terminated and terminated_at is None:
            terminated_at = reference.t
    assert reference.settings.T1 + 1 < NUM_ROUNDS
    if scenario.params.terminate:
        assert terminated_at is not None, "the run must see its own termination, or half of Algorithm 1 is not tested"
        assert reference.settings.T1 < terminated_at < NUM_ROUNDS
    else:
        assert terminated_at is None


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_streamed_metrics_are_the_sums_over_all_past_rounds(scenario: Scenario, precision: np.dtype) -> None:
    """Would catch a streaming error in (15) or (16), also of truths that drift in the second half, or a state that does
    not carry what the next round needs."""
    world = World(scenario, precision)
    reference, M = world.reference, scenario.params.num_experts
    state = world.begin()
    for round in range(NUM_ROUNDS):
        if round > NUM_ROUNDS // 2:
            state = state._replace(pool=state.pool._replace(truths=world.drift()))
        task, features, perturbation = world.draw()
        visits = state.visits
        state, info = world.take_round(state, task, features, perturbation)
        routes = [int(expert) for expert in np.flatnonzero(state.visits - visits)]
        assert len(routes) == scenario.params.num_active
        assert max(routes) < M
        reference.learn(task, features, perturbation[:M], chosen=routes)
        np.testing.assert_array_equal(state.visits[:M], reference.visits)
        explored = np.concatenate(reference.chosen[: reference.settings.T1])
        np.testing.assert_array_equal(state.explored_visits[:M], np.bincount(explored, minlength=M))
        world.assert_close("experts", state.experts[:M], reference.w)
        world.assert_close("error", info.error, reference.error())
        world.assert_close("generalization error", info.generalization_error, reference.generalization_error())
        if reference.t >= 2:
            world.assert_close("forgetting", info.forgetting, reference.forgetting())


@pytest.mark.parametrize("num_active", [1, 2, 3])
def test_a_tie_goes_to_the_lowest_index(num_active: int, precision: np.dtype) -> None:
    """Would catch a last-index or random tie rule; at gates of zero and equal perturbations all experts tie."""
    params = continual.Params(num_experts=4, num_active=num_active)
    world = World(Scenario("tie", params), precision)
    task, features, _ = world.draw()
    for perturbation, first in ((np.zeros(10), 0), (np.array([0, 0.1, 0, 0.1, 9, 0, 0, 0, 0, 0]), 1)):
        reference = Reference(world.reference.truths, world.reference.settings)
        outcome = reference.learn(task, features, perturbation[:4])
        after, info = world.take_round(world.begin(), task, features, perturbation)
        assert outcome.chosen[0] == first
        assert_routed(info, after.visits, outcome)


@pytest.mark.parametrize(
    ("num_experts", "learning_rate"), [(1, 0.5), (1, 1.0), (3, 0.3), (7, 0.07), (10, 0.1), (10, 0.7), (10, 100.0)]
)
def test_flags_open_in_the_round_after_T1(num_experts: int, learning_rate: float, precision: np.dtype) -> None:
    """Would catch `>=` for `>` in line 6, a floor for the ceiling of line 1, and a ceiling lost to rounding."""
    params = continual.Params(num_experts=num_experts, learning_rate=learning_rate, termination_threshold=1e6)
    world = World(Scenario("T1", params), precision)
    T1 = world.reference.settings.T1
    task, features, perturbation = world.draw()
    for time, opens in ((T1, False), (T1 + 1, True)):
        state = world.begin()._replace(round=np.asarray(time - 1, np.int32))
        after, _ = world.take_round(state, task, features, perturbation)
        np.testing.assert_array_equal(after.converged[:num_experts], opens)
        assert after.terminated == opens
        assert np.any(after.gates) == (num_experts > 1 and not opens)


@pytest.mark.parametrize(("threshold", "is_near"), [(0.0, False), (1e-6, True)])
def test_a_gap_equal_to_the_threshold_is_not_below_it(threshold: float, is_near: bool, precision: np.dtype) -> None:
    """Would catch `<=` for `<` in line 7; at gates of zero every gap is exactly 0, also a chosen expert's to itself."""
    params = continual.Params(num_experts=3, learning_rate=1.0, termination_threshold=threshold)
    world = World(Scenario("strict", params), precision)
    reference = world.reference
    reference.t = reference.settings.T1
    task, features, perturbation = world.draw()
    state = world.begin()._replace(round=np.asarray(reference.t, np.int32))
    after, _ = world.take_round(state, task, features, perturbation)
    reference.learn(task, features, perturbation[:3])
    assert reference.terminated == is_near
    assert after.terminated == is_near
    np.testing.assert_array_equal(after.converged[:3], reference.flags)


@pytest.mark.parametrize("locality_power", [1.0, 2.0])
@pytest.mark.parametrize(("num_experts", "num_active"), [(1, 1), (3, 1), (5, 2), (5, 3), (3, 3)])
def test_the_loop_descends_the_printed_loss(num_experts: int, num_active: int, locality_power: float) -> None:
    """The loop's gradient (27)-(30) is the derivative of (6) + (7) as printed, and sums to zero (Lemma 4)."""
    params = continual.Params(
        num_experts=num_experts,
        num_active=num_active,
        locality_power=locality_power,
        terminate=False,
        learning_rate=0.1,
    )
    world = World(Scenario("gradient", params, num_experts), np.dtype("float64"))
    reference = world.reference
    for _ in range(12):
        task, features, perturbation = world.draw()
        at_gate_step, w_before = copy.deepcopy(reference), reference.w.copy()
        outcome = reference.learn(task, features, perturbation)
        at_gate_step.t, at_gate_step.w = reference.t, reference.w
        slope = at_gate_step.difference_gradient(features, w_before, outcome.chosen, step=1e-5)
        scale = 1 + np.abs(outcome.gradient).max()
        assert np.abs(outcome.gradient - slope).max() < 1e-8 * scale
        assert np.abs(outcome.gradient.sum(axis=0)).max() < 1e-13 * scale


@pytest.mark.parametrize("noise_scale", [0.1, 0.0])
def test_the_loop_moves_an_expert_to_the_nearest_fit(noise_scale: float) -> None:
    """(4): the samples are fitted, no part of the move is outside their span, and (5) as printed says the same."""
    params = continual.Params(num_experts=1, noise_scale=noise_scale)
    world = World(Scenario("fit", params, max_experts=1), np.dtype("float64"))
    for _ in range(20):
        task, X, _ = world.draw()
        w = world.generator.normal(size=NUM_FEATURES)
        y = X.T @ world.reference.truths[task]
        moved = minimum_norm_update(w, X, y)
        np.testing.assert_allclose(X.T @ moved, y, rtol=0, atol=1e-12)
        outside = moved - w - X @ np.linalg.lstsq(X, moved - w)[0]
        assert np.abs(outside).max() < 1e-12
        if noise_scale > 0:
            np.testing.assert_allclose(moved, w + X @ np.linalg.solve(X.T @ X, y - X.T @ w), rtol=0, atol=1e-9)


class World:
    """Definition 1 in NumPy, a loop to run on it, and the comparison, all at one precision."""

    def __init__(self, scenario: Scenario, precision: np.dtype) -> None:
        params = scenario.params
        self.scenario, self.precision = scenario, precision
        self.generator = np.random.default_rng([20240, *scenario.name.encode()])
        deviation = np.sqrt(params.truth_scale) if params.scale_is_variance else params.truth_scale
        self.clusters = np.arange(NUM_TASKS) % params.num_clusters
        centers = self.generator.normal(0, deviation, (params.num_clusters, NUM_FEATURES))
        spread = self.generator.normal(0, params.cluster_spread, (NUM_TASKS, NUM_FEATURES))
        truths = centers[self.clusters] + spread
        apart = self.generator.normal(0, deviation, (NUM_TASKS, NUM_FEATURES))
        signals = params.signal_scale * (apart if params.independent_signals else truths)
        self.truths, self.signals = self.rounded(truths), self.rounded(signals)
        settings = Settings(
            M=params.num_experts,
            eta=params.learning_rate,
            alpha=params.balance_weight,
            Gamma=params.termination_threshold,
            k=params.num_active,
            q=params.locality_power,
            terminate=params.terminate,
            accumulate=params.accumulate_flags,
        )
        self.reference = Reference(self.truths, settings)

    def begin(self) -> continual.State:
        scenario = self.scenario
        dims = continual.Dims(scenario.max_experts, NUM_TASKS, NUM_FEATURES, NUM_SAMPLES, scenario.max_active)
        pool = continual.Pool(
            jnp.asarray(self.truths, self.precision),
            jnp.asarray(self.signals, self.precision),
            jnp.asarray(self.clusters),
        )
        return jax.device_get(continual.begin(dims, scenario.params, pool))

    def drift(self) -> np.ndarray:
        """Every truth moves by about half its length, for the loop as for the package."""
        self.reference.truths = self.rounded(self.truths + self.generator.normal(0, 0.2, self.truths.shape))
        return self.reference.truths.astype(self.precision)

    def take_round(
        self, state: continual.State, task: int, features: np.ndarray, perturbation: np.ndarray
    ) -> tuple[continual.State, continual.Info]:
        """The package's round, brought to the host."""
        arrival = continual.Arrival(np.asarray(task), features.astype(self.precision))
        perturbation = perturbation.astype(self.precision)
        after = learn(state, arrival, perturbation, self.scenario.params, max_active=self.scenario.max_active)
        return jax.device_get(after)

    def draw(self) -> tuple[int, np.ndarray, np.ndarray]:
        """A round's task, features (d, s) and perturbation; experts that do not exist are perturbed most."""
        params = self.scenario.params
        task = int(self.generator.integers(NUM_TASKS))
        strength = params.max_strength - (params.max_strength - params.min_strength) * self.generator.random()
        features = self.generator.normal(0, params.noise_scale, (NUM_FEATURES, NUM_SAMPLES))
        features[:, self.generator.integers(NUM_SAMPLES)] = strength * self.signals[task]
        perturbation = params.perturbation_scale * self.generator.random(self.scenario.max_experts)
        perturbation[params.num_experts :] = 1e6
        return task, self.rounded(features), self.rounded(perturbation)

    def draw_clear(self) -> tuple[int, np.ndarray, np.ndarray]:
        """A draw in which neither a route nor a flag of the loop's next round hangs on rounding."""
        settings = self.reference.settings
        for _ in range(1000):
            task, features, perturbation = self.draw()
            h = self.reference.theta @ features.sum(axis=1)
            clearance = CLEARANCE * (1 + np.abs(h).max())
            scores = np.sort(h + perturbation[: settings.M])[::-1]
            is_route_clear = np.all(-np.diff(scores)[: settings.k] > clearance)
            gaps = np.abs(h[:, None] - h[None, :])
            if is_route_clear and np.all(np.abs(gaps - settings.Gamma) > clearance):
                return task, features, perturbation
        raise AssertionError("no clear draw in 1000")

    def rounded(self, array: np.ndarray) -> np.ndarray:
        return np.asarray(array, self.precision).astype(np.float64)

    def padded(self, array: np.ndarray) -> np.ndarray:
        dtypes = {"f": self.precision, "i": np.int32, "b": bool}
        padding = [(0, self.scenario.max_experts - len(array)), *[(0, 0)] * (array.ndim - 1)]
        return np.pad(array, padding).astype(dtypes[array.dtype.kind])

    def assert_close(self, what: str, actual: np.ndarray, expected: np.ndarray | float) -> None:
        assert actual.dtype == self.precision, what
        tolerance = TOLERANCES[self.precision.name]
        error = np.abs(np.asarray(actual, np.float64) - expected).max()
        bound = tolerance + tolerance * np.abs(expected).max()
        assert error <= bound, (
            f"{what} differ by {error:.3g} > {bound:.3g} in round {self.reference.t} of {self.scenario.name}"
        )


def assert_routed(info: continual.Info, new_visits: np.ndarray, outcome: Outcome) -> None:
    """The package trained the experts that the loop trained, and names the same first choice."""
    assert info.expert == outcome.chosen[0]
    np.testing.assert_array_equal(np.flatnonzero(new_visits), sorted(outcome.chosen))
    np.testing.assert_array_equal(new_visits[np.asarray(outcome.chosen)], 1)
