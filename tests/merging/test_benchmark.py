"""Recorded streams: what is recorded is what is served, every way to serve counts the same answers, places are fair."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory import merging
from moe_theory.core.errors import InvalidSystemError
from moe_theory.core.random import root_key
from moe_theory.core.system import simulate_batch
from moe_theory.merging import evolution, policies
from moe_theory.merging.benchmark import rivals, runs, scoring, streams
from moe_theory.merging.benchmark.streams import ESTIMATED, KNOWN, Condition, Traffic
from moe_theory.merging.serving import merge
from moe_theory.merging.testbed import transformer

AGREEING = Condition("agreeing", "fixed", KNOWN)
SOME, FEW = 4, 32  # streams, and slots of the first phase


class Equal:
    """A plain policy: equal weights."""

    def __init__(self, num_experts, num_tasks, seed):
        self.weights = np.full(num_experts, 1 / num_experts)

    def choose(self, mix):
        assert mix.sum() == pytest.approx(1, abs=1e-5)
        return self.weights

    def learn(self, rewards, counts):
        assert counts.sum() == streams.SLOT_SIZE
        assert np.all((rewards >= 0) & (rewards <= 1))


@pytest.fixture(scope="module")
def of():
    return streams.testbed("agreeing")


@pytest.fixture(scope="module")
def served():
    return Traffic(*(each[:SOME, :FEW] for each in streams.arrivals("agreeing", "drifting")))


@pytest.fixture(scope="module")
def average(of, served):
    policy = policies.named("average", runs.dims_of(of))
    return runs.serve_compiled(policy, runs.params_of(of), of, served, KNOWN)


def test_scores_are_of_the_streams_that_are_made_here():
    assert set(scoring.recorded()) >= {*scoring.POLICIES, *rivals.NAMES}
    for scores in scoring.recorded().values():
        assert set(scores) == set(streams.CONDITIONS)
        assert all(right.shape == (len(scoring.PHASES), streams.NUM_STREAMS) for right in scores.values())


def test_requests_follow_the_mix():
    served = streams.arrivals("agreeing", "drifting")
    shares = np.stack([np.mean(served.tasks == task, axis=2) for task in range(4)], axis=-1)
    assert np.abs((shares - served.mix).mean(axis=(0, 1))).max() < 0.003  # of 2,097,152 requests, 9 deviations
    assert np.array_equal(streams.testbed("agreeing").tests.tasks[served.places], served.tasks)


def test_plain_and_compiled_policies_and_a_table_count_the_same_answers(of, served, average):
    plain = runs.serve_plain(Equal, of, served, ESTIMATED, place="mine.py:Equal")
    table = rivals.right_of(merge.average(of.model), of)[served.places].sum(axis=-1)
    adapted = rivals.adapt(of, served, rate=0.0, scale=1.0)  # begins at the average, and stays there
    for other in (plain, table, adapted):
        assert np.abs(other - average).sum() <= 1e-4 * average.size * streams.SLOT_SIZE  # ties, by rounding


def test_a_record_repeats(average, of):
    served = Traffic(*(each[:SOME, :FEW] for each in streams.arrivals("agreeing", "fixed")))
    policy = policies.named("average", runs.dims_of(of))
    right = scoring.by_phase(runs.serve_compiled(policy, runs.params_of(of), of, served, KNOWN))
    recorded = scoring.recorded()["average"][AGREEING][:1, :SOME]
    assert np.abs(right - recorded).sum() <= 1e-3 * SOME * FEW * streams.SLOT_SIZE  # another processor rounds otherwise


def test_adamerging_lowers_the_entropy_of_answers(of, served):
    def entropy(coefficients):
        model = rivals.merged_by_layer(of.model, of.base, coefficients)
        own = jnp.asarray(of.tests.inputs[served.places[0, ::4].reshape(-1)])
        chances = jax.nn.log_softmax(transformer.forward(model, own, merge.single))
        return float(-jnp.mean(jnp.sum(jnp.exp(chances) * chances, axis=-1)))

    start = jnp.full((1, 2, 4), 0.25)
    part = Traffic(*(np.swapaxes(each[:1], 0, 1) for each in served))
    carried = (start, jax.vmap(rivals.ADAM.init)(start))
    (moved, _), _ = rivals._adapt(
        of.model, of.base, jax.tree.map(jnp.asarray, of.tests), carried, part, jnp.float32(0.01)
    )
    assert entropy(moved[0]) < 0.98 * entropy(start[0])


def test_not_merged_is_each_tasks_own_expert(of):
    right = rivals.right_of(rivals.by_task(of, rivals.clustered(of, of.num_experts)), of)
    whole = rivals.right_of(rivals.by_task(of, rivals.clustered(of, 1)), of)
    assert right.mean() > 0.9
    assert np.array_equal(whole, rivals.right_of(merge.average(of.model), of))


def test_alignment_moves_no_hidden_unit_so_that_m_smoe_is_the_mix():
    """M-SMoE (P. Li et al., "Merge, Then Compress", ICLR 2024) averages aligned experts by how often each is used."""
    for tasks in streams.FAMILIES:
        of = streams.testbed(tasks)
        equal = np.full(of.num_experts, 1 / of.num_experts)
        for layer in of.model.layers:
            aligned = merging.merge(layer.experts, equal, merging.Method("aligned"))
            for one, other in zip(aligned, merging.merge(layer.experts, equal), strict=True):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def test_masks_and_clusters_are_the_methods_own(of, served):
    """DARE's masks are in turn, and with all kept every one is the average; one cluster is the average, K are none."""
    kept = rivals.merged_once("dare", of, density=1.0, seed=3)
    assert np.abs(rivals.right_of(kept, of) ^ rivals.right_of(merge.average(of.model), of)).sum() <= 2
    assert [len(set(row)) for row in rivals.clustered(of, 2)] == [2, 2]


