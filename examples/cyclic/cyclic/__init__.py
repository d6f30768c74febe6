"""Forgetting in linear regression, with tasks that come back and that one model learns to the end each time.

Setting: Evron, Moroshko, Ward, Srebro and Soudry, *How catastrophic can catastrophic forgetting be in linear
regression?*, 2022. A task is one unit vector x_m with the target x_m . w*. Learning it moves the model to the nearest
solution, which projects the error u = w - w* on the complement of x_m. The first statement below is theirs (abstract).
The others are ours, and the last is false.
"""

import dataclasses
import functools
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import moe_theory as mt
from moe_theory import plot
from moe_theory.core import constraints
from moe_theory.core.system import fields
from moe_theory.sweep.systems import Observable, Sweepable, observables
from moe_theory.verification.region import Scale, Size
from moe_theory.verification.statement import bound, identity, limit_rate, ordering


@dataclasses.dataclass(frozen=True)
class Dims:  # static
    num_tasks: constraints.Size = 2  # T
    num_features: constraints.Size = 2  # d


class Params(NamedTuple):  # traced
    angle: Annotated[constraints.Real, constraints.Within(0, np.pi)] = np.pi / 4  # theta between neighbours of a chain
    lingering: constraints.Probability = 0.0  # of a chain: share of its tasks after which it turns
    alikeness: constraints.Probability = 0.0  # of drawn tasks: length of their common part


class State(NamedTuple):
    tasks: jax.Array  # x_m, (T, d)
    error: jax.Array  # u = w - w*, (d,)
    visits: jax.Array  # rounds of each task, (T,)
    round: jax.Array  # k


class Info(NamedTuple):
    forgetting: jax.Array  # F(k), mean of (x . u_k)^2 over the rounds so far
    loss: jax.Array  # mean of (x_m . u_k)^2 over tasks, the loss of a fresh task


def chain(key, dims, params):
    """Return unit vectors of a plane, theta/T and after the turn theta apart, and w* orthogonal to the first."""
    begins = jnp.floor(params.lingering * dims.num_tasks)
    places = jnp.arange(dims.num_tasks)
    turned = jnp.maximum(places - begins, 0) + jnp.minimum(places, begins) / dims.num_tasks
    angles = params.angle * turned
    tasks = jnp.zeros((dims.num_tasks, dims.num_features))
    return tasks.at[:, 0].set(jnp.cos(angles)).at[:, 1].set(jnp.sin(angles)), tasks[0].at[1].set(1.0)


def drawn(key, dims, params):
    """Return unit vectors with random directions and a common part, and w* with a random direction."""
    vectors = jax.random.normal(key, (dims.num_tasks + 2, dims.num_features))
    truth, common, *own = vectors / jnp.linalg.norm(vectors, axis=1, keepdims=True)
    mixed = params.alikeness * common + (1 - params.alikeness) * jnp.stack(own)
    return mixed / jnp.linalg.norm(mixed, axis=1, keepdims=True), truth


def in_turn(key, dims, round):
    """Return the next task of a cycle."""
    return round % dims.num_tasks


def at_random(key, dims, round):
    """Return a random task, independent of earlier ones."""
    return jax.random.randint(key, (), 0, dims.num_tasks)


@functools.lru_cache
def system(dims, law=chain, order=in_turn):
    """Return the system for tasks of these sizes, from a distribution and in an order."""

    def init(key, params):
        tasks, truth = law(key, dims, params)
        return State(tasks, -truth, jnp.zeros(dims.num_tasks), jnp.int32(0))

    def step(key, state, params):
        task = order(key, dims, state.round)
        vector = state.tasks[task]
        error = state.error - vector * jnp.sum(vector * state.error)
        visits = state.visits.at[task].add(1)
        squares = jnp.square(jnp.sum(state.tasks * error, axis=1))
        info = Info(jnp.sum(visits * squares) / jnp.sum(visits), jnp.mean(squares))
        return State(state.tasks, error, visits, state.round + 1), info

    return mt.System(init, step)


