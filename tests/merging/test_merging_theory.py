"""The paper's formulas written out again, what holds against every way to pick leaves, and costs of serving."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core.errors import UnknownNameError
from moe_theory.merging import adversary, corrected, costs, evaluation, theory
from moe_theory.merging.params import CYCLIC_SPLIT, EFFECTIVE_SPLIT, RANDOM_SPLIT, Dims, Params
from moe_theory.merging.serving import merge
from moe_theory.merging.system import system
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.tasks import VALIDATION, Recipe, examples
from moe_theory.runs.cells import Cell
from tests.continual.cases import loop_over, refuse

SETTINGS = (
    Params(smoothness_ratio=0.9, split_constant=0.5),
    Params(smoothness_ratio=0.5, split_constant=0.3, smoothness=0.8),
    Params(smoothness_ratio=0.7, split_constant=1.0, confidence=0.2),
    Params(smoothness_ratio=0.95, split_constant=0.1, confidence=0.5),
    Params(smoothness_ratio=0.6, split_constant=0.8),
)

MOST_SLOTS = 11


@functools.cache
def reached(params):
    """For every T up to `MOST_SLOTS`: the largest depth, number of leaves and sum of nu_1 rho^h of all ways to pick."""
    scale = (params.split_constant / params.smoothness) ** 2
    states = {((0, 0),): (1, 0.0)}  # leaves (depth, pulls) that can be picked -> most leaves there are, largest sum
    found = []
    for time in range(1, MOST_SLOTS + 1):
        following = {}
        for leaves, (number, total) in states.items():
            for leaf in set(leaves):
                depth, count = leaf[0], leaf[1] + 1
                others = list(leaves)
                others.remove(leaf)
                threshold = scale * math.log(time / params.confidence) * params.smoothness_ratio ** (-2 * depth)
                is_split = count >= threshold
                children = ([(depth + 1, 0)], [(depth + 1, 0)] * 2) if is_split else ([(depth, count)],)
                values = number + is_split, total + params.smoothness * params.smoothness_ratio**depth
                for kept in children:
                    state = tuple(sorted(others + kept))
                    best = following.get(state, (0, 0.0))
                    following[state] = (max(best[0], values[0]), max(best[1], values[1]))
        states = following
        depths = max(depth for leaves in states for depth, _ in leaves)
        found.append((depths, max(n for n, _ in states.values()), max(total for _, total in states.values())))
    return found


@loop_over("params", SETTINGS)
def test_no_way_to_pick_exceeds_the_bounds_and_some_way_has_the_depth(params):
    for rounds, (depth, leaves, total) in enumerate(reached(params), 1):
        assert corrected.depth_bound(rounds, params) == depth
        assert corrected.simple_depth_bound(rounds, params) >= depth
        assert corrected.leaf_bound(rounds, params) >= leaves
        assert corrected.discretization_bound(rounds, params) >= total - 1e-12
        assert (
            corrected.simple_discretization_bound(rounds, params)
            >= corrected.discretization_bound(rounds, params) - 1e-12
        )
    assert corrected.discretization_bound(MOST_SLOTS, params) < 1.3 * reached(params)[-1][2]


def test_the_least_over_depths_is_what_filling_up_gives():
    for params, rounds in itertools.product(SETTINGS, (1, 7, 100, 30_000)):
        ratio, deep = params.smoothness_ratio, []
        for last in range(25):
            pulls = [
                2**h * max(1, math.ceil(theory.split_threshold(float(rounds), float(h), params))) for h in range(last)
            ]
            shallow = sum(number * (ratio**h - ratio**last) for h, number in enumerate(pulls))
            deep.append(params.smoothness * (shallow + rounds * ratio**last))
        assert corrected.discretization_bound(rounds, params) == pytest.approx(min(deep), rel=1e-12)


DIMS = Dims(max_experts=3, max_leaves=128)
NUM_ROUNDS = 800
TREE_SETTINGS = tuple(
    Params(num_experts=3, max_active=3, smoothness_ratio=ratio, split_constant=constant, split_rule=rule)
    for ratio, constant, rule in (
        (0.3, 0.1, EFFECTIVE_SPLIT),
        (0.7, 0.5, CYCLIC_SPLIT),
        (0.9, 1.0, EFFECTIVE_SPLIT),
        (0.9, 1.0, RANDOM_SPLIT),
        (0.9, 30.0, CYCLIC_SPLIT),
    )
)


@pytest.fixture(scope="module")
def runs():
    """Trees under every rule."""
    return {
        (params, name): mt.simulate(adversary.one_rule(DIMS, name), jax.random.key(3), params, NUM_ROUNDS)[1]
        for params in TREE_SETTINGS
        for name in ("shallowest", "deepest", "uniform")
    }


def test_the_lemmas_as_printed_are_exceeded(runs):
    """(5) and (7) for large C, the form between at moderate C, (8) at early t: what tells them from what holds."""
    moderate, large = TREE_SETTINGS[0], TREE_SETTINGS[-1]
    assert int(runs[large, "deepest"].max_depth[-1]) == 1 > theory.depth_bound(NUM_ROUNDS, large)
    assert theory.leaf_bound(NUM_ROUNDS, large._replace(smoothness_ratio=0.5)) < 1
    slots = np.arange(3.0, NUM_ROUNDS + 1)
    depths = np.asarray(runs[moderate, "deepest"].max_depth)[2:]
    excess = depths - theory.intermediate_depth_bound(slots, moderate)
    assert np.mean(excess > 0) > 0.2
    assert np.all(excess <= 1)
    slow = Params(smoothness_ratio=0.5, split_constant=2.0)
    assert theory.leaf_bound_at(1.0, NUM_ROUNDS, slow) < 1
    assert theory.leaf_bound(NUM_ROUNDS, slow) == pytest.approx(
        NUM_ROUNDS * theory.leaf_bound_at(1.0, NUM_ROUNDS, slow)
    )


def test_lemmas_1_and_2_are_these_formulas():
    params = Params(smoothness_ratio=0.7, split_constant=1.5, smoothness=1.2, confidence=0.1)
    room = 500 * 1.2**2 / (1.5**2 * math.log(500 / 0.1))
    assert theory.split_threshold(500.0, 3.0, params) == pytest.approx(500 / room * 0.7**-6)
    assert theory.leaf_bound(500, params) == pytest.approx(2 ** (1 / 0.3) * room)
    assert theory.depth_bound(500, params) == pytest.approx(math.log(room) / 0.3)
    assert theory.intermediate_depth_bound(500, params) == pytest.approx(math.log(room) / (2 * math.log(1 / 0.7)))
    assert theory.depth_bound(1, Params()) == math.inf
    assert np.shape(theory.depth_bound(np.arange(2, 9), params)) == (7,)


@loop_over("confidence", [0.05, 1.0])
@loop_over("form", theory.FORMS)
def test_theorem_1_is_this_formula_and_is_never_below_what_is_trivial(form, confidence):
    """Would catch -2 log delta on the other side of the root than in (6), or in (10) of the appendix."""
    settings = {"norm": 2.0, "exploration": 0.7, "regularization": 1.5, "learning_rate": 1e-3, "num_steps": 8}
    bound = theory.theorem_1(400, 3.0, 50.0, confidence=confidence, form=form, **settings)
    root = math.sqrt(3.0 * math.log(1 + 400 * 50 / 1.5) + 2)
    log_odds = -2 * math.log(confidence)
    inner = {"printed": 0.7 * root + log_odds, "appendix": 0.7 * math.sqrt(root**2 + log_odds)}[form]
    inner += (1.5 + 400 * 2) * (1 - 1e-3 * 64 * 1.5) ** 4 * math.sqrt(400 / 1.5) + 2 * math.sqrt(1.5 * 2.0)
    assert bound.total == pytest.approx(3 * 20 * root * inner + 401)
    assert bound.neural == pytest.approx(bound.total - 401)
    assert bound.remainder > 400


def test_theorem_1_has_no_other_form():
    refuse("form", theory.theorem_1, 400, 3.0, 50.0, form="apendix", kind=UnknownNameError)


def test_the_least_width_is_this_formula():
    assert theory.least_width(64.0, 5000, 1e4) == pytest.approx(5000.0**7 * 2**21 * math.log(64) ** 3)
    assert theory.least_width(64.0, 2, 1e9, 1, 3.0) == pytest.approx(3**-0.5 * math.log(2e10) ** 1.5)


@loop_over("num_experts", [2, 3, 4])
def test_cyclic_boxes_are_as_large_and_as_many_as_halving_makes_them(num_experts):
    boxes = [(np.zeros(num_experts), np.ones(num_experts))]
    for depth in range(9):
        sides = boxes[0][1] - boxes[0][0]
        found = corrected.cyclic_diameter(num_experts, depth)
        assert (found.side, found.diagonal) == (max(sides), pytest.approx(np.linalg.norm(sides)))
        assert corrected.cyclic_leaves(num_experts, depth) == len(boxes)
        halves = []
        for lower, upper in boxes:
            cut = np.arange(num_experts) == depth % num_experts
            middle = (lower + upper) / 2
            halves += [(lower, np.where(cut, middle, upper)), (np.where(cut, middle, lower), upper)]
        boxes = [(lower, upper) for lower, upper in halves if lower.sum() <= 1 <= upper.sum()]


@pytest.mark.parametrize("num_experts", [2, 5, 8])
def test_the_least_smoothness_is_what_boxes_need_at_all_depths(num_experts):
    limit = corrected.least_ratio(num_experts)
    assert limit**num_experts == pytest.approx(0.5)
    for ratio in (limit, (1 + limit) / 2):
        boxes = [corrected.cyclic_diameter(num_experts, depth) for depth in range(10 * num_experts)]
        least = corrected.least_smoothness(num_experts, ratio)
        assert least.side == pytest.approx(max(box.side * ratio**-h for h, box in enumerate(boxes)))
        assert least.side == pytest.approx(ratio ** (1 - num_experts))
        assert least.diagonal == pytest.approx(max(box.diagonal * ratio**-h for h, box in enumerate(boxes)))
    below = limit - 0.01
    far = [corrected.cyclic_diameter(num_experts, h).side * below**-h for h in (0, 99 * num_experts)]
    assert far[1] > far[0]
    assert corrected.least_smoothness(num_experts, below).side == math.inf
    assert corrected.least_ratio(num_experts, on_simplex=True) < limit


@loop_over("ratio", [0.3, 0.5, 0.7, 0.9])
def test_the_exponent_is_the_slope_of_the_finite_bound(ratio):
    """Logarithms taken off; over 40 decades, so that the steps in H leave 0.01. sqrt(T) would be 0.1 off at least."""
    params, exponent = Params(smoothness_ratio=ratio), corrected.regret_exponent(ratio)
    assert 0.6 < exponent < 1
    for bound in (corrected.discretization_bound, corrected.simple_discretization_bound):
        logs = [
            math.log(bound(10**power, params)) - (1 - exponent) * math.log(power * math.log(10)) for power in (20, 60)
        ]
        assert (logs[1] - logs[0]) / (40 * math.log(10)) == pytest.approx(exponent, abs=0.01)


def test_exponents_of_cyclic_splits():
    for num_experts in (2, 3, 8):
        ratio = corrected.least_ratio(num_experts)
        assert corrected.cyclic_exponent(num_experts) == pytest.approx(corrected.regret_exponent(ratio))
        branching = 2 ** (1 - 1 / num_experts)
        found = math.log(branching / ratio) / math.log(branching / ratio**2)
        assert corrected.simplex_exponent(num_experts) == pytest.approx(found)
    params = Params(num_experts=3, smoothness_ratio=corrected.least_ratio(3))
    assert corrected.regret_bound(100, 5.0, params, 0.5) == pytest.approx(
        6.0 + corrected.discretization_bound(100, params)
    )


def empirical_kernel(rng, points, mixes, width, num_layers, output_variance):
    """<g, g'>/w of one random ReLU network for psi' f, by going back through its layers."""
    weights, inputs = [], [points.T]
    for _ in range(num_layers - 1):
        weights.append(rng.normal(scale=math.sqrt(2 / width), size=(width, len(inputs[-1]))))
        inputs.append(np.maximum(weights[-1] @ inputs[-1], 0))
    last = rng.normal(scale=math.sqrt(output_variance / width), size=(mixes.shape[1], width))
    total = (mixes @ mixes.T) * (inputs[-1].T @ inputs[-1])
    back = (last.T @ mixes.T) * (inputs[-1] > 0)
    for layer in reversed(range(num_layers - 1)):
        total += (back.T @ back) * (inputs[layer].T @ inputs[layer])
        if layer:
            back = (weights[layer].T @ back) * (inputs[layer] > 0)
    return total


@loop_over(("num_layers", "output_variance", "width"), [(2, 1.0, 4000), (3, 2.0, 500)])
def test_the_kernel_is_that_of_wide_random_networks(num_layers, output_variance, width):
    """3 % of the largest entry; the mean of 30 networks strays by less. The other variance would be 20 % off."""
    rng = np.random.default_rng(num_layers)
    points, mixes = rng.dirichlet(np.ones(4), 6), rng.dirichlet(np.ones(3), 6)
    expected = theory.neural_tangent_kernel(points, mixes, num_layers, output_variance)
    mean = np.mean(
        [empirical_kernel(rng, points, mixes, width, num_layers, output_variance) for _ in range(30)], axis=0
    )
    np.testing.assert_allclose(mean, expected, atol=0.03 * expected.max())
    other = theory.neural_tangent_kernel(points, mixes, num_layers, 3 - output_variance)
    assert np.abs(other - expected).max() > 0.15 * expected.max()


def test_a_rule_that_there_is_not_is_named():
    refuse("selection", adversary.one_rule, DIMS, "widest", kind=UnknownNameError)


SETTING = Recipe(num_tasks=2, num_experts=2, width=4, hidden=4, num_layers=1, num_heads=1, batch_size=8)
ROOT = mt.root_key(3)


@pytest.fixture(scope="module")
def deployment():
    return costs.untrained(SETTING)


@pytest.fixture(scope="module")
def data():
    return examples(SETTING, VALIDATION)


@jax.jit
def logits_of(model, weights, inputs):
    return transformer.forward(merge.weighted(model, weights), inputs, merge.single)


def answers(model, weights, inputs):
    return np.asarray(logits_of(model, weights, inputs)).argmax(-1)


class Ticks:
    """A clock on which every call takes as long as the one that ran said."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def run(self, seconds, calls, name):
        def call():
            calls.append(name)
            self.now += seconds

        return call


