"""The package's continual-learning round against a plain NumPy loop: each round from the same bits, and histories."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory import continual
from moe_theory.core.tasks import PROPORTIONAL

from .continual_loop import Reference, settings_of

NUM_TASKS, NUM_FEATURES, NUM_SAMPLES = 6, 10, 6  # Fig. 2 (Appendix A.2)
NUM_ROUNDS = 50
TOLERANCES = {"float64": 1e-12, "float32": 1e-5}  # absolute plus relative to an array's largest entry
CLEARANCE = 1e-4  # no decision of a drawn round is closer than this, so that rounding cannot decide it


@functools.partial(jax.jit, static_argnames="max_active")
def play(start, rounds, params, max_active):
    """States and infos after every round, which brings its truths, and may begin with a state of its own."""

    def one(state, round):
        own, has_own, truths, *drawn = round
        state = jax.tree.map(lambda before, given: jnp.where(has_own, given, before), state, own)
        state = state._replace(pool=state.pool._replace(truths=truths))
        state, info = continual.learn(state, *drawn, params, max_active=max_active)
        return state, (state, info)

    return jax.lax.scan(one, start, rounds)[1]


class Scenario(NamedTuple):
    """One run of `NUM_ROUNDS`: its parameters and what it is padded to."""

    name: str
    params: continual.Params
    max_experts: int = 10

    @property
    def max_active(self):
        return 1 if self.params.num_active == 1 else 3


def scenarios():
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
# In `make test` at both precisions; of others with ten experts the single precision is left to `make thorough`, of
# others with three experts both are.
FIRST = ("unit-signal-M", "momentary-flags-M", "random-strength", "top-2-M", "top-3-momentary")


@pytest.fixture(params=TOLERANCES)
def precision(request):
    """The package's precision, switched on for one test."""
    with jax.enable_x64(request.param == "float64"):
        yield np.dtype(request.param)


def is_second(scenario, precision):
    is_other = not scenario.name.startswith(FIRST)
    return is_other and (precision == "float32" or scenario.params.num_experts == 3 or scenario.max_experts < 10)


every_scenario = pytest.mark.parametrize(
    ("scenario", "precision"),
    [
        pytest.param(
            scenario,
            precision,
            id=f"{precision}-{scenario.name}",
            marks=[pytest.mark.thorough] * is_second(scenario, precision),
        )
        for scenario in SCENARIOS
        for precision in TOLERANCES
        if precision == "float64" or scenario.params.num_experts == 10
    ],
    indirect=["precision"],
)


@every_scenario
def test_every_round_agrees_with_the_paper_from_the_same_state(scenario, precision):
    """Would catch a slip in (1)-(9), (27)-(30) or lines 5 to 13: routing, padding, f_t, T1, flags, the last update."""
    world = World(scenario, precision)
    reference, M = world.reference, scenario.params.num_experts
    starts, draws, expected = [], [], []
    for _ in range(NUM_ROUNDS):
        reference.w, reference.theta = world.rounded(reference.w), world.rounded(reference.theta)
        task, features, perturbation = drawn = world.draw_clear()
        draws.append(drawn)
        starts.append(world.as_the_loop())
        outcome = reference.learn(task, features, perturbation[:M])
        expected.append(
            {
                "expert": outcome.chosen[0],
                "visits": reference.visits.copy(),
                "converged": reference.flags.copy(),
                "terminated": reference.terminated,
                "round": reference.t,
                "experts": reference.w,
                "gates": reference.theta,
                "gate_outputs": outcome.h,
                "gate_probabilities": outcome.pi,
                "update_norm": outcome.update_norm,
                "error": reference.error(),
            }
        )
    states, infos = world.take_rounds(draws, starts)
    world.assert_as_expected(states, infos, expected)
    for padding in (infos.gate_probabilities, states.experts, states.gates):
        assert not np.any(padding[:, M:])
    terminated = [each["terminated"] for each in expected]
    assert reference.settings.T1 + 1 < NUM_ROUNDS
    assert any(terminated) == scenario.params.terminate, "a run must see its own termination: half of Algorithm 1"
    if scenario.params.terminate:
        assert reference.settings.T1 < 1 + terminated.index(True) < NUM_ROUNDS