def two_tasks(angle, num_rounds):
    """Return F(k) of two tasks in turn for even k: sin(theta)^2 cos(theta)^(2 (k - 1)) / 2."""
    return np.sin(angle) ** 2 * np.cos(angle) ** (2 * (num_rounds - 1)) / 2


def worst_of_two(num_rounds):
    """Return the largest F(k) of two tasks, (1 - 1/k)^k / (2 (k - 1)) < 1 / (2e (k - 1)), at cos(theta)^2 = 1 - 1/k."""
    return (1 - 1 / num_rounds) ** num_rounds / (2 * (num_rounds - 1))


def fresh_loss(num_rounds):
    """Return the bound on a fresh task's mean loss after k random tasks: k^k / (k + 1)^(k + 1) < 1 / (e k)."""
    return (num_rounds / (num_rounds + 1)) ** num_rounds / (num_rounds + 1)


def in_cycles(sizes):
    """Return the experiment with ten cycles of chains and of drawn tasks, for these sizes."""
    dims = Dims(**{"num_tasks": 6, "num_features": 5, **sizes})
    systems, rounds = {"drawn": system(dims, drawn)}, dims.num_tasks
    return mt.Experiment(
        "in-cycles",
        dims,
        system(dims),
        {"chain": {}, "drawn": {}},
        10 * rounds,
        rounds,
        OBSERVED,
        systems=systems,
        of=in_cycles,
    )


def randomly(sizes):
    """Return the experiment with three degrees of similarity and random order, for these sizes."""
    dims = Dims(**{"num_tasks": 6, "num_features": 5, **sizes})
    cells = {"apart": {}, "half alike": {"alikeness": 0.5}, "nearly alike": {"alikeness": 0.9}}
    any_order = system(dims, drawn, at_random)
    return mt.Experiment("randomly", dims, any_order, cells, 40, 1, OBSERVED, replicates=4096, of=randomly)


READINGS = {"as-stated": mt.Reading("as-stated", "nothing is left open that changes these statements", Params())}
OBSERVED = fields("info.forgetting", "info.loss")
SHOWN = (
    Observable("forgetting", "F(k)", lambda state, info: info.forgetting),
    Observable("loss", "mean loss of a task drawn afresh", lambda state, info: info.loss),
)
ANGLES = {
    "near": {"angle": np.arccos(0.8)},
    "far": {"angle": np.arccos(5 / 13)},
    "worst": {"angle": np.arccos(0.5**0.5)},
}
PAIR = mt.Experiment("pair", Dims(), system(Dims()), ANGLES, 20, 2, OBSERVED, replicates=64)
IN_CYCLES, RANDOMLY = in_cycles({}), randomly({})
LENGTHS = [16, 64, 256, 1024, 4096]  # k tasks, all different: k - sqrt(k) of them nearly alike, then a quarter turn
TURNS = {f"k = {k}": {"lingering": 1 - k**-0.5, "angle": np.pi / 2 / k**0.5} for k in LENGTHS}
TURNING = mt.Experiment(
    "turning", Dims(num_tasks=LENGTHS[-1]), system(Dims(num_tasks=LENGTHS[-1])), TURNS, LENGTHS[-1], LENGTHS[-1],
    OBSERVED, replicates=2, systems={f"k = {k}": system(Dims(num_tasks=k)) for k in LENGTHS},
    lengths=dict(zip(TURNS, LENGTHS, strict=True)), is_double=True,
)  # fmt: skip

CYCLES = mt.statement(
    "cyclic-order",
    module=__name__,
    free=(
        Scale("angle", 0.01, 3.13),
        Scale("alikeness", 0, 0.99),
        Size("num_tasks", 2, 12),
        Size("num_features", 2, 20),
    ),
)