def test_every_run_is_timed_once_a_repetition_in_new_orders():
    """Would catch runs that are timed more often than others, seconds in another's column, and one order for all."""
    clock, calls = Ticks(), []
    runs = [clock.run(seconds, calls, seconds) for seconds in (1.0, 2.0, 4.0)]
    seconds = costs.interleaved(runs, 20, 0, clock)
    np.testing.assert_array_equal(seconds, np.broadcast_to([1.0, 2.0, 4.0], (20, 3)))
    timed = np.array(calls[3 * costs.WARM_UP :]).reshape(20, 3)
    np.testing.assert_array_equal(np.sort(timed, axis=1), seconds)
    assert len(np.unique(timed, axis=0)) > 3


def test_methods_of_one_function_are_one_program(deployment, data):
    """Ratios are by repetition, and who merges slot by slot pays for it: against a clock with known ticks."""
    timer = costs.Timer(["average", "merged"], deployment, data.inputs[:6], data.tasks[:6])
    assert timer.serves["average"].run is timer.serves["merged"].run
    moments = iter(np.arange(1000.0))
    timed = timer.measure(5, 0, lambda: next(moments))
    average, merged = timed["average"], timed["merged"]
    for method, merging, ratio in ((average, 0, 0.5), (merged, 1, 1)):
        assert method.serving.shape == (1, 5)
        np.testing.assert_array_equal(method.serving, 1)
        np.testing.assert_array_equal(method.merging, merging)
        np.testing.assert_array_equal(method.ratio, ratio)
        np.testing.assert_array_equal(method.serving_ratio, 1)
    expert = 4 * (4 * 4 + 4 + 4 * 4 + 4)
    rest = 4 * ((16 * 4 + 4 + 4 * 4) + (4 * 4 + 4 * 3 * 4 + 3 * 4 + 4 * 4 + 4) + (2 * 4 + 4 * 10 + 10))
    np.testing.assert_array_equal(average.loaded_bytes, expert + rest)
    assert np.all(average.peak_bytes >= expert + rest + 6 * 4 * 16 * 4)
    assert list(timer.merges) == ["merged"]
    assert timer.merges["merged"].peak_bytes >= 3 * expert  # two experts go in, one comes out


