"""Runs that the claims on expert merging share.

In tier `surfaces` replicate i has the same world in all cells. A reading decides how Tanbr splits boxes and places
candidates, except on the testbed, which follows Algorithm 1.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core.system import fields
from moe_theory.merging import adversary, corrected, costs, evaluation, monitor, policies, rewards, uncertainty
from moe_theory.merging.params import CYCLIC_SPLIT, LINE_POINT, RANDOM_SPLIT, Dims, Params
from moe_theory.merging.policies import Learner
from moe_theory.merging.rewards import Reward
from moe_theory.merging.serving.methods import MERGED
from moe_theory.merging.system import Info, State, system
from moe_theory.merging.testbed.tasks import Recipe
from moe_theory.merging.tree import Tree
from moe_theory.runs import Run
from moe_theory.verification.claim import Experiment, Measured, Overrides, Runs, Selection, excess
from moe_theory.verification.region import Scale
from moe_theory.verification.statement import identity, probability

MOSTLY = probability(at_least=0.5)
EXACTLY = identity(within=0)
EXACT_TIER = "exact"
SURFACES_TIER = "surfaces"
TESTBED_TIER = "testbed"
CLOCKS_TIER = "clocks"
SMOOTHNESS_RATIOS = (0.3, 0.5, 0.7, 0.9)  # rho, in the paper's experiments
RANDOM_LEAF = "uniform"
RULES = ("deepest", "in-turn", RANDOM_LEAF)  # ways to pick leaves, some of `adversary.SELECTIONS`
LARGE_CONSTANT = 30.0  # C of (2), besides 1
CYCLIC = f"{RANDOM_LEAF}, cyclic splits"


def tree_cell(rule: str, ratio: float, constant: float = 1.0) -> str:
    return f"{rule}, rho = {ratio:g}, C = {constant:g}"


def _trees(
    name: str, dims: Dims, rules: tuple[str, ...], constants: tuple[float, ...], record_every: int
) -> Experiment:
    settings: dict[str, Overrides] = {}
    systems = {}
    for rule, ratio, constant in itertools.product(rules, SMOOTHNESS_RATIOS, constants):
        if rule != RANDOM_LEAF or constant == constants[0]:  # no claim needs random leaves with a second constant
            cell = tree_cell(rule, ratio, constant)
            settings[cell] = {"smoothness_ratio": ratio, "split_constant": constant, "confidence": 1.0}
            systems[cell] = adversary.one_rule(dims, rule)
    if RANDOM_LEAF in rules:
        ratio = corrected.least_ratio(dims.max_experts)
        smoothness = corrected.least_smoothness(dims.max_experts, ratio).side
        settings[CYCLIC] = {"smoothness_ratio": ratio, "smoothness": smoothness, "split_rule": CYCLIC_SPLIT}
        systems[CYCLIC] = adversary.one_rule(dims, RANDOM_LEAF)
    return Experiment(
        name=name,
        dims=dims,
        system=next(iter(systems.values())),
        systems=systems,
        cells=settings,
        num_rounds=dims.max_rounds,
        record_every=record_every,
        replicates=64,
        tier=EXACT_TIER,
    )


TREES = _trees("trees", Dims(max_rounds=1024, max_leaves=128), RULES, (1.0, LARGE_CONSTANT), record_every=1)
# Assumption 1 and the threshold (2) leave nu_1, C and delta open, besides rho.
FREE_TREE = (Scale("smoothness", 0.1, 10.0), Scale("split_constant", 0.1, 30.0), Scale("confidence", 0.01, 1.0))
BY_RATIO = tuple(f"rho = {ratio:g}" for ratio in SMOOTHNESS_RATIOS)  # labels
TREES_BY_RATIO = Selection(TREES, cells=None, labels=BY_RATIO)  # all cells at once, for one number per rho
GROWTH = dataclasses.replace(  # Student's t decides growth rates from 256 replicates on
    _trees("growing-trees", Dims(max_rounds=4096, max_leaves=288), ("in-turn",), (1.0,), record_every=64),
    replicates=256,
)

RIVALS_FIXED = {"split_rule": RANDOM_SPLIT, "point_rule": LINE_POINT, "warm_start": False}  # whatever the reading
NUM_ROUNDS = 512
RECORD_EVERY = 32
DIMS = Dims(max_experts=8, num_tasks=8, max_rounds=NUM_ROUNDS)
REPLICATES = 128
RIVALS = (policies.NUCB, policies.UNIFORM, policies.AVERAGE, policies.BEST_EXPERT, policies.MIX)
FIXED = {"mix_drift": 0.0}  # overrides for a fixed task mix
DRIFTING = {"mix_drift": 1.5}  # overrides for a drifting task mix


class Record(NamedTuple):
    cumulative_regret: Float[Array, ""]  # R_t
    total_value: Float[Array, ""]  # sum of psi' f*(x) so far
    regret: Float[Array, ""]  # regret of this slot
    width: Float[Array, ""]  # gamma |g / sqrt(w)|_Z of the weights chosen, before its minimum with 1
    depth: Int[Array, ""]  # h_t
    num_leaves: Int[Array, ""]  # N_t
    left_out: Int[Array, ""]  # splits that the tree had no room for
    distance: Float[Array, ""]  # |theta_t - theta_0|, 0 without a network
    log_determinant: Float[Array, ""]  # log det Z_t - log det lambda I, 0 without a network
    best_gap: Float[Array, ""]  # psi' (f*(x*) - f*(x)), where x is the candidate of the leaf with x*, 0 without a tree
    best_depth: Int[Array, ""]  # depth of this leaf, 0 without a tree


@functools.cache
def recorder(reward: str) -> Callable[[State, Info], Record]:
    """Return a cached function that records a slot for claims under a family of rewards."""
    family = rewards.named(reward)
    form = uncertainty.named(uncertainty.EXACT, DIMS)

    def record(state: State, info: Info) -> Record:
        pick = info.pick
        zero = jnp.zeros_like(info.value)
        tree = getattr(state.memory, "tree", None)
        best_gap = zero
        best_depth = jnp.zeros_like(pick.depth)
        if tree is not None:
            best_gap, best_depth = _best_leaf(family, state, info, tree)
        learner = getattr(state.memory, "learner", state.memory)  # NUCB's memory is a learner itself
        distance = zero
        log_determinant = zero
        if isinstance(learner, Learner):
            layers = zip(learner.weights.layers, learner.start.layers, strict=True)
            squares = (jnp.sum(jnp.square(now - before)) for now, before in layers)
            distance = jnp.sqrt(sum(squares, jnp.zeros(())))
            log_determinant = form.log_det(learner.certainty, Params())
        return Record(
            cumulative_regret=state.regret,
            total_value=state.reward,
            regret=info.regret,
            width=pick.bonus,
            depth=pick.depth,
            num_leaves=pick.num_candidates,
            left_out=pick.left_out,
            distance=distance,
            log_determinant=log_determinant,
            best_gap=best_gap,
            best_depth=best_depth,
        )

    return record


def _best_leaf(family: Reward, state: State, info: Info, tree: Tree) -> tuple[Float[Array, ""], Int[Array, ""]]:
    """Return `Record.best_gap` and `best_depth`."""
    best = family.best(state.world, info.mix, Params()) if family.best else info.pick.weights
    holds_best = tree.active & jnp.all((tree.lower <= best) & (best <= tree.upper), axis=1)
    row = jnp.argmax(holds_best)
    value = jnp.sum(info.mix * family.value(state.world, tree.point[row]))
    return info.value + info.regret - value, tree.depth[row]


def surface(name: str, reward: str, mix: Overrides) -> Experiment:
    """Return the experiment with Tanbr and every rival on one family of rewards, with a fixed or a drifting mix."""
    tanbr_cell: dict[str, Overrides] = {policies.TANBR: {**mix}}
    return Experiment(
        name=f"{name}-reward",
        dims=DIMS,
        system=system(DIMS, reward, policies.TANBR),
        systems={rival: system(DIMS, reward, rival) for rival in RIVALS},
        cells=tanbr_cell | {rival: {**RIVALS_FIXED, **mix} for rival in RIVALS},
        num_rounds=NUM_ROUNDS,
        record_every=RECORD_EVERY,
        observe=recorder(reward),
        keeps_state=False,
        replicates=REPLICATES,
        tier=SURFACES_TIER,
    )


SURFACE: dict[str, Experiment] = {
    "peaked": surface("peaked", rewards.PEAKED, FIXED),
    "flat": surface("flat", rewards.FLAT, FIXED),
    "shares": surface("shares", rewards.SHARES, FIXED),
    "drifting": surface("drifting", rewards.SHARES, DRIFTING),
}
TANBR_ON = {name: experiment.at(policies.TANBR) for name, experiment in SURFACE.items()}

# The paper has this many slots in a fixed mix.
LONG_SLOTS = 5000
LONG_WORLDS = 128
LONG_DIMS = dataclasses.replace(DIMS, max_rounds=LONG_SLOTS, max_leaves=256)
LONG = Experiment(
    name="long",
    dims=LONG_DIMS,
    system=system(LONG_DIMS, rewards.PEAKED, policies.TANBR),
    systems={policies.BEST_EXPERT: system(LONG_DIMS, rewards.PEAKED, policies.BEST_EXPERT)},
    cells={policies.TANBR: FIXED, policies.BEST_EXPERT: {**RIVALS_FIXED, **FIXED}},
    num_rounds=LONG_SLOTS,
    observe=fields("info.regret", "info.pick.depth", "info.pick.left_out", cumulative_regret="state.regret"),
    keeps_state=False,
    replicates=LONG_WORLDS,
    tier=SURFACES_TIER,
)
TANBR_LONG = LONG.at(policies.TANBR)
ONE_EXPERT_LONG = LONG.at(policies.BEST_EXPERT)

LEARNING_RATES = (0.05, 0.5)  # eta w
ABLATION = Experiment(
    name="ablation",
    dims=DIMS,
    system=system(DIMS, rewards.PEAKED, policies.TANBR),
    cells={
        **{f"rho = {ratio:g}": {"smoothness_ratio": ratio} for ratio in SMOOTHNESS_RATIOS},
        **{f"learning rate {rate:g}": {"learning_rate": rate} for rate in LEARNING_RATES},
    },
    num_rounds=DIMS.max_rounds,
    record_every=64,
    observe=recorder(rewards.PEAKED),
    replicates=REPLICATES,
    tier=SURFACES_TIER,
    keeps_state=False,
)

# Fig. 6: slots until the tree alone has 20 feasible leaves, if leaves are picked at random.
STEP_EXPERTS = (4, 16, 64)
STEP_CONSTANT = 0.3  # C, because with C = 1 a tree seldom grows 20 leaves in the run
STEP_DIMS = Dims(max_experts=STEP_EXPERTS[-1], max_rounds=512, max_leaves=64)
STEPS = Experiment(
    name="steps",
    dims=STEP_DIMS,
    system=adversary.one_rule(STEP_DIMS, RANDOM_LEAF),
    cells={
        f"K = {number}": {"num_experts": number, "max_active": number, "split_constant": STEP_CONSTANT}
        for number in STEP_EXPERTS
    },
    num_rounds=STEP_DIMS.max_rounds,
    replicates=1024,
    tier=EXACT_TIER,
)

SLOT_SIZE = 64
SLOTS = 5000  # the paper learns in this many slots before it compares accuracies
LAST_SLOTS = 128  # slots at the end of a run over which accuracies are averaged
STREAMS = 64
MONITORED = "tanbr, estimated mix"  # estimated by the paper's moving average of earlier slots
TOLD_THE_MIX = (policies.TANBR, policies.NUCB, policies.MIX, policies.UNIFORM)
TESTBED_POLICIES = {name: (name, monitor.ORACLE) for name in TOLD_THE_MIX}  # cell -> policy and monitor
TESTBED_POLICIES |= {MONITORED: (policies.TANBR, monitor.AVERAGE)}
METHODS_OF_TABLE_2 = ("rl-dense", "token-top-1-dense", "smear-example-linear", "smear-token-linear")  # and NUCB
FIXED_MERGES = ("average", "fisher", "regmean")
TESTBED_METHODS = (*FIXED_MERGES, *METHODS_OF_TABLE_2)
BESIDE_TABLE_2 = ("token-top-2-dense", "token-top-3-dense", "task-top-1-dense", policies.MIX)  # the paper lacks these
LEARN_NOTHING = (policies.MIX, policies.UNIFORM)


def _testbed(name: str, setting: Recipe, mix: Overrides, more_cells: tuple[str, ...] = ()) -> Experiment:
    num_experts = setting.num_experts
    dims = dataclasses.replace(LONG_DIMS, max_experts=num_experts, num_tasks=setting.num_tasks, max_rounds=SLOTS)
    cells = (policies.TANBR, policies.NUCB, *TESTBED_METHODS, *more_cells)
    tuned = policies.TUNED | {MONITORED: policies.TUNED[policies.TANBR]}
    fixed = {**RIVALS_FIXED, **mix, "slot_size": SLOT_SIZE, "num_experts": num_experts, "max_active": num_experts}
    return Experiment(
        name=name,
        dims=dims,
        system=system(dims, rewards.PEAKED, policies.TANBR),
        cells={cell: {**fixed, **tuned.get(cell, {})} for cell in cells},
        num_rounds=dims.max_rounds,
        observe=evaluation.observe,
        replicates=STREAMS,
        tier=TESTBED_TIER,
        keeps_state=False,
        measured=Measured(evaluation.slot_accuracies(dims, TESTBED_POLICIES, SLOT_SIZE, LAST_SLOTS, setting)),
    )


CONFLICTING = Recipe()  # two label maps
AGREEING = Recipe(num_tasks=4, num_experts=4)  # one label map
TESTBEDS = {
    "fixed": _testbed("testbed", CONFLICTING, {"mix_drift": 0.0}, more_cells=(*LEARN_NOTHING, MONITORED)),
    "dynamic": _testbed(
        "testbed-drifting", CONFLICTING, {"mix_drift": 1.0}, more_cells=(*BESIDE_TABLE_2, policies.UNIFORM, MONITORED)
    ),
    "agreeing": _testbed("testbed-agreeing", AGREEING, {"mix_drift": 1.0}),
    "agreeing-fixed": _testbed("testbed-agreeing-fixed", AGREEING, {"mix_drift": 0.0}),
}

# Costs of one layer, as wide as the paper's, with 8 experts.
LAYER = Recipe(width=768, hidden=3072, num_heads=12, num_layers=1)
TIMED = (
    "token-top-1-capacity",
    "token-top-1-dense",
    "token-top-1-ragged",
    "token-top-2-capacity",
    "token-top-3-capacity",
    "smear-example-linear",
    "smear-token-linear",
    "rl-capacity",
    "task-top-1-one-task",
    "task-top-1-capacity",
)
BATCH = "a batch of 128"
TIMES = Experiment(
    name="serving-times",
    dims=DIMS,
    system=system(DIMS, rewards.PEAKED, policies.AVERAGE),
    cells={BATCH: {**RIVALS_FIXED, "slot_size": 128}},
    num_rounds=1,
    replicates=128,
    tier=CLOCKS_TIER,
    keeps_state=False,
    measured=Measured(costs.latencies([MERGED, *TIMED], LAYER)),
)
SERVING = TIMES.at(BATCH)
STEPPED = ("token-top-1-capacity", "smear-example-linear", "smear-token-linear")
STEP_TIMES = dataclasses.replace(
    TIMES, name="step-times", measured=Measured(costs.step_times([MERGED, *STEPPED], LAYER))
)
STEPPING = STEP_TIMES.at(BATCH)
ROUTED_EXPERTS = (4, 64, 192)
ROUTED_DIMS = Dims(max_experts=ROUTED_EXPERTS[-1])


def routed_cell(num_experts: int, form: str = uncertainty.DIAGONAL) -> str:
    return f"K = {num_experts}, {form} Z"


# Cell -> number of experts and form of Z.
ROUTED = {routed_cell(number): (number, uncertainty.DIAGONAL) for number in ROUTED_EXPERTS}
ROUTED[routed_cell(ROUTED_EXPERTS[-1], uncertainty.EXACT)] = (ROUTED_EXPERTS[-1], uncertainty.EXACT)
ROUTING = Experiment(
    name="routing-times",
    dims=ROUTED_DIMS,
    system=system(ROUTED_DIMS, rewards.PEAKED, policies.AVERAGE),
    cells={
        cell: {**RIVALS_FIXED, "num_experts": number, "max_active": min(number, 8)}
        for cell, (number, _) in ROUTED.items()
    },
    num_rounds=1,
    replicates=128,
    tier=CLOCKS_TIER,
    keeps_state=False,
    measured=Measured(costs.choice_times({cell: form for cell, (_, form) in ROUTED.items()})),
)

HORIZONS = (16, 64, 256, 1024)  # T at which corrected bounds are compared


def computed(*labels: str, abscissa: tuple[float, ...] | None = None) -> Selection:
    """Select one tree for a claim that is computed without a run."""
    any_cell = tree_cell("deepest", SMOOTHNESS_RATIOS[-1])
    return Selection(TREES, cells=(any_cell,), labels=labels or None, abscissa=abscissa, is_computed=True)


def by_ratio(rule: str, constant: float = 1.0) -> Selection:
    cells = tuple(tree_cell(rule, ratio, constant) for ratio in SMOOTHNESS_RATIOS)
    return Selection(TREES, cells=cells, labels=BY_RATIO)


def recorded(run: Run, name: str) -> Float[np.ndarray, "R B"]:
    return np.asarray(getattr(run.records, name), np.float64)


def candidates(run: Run) -> Float[np.ndarray, "R B"]:
    """Return N_t, the number of active leaves from which slot t picks, 1 in the first slot."""
    after_slot = recorded(run, "num_active")
    return np.concatenate([np.ones_like(after_slot[:1]), after_slot[:-1]])


def worst_excess(runs: Runs, rule: str, name: str, bound: Callable[[int, Params], float]) -> Float[np.ndarray, "V B"]:
    """Return by how much an observable exceeds its bound, by rho, at the worst T of `HORIZONS` and the worse C."""

    def worst(cell: str) -> np.ndarray:
        bounds = np.array([bound(slots, runs[cell].params) for slots in HORIZONS])
        values = recorded(runs[cell], name)[np.array(HORIZONS) - 1]  # every slot is recorded
        return excess(values, bounds[:, None]).max(axis=0)

    pairs = [(tree_cell(rule, ratio), tree_cell(rule, ratio, LARGE_CONSTANT)) for ratio in SMOOTHNESS_RATIOS]
    return np.stack([np.maximum(worst(small), worst(large)) for small, large in pairs])


def mean_value(run: Run, first: int, last: int) -> Float[np.ndarray, " B"]:
    """Return the mean of psi' f*(x) over slots `first` + 1 to `last`. Both must be recorded, or `first` is 0."""
    first_place, last_place = np.searchsorted(run.rounds, [first, last])
    assert run.rounds[last_place] == last, "slot `last` is not recorded"
    assert first in (0, run.rounds[first_place]), "slot `first` is not recorded"
    totals = recorded(run, "total_value")
    total = totals[last_place] - totals[first_place] if first else totals[last_place]
    return total / (last - first)