@CYCLES.charitable("cyclic.cyclic-order.bound", IN_CYCLES.together("chain", "drawn"), identity(within=1e-5))
def beyond_the_bound(chain, drawn):
    num_tasks, num_features = chain.state.tasks.shape[:2]
    allowed = num_tasks**2 * np.minimum(chain.rounds**-0.5, num_features / chain.rounds)
    worse = np.maximum(chain.records.forgetting, drawn.records.forgetting)
    return np.max(np.maximum(worse - allowed[:, None], 0), axis=0)


PAIRS = mt.statement("two-tasks", module=__name__, free=Scale("angle", 0.01, 3.13))


@PAIRS.charitable("cyclic.two-tasks.bound", PAIR.over("angle"), bound(at_most=0, margin=1e-5, scale=1.0), exact=True)
def beyond_the_worst(run):
    return np.max(run.records.forgetting - worst_of_two(run.rounds)[:, None], axis=0)


ANYWHERE = mt.statement(
    "random-order",
    module=__name__,
    free=(Scale("alikeness", 0, 0.99), Size("num_tasks", 2, 12), Size("num_features", 2, 20)),
)


@ANYWHERE.charitable("cyclic.random-order.loss", RANDOMLY.over("alikeness"), bound(at_most=0, margin=0.002, scale=1.0))
def beyond_its_mean(run):
    return run.records.loss[-1] - fresh_loss(40)


TURN = mt.statement("catastrophe", module=__name__)


@TURN.charitable(
    "cyclic.catastrophe.rate",
    TURNING.over(dict(zip(TURNS, LENGTHS, strict=True))),
    limit_rate(at_most=-0.5),
    exact=True,
)
def what_is_kept(run):
    return 1 - run.records.forgetting[-1]


ALIKE = mt.statement("alike-tasks", module=__name__)


@ALIKE.charitable(
    "cyclic.alike-tasks.order",
    PAIR.together("near", "far"),
    ordering(below=lambda near, far: far.records.forgetting[0]),
    exact=True,
)
def of_the_nearer(near, far):
    return near.records.forgetting[0]


@ALIKE.claim("cyclic.alike-tasks.form", PAIR.over("angle"), bound(at_most=1e-5), role="corrected", exact=True)
def off_the_form(run):
    stated = two_tasks(run.params.angle, run.rounds)
    return np.max(abs(run.records.forgetting - stated[:, None]), axis=0)


@plot.figure(
    "cyclic.orders", plot.over_rounds(RANDOMLY), title="Loss in random order", summary="A fresh task.", rounds=40
)
def orders(data, canvas):
    """Mean loss of a fresh task after k tasks in random order, for three degrees of similarity, and its bound."""
    (panel,) = plot.row(canvas, ["6 tasks in 5 dimensions"], xlabel="tasks k", ylabel="loss of a fresh task")
    panel.plot(data["round"], data["loss"].transpose("round", "cell"), label=data["cell"].values)
    panel.plot(data["round"], fresh_loss(data["round"]), "k--", label="bound")
    plot.legend(canvas, 2)


SWEEPABLE = Sweepable(
    about="tasks that come back",
    dims=Dims,
    readings=READINGS,
    build=system,
    observables=observables(*SHOWN),
    choices={"law": {"drawn": drawn, "chain": chain}, "order": {"random": at_random, "cyclic": in_turn}},
)
PAPER = mt.Paper(
    name="cyclic",
    package=__name__,
    title="Forgetting in linear regression, in turn and at random",
    readings=READINGS,
    figures=plot.figures(orders),
    systems={"cyclic": SWEEPABLE},
    most_verdicts=20,
    citation="""@inproceedings{evron2022, year = 2022, booktitle = {Conference on Learning Theory},
  title = {How catastrophic can catastrophic forgetting be in linear regression?},
  author = {Evron, Itay and Moroshko, Edward and Ward, Rachel and Srebro, Nathan and Soudry, Daniel}}""",
)