def test_offline_weights_beat_the_mix(monkeypatch):
    monkeypatch.setattr(rivals, "DESCENT_STEPS", 40)
    of = streams.testbed("conflicting")
    served = Traffic(*(each[:SOME, :FEW] for each in streams.arrivals("conflicting", "fixed", 7, SOME)))
    ahead = rivals.serve_weights(of, served, rivals.best_weights(of, served.mix[:, 0])).mean()
    assert ahead > 1.02 * rivals.serve_weights(of, served, jnp.asarray(served.mix[:, 0])).mean()


def test_evolution_finds_a_peak():
    """CMA-ES, which no table of known answers is for, ends nearer to the best weights than equal weights are."""
    dims, params = merging.Dims(max_experts=4, num_tasks=2, max_rounds=512), merging.Params(num_experts=4, max_active=4)

    def late(policy):
        run = merging.system(dims, "peaked", policy)
        info = simulate_batch(run, root_key(0), 64, params, 512, observe=lambda state, info: info.regret)[1]
        return np.asarray(info)[-128:].mean()

    assert late(evolution.cma_es()) < 0.3 * late("average")


def test_a_policy_is_placed_among_all_others():
    own, others = scoring.recorded()["average"], set(scoring.recorded()) - {"average"}
    assert {each.rival for each in scoring.compare("average", own).differences} == others
    compared = scoring.compare("mine", own)  # as good as one that is recorded, and in the same place
    assert all(each.low == each.mean == each.high == 0 for each in compared.differences if each.rival == "average")
    assert all(compared.place(at)[1] == len(others) + 2 for at in streams.CONDITIONS)
    best = scoring.compare("not merged", scoring.recorded()["not merged"])
    assert all(best.place(at) == (1, len(others) + 1) for at in streams.CONDITIONS)
    worse = {at: right - 40 for at, right in own.items()}
    assert all(each.high < 0 for each in scoring.compare("worse", worse).differences if each.rival == "average")


def test_intervals_of_a_comparison_cover_together():
    """Planted: a way as good as `average` on the mean, whose streams differ by skewed noise."""
    random, misses, base = np.random.default_rng(0), 0, scoring.recorded()["average"]
    for _ in range(60):
        own = {at: right + 100 * (random.exponential(size=right.shape) - 1) for at, right in base.items()}
        found = [each for each in scoring.compare("alike", own).differences if each.rival == "average"]
        misses += any(each.low > 0 or each.high < 0 for each in found)
    assert misses <= 2  # of 60, where 5 % is for all rivals and these are 12 of over 200 intervals


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("choose", lambda self, mix: 2 * self.weights, "mine, slot 1, chose weights .* on stream 0, which are not on"),
        ("choose", lambda self, mix: np.nan * self.weights, "mine, slot 1, chose weights .*nan"),
        ("choose", lambda self, mix: self.weights[:3], r"mine, slot 1, chose weights of shape \(3,\)"),
        ("learn", lambda self, rewards, counts: rewards.nothing, "mine, slot 1, failed: AttributeError"),
    ],
)
def test_a_plain_policy_that_fails_is_named(name, change, said, of, served):
    own = type("Own", (Equal,), {name: change})
    with pytest.raises(InvalidSystemError, match=said):
        runs.serve_plain(own, of, served, KNOWN, place="mine")


def test_a_policy_cannot_write_into_what_is_recorded(of, served):
    class Writer(Equal):
        def choose(self, mix):
            mix[:] = 1 / len(mix)
            return self.weights

        def learn(self, rewards, counts):
            counts[:] = 0

    before = served.mix.copy()
    runs.serve_plain(Writer, of, served, KNOWN)
    assert np.array_equal(served.mix, before)
    with pytest.raises(ValueError, match="read-only"):
        served.tasks[0] = 0


@pytest.mark.parametrize(
    ("choose", "said"),
    [
        (lambda mix: policies.plain_pick(2 * mix), "mine, slot 1, chose weights .*, which are not on the simplex"),
        (lambda mix: policies.plain_pick(mix - 0.1), "which are not on the simplex"),
        (lambda mix: policies.plain_pick(jnp.nan * mix), "nan"),
        (lambda mix: policies.plain_pick(mix[:3]), r"mine failed: TypeError: choose gave weights of shape \(3,\)"),
        (lambda mix: mix, "choose gave no merging.Pick"),
        (lambda mix: {}["boo"], "mine failed: KeyError: 'boo'"),
    ],
)
def test_a_compiled_policy_that_fails_is_named(choose, said, of, served):
    policy = merging.Policy(
        lambda key, dims, params: (),
        lambda key, memory, mix, slot, params: choose(mix),
        lambda key, memory, *seen: memory,
    )
    with pytest.raises(InvalidSystemError, match=said):
        runs.serve_compiled(policy, runs.params_of(of), of, served, KNOWN, place="mine")