def test_clocks_are_experiments(deployment):
    """Would catch replicates that are not the ones asked for, and records that no claim could read."""
    measure = costs.latencies(["token-top-1-dense"], SETTING)
    cells = [Cell("of 4", system(Dims(2, 2)), Params(2, 2, slot_size=4), 1)]
    for first, count in ((0, 3), (3, 2)):
        run = measure(cells, first, count, 7)["of 4"]
        np.testing.assert_array_equal(run.replicates, np.arange(first, first + count))
        for name in ("merged", "token-top-1-dense"):
            of_method = run.records[name]
            assert all(leaf.shape == (1, count) and np.all(np.isfinite(leaf)) for leaf in of_method)
            np.testing.assert_allclose(
                of_method.ratio * (run.records["merged"].serving + run.records["merged"].merging),
                of_method.serving + of_method.merging,
            )


def test_rewards_are_the_models_accuracy(deployment, data):
    """Against answers counted in NumPy; would catch requests beyond the slot's size, and tasks in another's place."""
    reward = evaluation.of_model(deployment.model, data, 2, max_slot_size=64)
    dims, params = Dims(2, 2), Params(2, 2, slot_size=40)
    weights = np.float32([0.3, 0.7])

    @functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def slot(key):
        world = reward.draw(key, dims, params)
        mix = reward.mix(world, jnp.int32(1), params)
        return mix, reward.value(world, weights), reward.serve(key, world, weights, mix, params)

    mix, values, feedback = jax.device_get(slot(ROOT))
    assert int(feedback.counts.sum()) == 40
    assert abs(float(feedback.counts[0]) - 40 * float(mix[0])) < 25
    right = answers(deployment.model, weights, data.inputs) == data.labels
    np.testing.assert_array_equal(values, right.reshape(2, -1)[:, 0])
    hits = np.asarray(feedback.rewards) * np.asarray(feedback.counts)
    np.testing.assert_allclose(hits, np.rint(hits), atol=1e-4)
    assert abs(hits.sum() / 40 - float(np.asarray(mix) @ right.reshape(2, -1).mean(axis=1))) < 0.5