def lead_over(run: Run, rival: Run) -> Float[np.ndarray, " B"]:
    return final_accuracy(run) - final_accuracy(rival)


def final_accuracy(run: Run) -> Float[np.ndarray, " B"]:
    return recorded(run, "accuracy")[-LAST_SLOTS:].mean(axis=0)


def is_cheaper(run: Run, method: str, rival: str, share: float, field: str = "serving") -> Bool[np.ndarray, " B"]:
    """Return whether a cost of a method is at most `share` of its rival's, by default seconds per batch."""

    def costs_of(name: str) -> Float[np.ndarray, " B"]:
        return np.asarray(getattr(run.records[name], field)[0], np.float64)

    return costs_of(method) <= share * costs_of(rival)


def exponent_over_log(values: Float[np.ndarray, "V B"], slots: Sequence[int]) -> Float[np.ndarray, " B"]:
    """Return the least-squares exponent of values / log t over t."""
    logs = np.log(slots)
    centred = logs - logs.mean()
    return centred @ np.log(values / logs[:, None]) / (centred @ centred)


def increases(values: Sequence[np.ndarray]) -> Bool[np.ndarray, "V B"]:
    return np.stack([value < following for value, following in itertools.pairwise(values)])


CONFIDENCE = 0.2  # delta of Lemmas 3 and 4 and of Theorem 1, since the experiments' 1 would make them trivial
NUM_LAYERS = DIMS.num_hidden + 1  # L