@every_scenario
def test_streamed_metrics_are_the_sums_over_all_past_rounds(scenario, precision):
    """Would catch a streaming error in (15) or (16), also of truths that drift in the second half, or a state that does
    not carry what the next round needs."""
    world = World(scenario, precision)
    reference, M = world.reference, scenario.params.num_experts
    draws, truths, expected = [], [], []
    for round in range(NUM_ROUNDS):
        truths.append(world.drifted() if round > NUM_ROUNDS // 2 else world.truths)
        draws.append(world.draw())
    states, infos = world.take_rounds(draws, truths=truths)
    chosen = np.diff(states.visits, axis=0, prepend=0) > 0
    np.testing.assert_array_equal(chosen[:, :M].sum(axis=1), scenario.params.num_active)
    for is_chosen, (task, features, perturbation), reference.truths in zip(chosen, draws, truths, strict=True):
        reference.learn(task, features, perturbation[:M], chosen=np.flatnonzero(is_chosen).tolist())
        explored = np.concatenate(reference.chosen[: reference.settings.T1])
        expected.append(
            {
                "visits": reference.visits.copy(),
                "explored_visits": np.bincount(explored, minlength=M),
                "experts": reference.w.copy(),
                "error": reference.error(),
                "generalization_error": reference.generalization_error(),
                "forgetting": reference.forgetting() if reference.t > 1 else 0.0,
            }
        )
    world.assert_as_expected(states, infos, expected)


@pytest.mark.parametrize("num_active", [1, 2, 3])
def test_a_tie_goes_to_the_lowest_index(num_active, precision):
    """Would catch a last-index or random tie rule; at gates of zero and equal perturbations all experts tie."""
    params = continual.Params(num_experts=4, num_active=num_active)
    world = World(Scenario("tie", params), precision)
    task, features, _ = world.draw()
    draws = [(task, features, np.zeros(10)), (task, features, np.array([0, 0.1, 0, 0.1, 9, 0, 0, 0, 0, 0]))]
    states, infos = world.take_rounds(draws, [world.begun] * 2)
    for place, first in enumerate((0, 1)):
        reference = Reference(world.reference.truths, world.reference.settings)
        outcome = reference.learn(task, features, draws[place][2][:4])
        assert infos.expert[place] == outcome.chosen[0] == first
        np.testing.assert_array_equal(states.visits[place, :4], reference.visits)


@pytest.mark.parametrize(
    ("num_experts", "learning_rate"), [(1, 0.5), (1, 1.0), (3, 0.3), (7, 0.07), (10, 0.1), (10, 0.7), (10, 100.0)]
)
def test_flags_open_in_the_round_after_T1(num_experts, learning_rate, precision):
    """Would catch `>=` for `>` in line 6, a floor for the ceiling of line 1, and a ceiling lost to rounding."""
    params = continual.Params(num_experts=num_experts, learning_rate=learning_rate, termination_threshold=1e6)
    world = World(Scenario("T1", params), precision)
    T1 = world.reference.settings.T1
    states, _ = world.take_rounds([world.draw()], [world.begun_at(T1 - 1), world.begun_at(T1)])
    for place, opens in enumerate((False, True)):
        np.testing.assert_array_equal(states.converged[place, :num_experts], opens)
        assert states.terminated[place] == opens
        assert np.any(states.gates[place]) == (num_experts > 1 and not opens)


@pytest.mark.parametrize(("threshold", "is_near"), [(0.0, False), (1e-6, True)])
def test_a_gap_equal_to_the_threshold_is_not_below_it(threshold, is_near, precision):
    """Would catch `<=` for `<` in line 7; at gates of zero every gap is exactly 0, also a chosen expert's to itself."""
    params = continual.Params(num_experts=3, learning_rate=1.0, termination_threshold=threshold)
    world = World(Scenario("strict", params), precision)
    reference = world.reference
    reference.t = reference.settings.T1
    task, features, perturbation = drawn = world.draw()
    states, _ = world.take_rounds([drawn], [world.begun_at(reference.t)])
    reference.learn(task, features, perturbation[:3])
    assert reference.terminated == is_near
    assert states.terminated[0] == is_near
    np.testing.assert_array_equal(states.converged[0, :3], reference.flags)


class World:
    """Definition 1 in NumPy, a loop to run on it, and the comparison, all at one precision."""

    def __init__(self, scenario, precision):
        params = scenario.params
        self.scenario, self.precision = scenario, precision
        self.generator = np.random.default_rng([20240, *scenario.name.encode()])
        deviation = np.sqrt(params.truth_scale) if params.scale_is_variance else params.truth_scale
        self.clusters = np.arange(NUM_TASKS) % params.num_clusters
        centers = self.generator.normal(0, deviation, (params.num_clusters, NUM_FEATURES))
        spread = self.generator.normal(0, params.cluster_spread, (NUM_TASKS, NUM_FEATURES))
        truths = centers[self.clusters] + spread
        apart = self.generator.normal(0, deviation, (NUM_TASKS, NUM_FEATURES))
        signals = params.signal_scale * (truths if params.signal_law == PROPORTIONAL else apart[self.clusters])
        self.truths, self.signals = self.rounded(truths), self.rounded(signals)
        self.reference = Reference(self.truths, settings_of(params))

    @functools.cached_property
    def begun(self):
        scenario = self.scenario
        dims = continual.Dims(scenario.max_experts, NUM_TASKS, NUM_FEATURES, NUM_SAMPLES, scenario.max_active)
        pool = continual.Pool(
            jnp.asarray(self.truths, self.precision),
            jnp.asarray(self.signals, self.precision),
            jnp.asarray(self.clusters),
        )
        return jax.device_get(continual.begin(dims, scenario.params, pool))

    def begun_at(self, round):
        return self.begun._replace(round=np.asarray(round, np.int32))

    def as_the_loop(self):
        """The package's state with all that the loop has of one."""
        reference = self.reference
        return self.begun_at(reference.t)._replace(
            experts=self.padded(reference.w),
            gates=self.padded(reference.theta),
            visits=self.padded(reference.visits),
            converged=self.padded(reference.flags),
            terminated=np.asarray(reference.terminated),
        )

    def drifted(self):
        """The truths, each moved by about half its length."""
        return self.rounded(self.truths + self.generator.normal(0, 0.2, self.truths.shape))

    def take_rounds(self, draws, starts=None, truths=None):
        """The package's states and infos after rounds that follow each other, or of which each has its own start; for
        one program the last is repeated up to `NUM_ROUNDS`."""

        def stacked(values):
            return jax.tree.map(lambda *leaves: np.stack(leaves), *values, *[values[-1]] * (NUM_ROUNDS - len(values)))

        tasks, features, perturbations = stacked(draws)
        rounds = (
            stacked(starts or [self.begun]),
            np.full(NUM_ROUNDS, starts is not None),
            stacked(truths or [self.truths]).astype(self.precision),
            continual.Arrival(tasks, features.astype(self.precision)),
            perturbations.astype(self.precision),
        )
        return jax.device_get(play(self.begun, rounds, self.scenario.params, max_active=self.scenario.max_active))

    def draw(self):
        """A round's task, features (d, s) and perturbation; experts that do not exist are perturbed most."""
        params = self.scenario.params
        task = int(self.generator.integers(NUM_TASKS))
        strength = params.max_strength - (params.max_strength - params.min_strength) * self.generator.random()
        features = self.generator.normal(0, params.noise_scale, (NUM_FEATURES, NUM_SAMPLES))
        features[:, self.generator.integers(NUM_SAMPLES)] = strength * self.signals[task]
        perturbation = params.perturbation_scale * self.generator.random(self.scenario.max_experts)
        perturbation[params.num_experts :] = 1e6
        return task, self.rounded(features), self.rounded(perturbation)

    def draw_clear(self):
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

    def rounded(self, array):
        return np.asarray(array, self.precision).astype(np.float64)

    def padded(self, array):
        dtypes = {"f": self.precision, "i": np.int32, "b": bool}
        padding = [(0, self.scenario.max_experts - len(array)), *[(0, 0)] * (array.ndim - 1)]
        return np.pad(array, padding).astype(dtypes[array.dtype.kind])

    def assert_as_expected(self, states, infos, expected):
        """By name what the experts that exist have after every round; counts and flags exactly."""
        actual = infos._asdict() | states._asdict()
        for name in expected[0]:
            values = np.array([each[name] for each in expected])
            shown = actual[name] if values.ndim == 1 else actual[name][:, : self.scenario.params.num_experts]
            if values.dtype.kind != "f":
                np.testing.assert_array_equal(shown, values, name)
                continue
            assert shown.dtype == self.precision, name
            error, largest = (np.abs(each).reshape(NUM_ROUNDS, -1).max(axis=1) for each in (shown - values, values))
            bound = TOLERANCES[self.precision.name] * (1 + largest)
            wrong = [f"{name} of round {t + 1}: {error[t]:.3g} > {bound[t]:.3g}" for t in np.flatnonzero(error > bound)]
            assert not wrong
            assert not np.any(np.isnan(error))