@pytest.mark.thorough
def test_the_evaluation_is_one_labelled_table(deployment, data):
    """Would catch approaches that lose their names, costs in another row, and accuracies of another method's slots."""
    table = evaluation.evaluate(deployment, data, ("merged", "average"), ("uniform",), 2, 4, repeats=2, slot_size=8)
    assert list(table.approach.values) == ["average", "uniform", "best-merge"]
    assert table.accuracy.dims == table.accuracy_error.dims == ("mix", "approach")
    for name, values in table.data_vars.items():
        assert np.all(np.isfinite(values)), name
    assert np.all((table.accuracy >= 0) & (table.accuracy <= 1))
    served = table.accuracy.sel(approach=["average", "uniform"]) * 2 * 4 * 8
    np.testing.assert_allclose(served, np.rint(served), atol=1e-4)
    assert np.all(table.ratio.sel(approach=["uniform", "best-merge"]) == 1)
    assert np.all(table.merging.sel(approach="average") == 0)
    assert np.all(table.merging.sel(approach="uniform") > 0)


def test_the_best_merge_for_a_mix_is_searched_once(deployment, data, monkeypatch):
    """Would catch a search for each slot of a fixed mix, which takes minutes; and the accuracy of another mix."""
    searched, values = [], np.float32([0.25, 0.5])

    def ascend(model, data, candidates, found, mix):
        searched.append(tuple(np.asarray(mix)))
        return mix @ values

    monkeypatch.setattr(evaluation, "_candidates", lambda *_: (np.eye(2), np.eye(2)))
    monkeypatch.setattr(evaluation, "_ascend", ascend)
    fixed = np.float32([[[0.75, 0.25]] * 3, [[0.5, 0.5]] * 3])
    drifting = np.float32([[[0.75, 0.25], [0.25, 0.75], [0.75, 0.25]], [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]])
    for mixes, number in ((fixed, 2), (drifting, 5)):
        searched.clear()
        found = evaluation.best_accuracies(deployment.model, data, mixes, ROOT)
        np.testing.assert_array_equal(found, mixes @ values)
        assert len(searched) == number
