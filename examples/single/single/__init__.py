"""Forgetting and generalization of one overparameterized linear learner that meets each task once.

Setting: Lin, Ju, Liang and Shroff, *Theory on Forgetting and Generalization of Continual Learning*, 2023. Round t draws
a p x n matrix X_t of standard normal entries, n < p - 1, and targets y_t = X_t' w*_t + z_t; w_t is the solution of
X_t' w = y_t nearest to w_(t-1), from w_0 = 0. The closed forms are derived here, with r = 1 - n/p and
N = n sigma^2 / (p - n - 1), from

    E|w_t - w|^2 = r E|w_(t-1) - w|^2 + (1 - r) |w*_t - w|^2 + N    for every fixed w.

The last two statements are temptations of ours.
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
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.system import fields
from moe_theory.sweep.systems import Observable, Sweepable, observables
from moe_theory.verification.region import Scale, Size
from moe_theory.verification.statement import bound, equality, ordering


@dataclasses.dataclass(frozen=True)
class Dims:  # static
    num_features: constraints.Size = 12  # p
    num_samples: constraints.Size = 6  # n, below p - 1
    num_tasks: constraints.Size = 4  # T


class Params(NamedTuple):  # traced
    noise: constraints.Scale = 0.3  # sigma
    alikeness: Annotated[constraints.Real, constraints.Within(-1, 1)] = 0.0  # cosine between the first two w*
    later: constraints.Scale = 1.0  # length of the w* of tasks 3, 4, ...; that of the first two is 1


class State(NamedTuple):
    truths: jax.Array  # w*_t, (T, p)
    model: jax.Array  # w_t, (p,)
    learned: jax.Array  # |w_i - w*_i|^2 of tasks that have been learned, as they were then; 0 of the others, (T,)
    round: jax.Array  # t


class Info(NamedTuple):
    generalization: jax.Array  # G_t, mean of |w_t - w*_i|^2 over all T tasks
    forgetting: jax.Array  # F_t, mean of |w_t - w*_i|^2 - |w_i - w*_i|^2 over the tasks before


def given_truths(dims, params):
    """w*: two unit vectors with a given cosine, then others, orthogonal to all before as far as p allows."""
    places = jnp.arange(dims.num_tasks) % dims.num_features
    truths = (
        jax.nn.one_hot(places, dims.num_features)
        * jnp.where(jnp.arange(dims.num_tasks) < 2, 1.0, params.later)[:, None]
    )
    second = jnp.zeros(dims.num_features).at[0].set(params.alikeness).at[1].set(jnp.sqrt(1 - params.alikeness**2))
    return truths.at[1].set(second) if dims.num_tasks > 1 else truths


@functools.lru_cache
def system(dims):
    """Tasks of these sizes, one a round, in turn."""
    if dims.num_samples >= dims.num_features - 1:
        raise InvalidValueError(f"num_samples={dims.num_samples} must be below num_features - 1. Lower it.")

    def init(key, params):
        truths = given_truths(dims, params)
        return State(truths, jnp.zeros(dims.num_features), jnp.zeros(dims.num_tasks), jnp.int32(0))

    def step(key, state, params):
        task = state.round % dims.num_tasks
        drawn = jax.random.normal(key, (dims.num_features + 1, dims.num_samples))
        features, noise = drawn[:-1], params.noise * drawn[-1]
        targets = state.truths[task] @ features + noise
        move = features @ jnp.linalg.solve(features.T @ features, targets - state.model @ features)
        model = state.model + move
        errors = jnp.sum(jnp.square(model - state.truths), axis=1)
        learned = state.learned.at[task].set(errors[task])
        is_before = jnp.arange(dims.num_tasks) < task
        forgotten = jnp.sum(jnp.where(is_before, errors - learned, 0)) / jnp.maximum(task, 1)
        return State(state.truths, model, learned, state.round + 1), Info(jnp.mean(errors), forgotten)

    return mt.System(init, step)


def generalization_error(truths, ratio, noise):
    """E G_T: the mean over i of r^T |w*_i|^2 + (1 - r) sum_t r^(T - t) |w*_t - w*_i|^2 + N (1 - r^T)/(1 - r)."""
    count = len(truths)
    kept, distances = ratio ** (count - np.arange(1, count + 1)), np.sum((truths[:, None] - truths) ** 2, axis=-1)
    own = ratio**count * np.sum(truths**2, axis=1) + (1 - ratio) * distances @ kept
    return np.mean(own) + noise * (1 - ratio**count) / (1 - ratio)


def forgetting(truths, ratio, noise):
    """E F_T by its closed form, the mean over tasks i < T of

    (r^T - r^i)|w*_i|^2 + (1 - r) (sum_t r^(T - t) D_ti - sum_(t < i) r^(i - t) D_ti) + N (r^i - r^T)/(1 - r).
    """
    count = len(truths)
    distances, total, times = np.sum((truths[:, None] - truths) ** 2, axis=-1), 0.0, np.arange(1, count + 1)
    for i in range(1, count):
        still = (1 - ratio) * np.sum(ratio ** (count - times) * distances[i - 1])
        then = (1 - ratio) * np.sum(ratio ** (i - times[:i]) * distances[i - 1, :i])
        lost = (ratio**count - ratio**i) * np.sum(truths[i - 1] ** 2)
        total += lost + still - then + noise * (ratio**i - ratio**count) / (1 - ratio)
    return total / (count - 1)


def of_run(form, run):
    """A closed form at a run's sizes and parameters."""
    p, n = run.dims.num_features, run.dims.num_samples
    truths, noise = np.asarray(run.state.truths[..., 0], float), n * float(run.params.noise) ** 2 / (p - n - 1)
    return form(truths, 1 - n / p, noise)


READINGS = {"as-stated": mt.Reading("as-stated", "nothing is left open that changes these statements", Params())}
OBSERVED = fields("info.generalization", "info.forgetting")


def learning(sizes):
    """One pass over the tasks: unrelated, alike, opposite, and without noise."""
    dims = Dims(**sizes)
    cells = {"unrelated": {}, "alike": {"alikeness": 0.9}, "opposite": {"alikeness": -0.9}, "no noise": {"noise": 0.0}}
    return mt.Experiment(
        "learning", dims, system(dims), cells, dims.num_tasks, 1, OBSERVED, replicates=65536, of=learning
    )


LEARNING = learning({})
FREE = (
    Scale("noise", 0, 1),
    Scale("alikeness", -1, 1),
    Scale("later", 0, 2),
    Size("num_tasks", 2, 8),
    Size("num_samples", 1, 6),
)

GENERALIZATION = mt.statement("generalization", module=__name__, free=FREE)
SCALE = {"margin": 0.02, "scale": lambda run: of_run(generalization_error, run)}


@GENERALIZATION.charitable(
    "single.generalization.form",
    LEARNING.over("alikeness"),
    equality(lambda run: of_run(generalization_error, run), **SCALE),
)
def error_at_the_end(run):
    return run.records.generalization[-1]


FORGETTING = mt.statement("forgetting", module=__name__, free=FREE)


@FORGETTING.charitable(
    "single.forgetting.form", LEARNING.over("alikeness"), equality(lambda run: of_run(forgetting, run), **SCALE)
)
def lost_at_the_end(run):
    return run.records.forgetting[-1]


APART = mt.statement("farther-apart", module=__name__)


@APART.charitable(
    "single.farther-apart.order",
    LEARNING.together("alike", "opposite"),
    ordering(below=lambda alike, opposite: opposite.records.forgetting[-1]),
)
def lost_where_alike(alike, opposite):
    return alike.records.forgetting[-1]


LOSING = mt.statement("never-negative", module=__name__)


@LOSING.charitable("single.never-negative.unrelated", LEARNING.together("unrelated"), bound(at_least=0))
def lost_of_unrelated(unrelated):
    return unrelated.records.forgetting[-1]


@plot.figure("single.passes", plot.over_rounds(LEARNING), title="One pass", summary="Error and forgetting.", rounds=4)
def passes(data, canvas):
    """Mean generalization error and forgetting after each of four tasks, for three cosines between the first two."""
    error, lost = plot.row(canvas, ["generalization error", "forgetting"], xlabel="tasks", ylabel="squared distance")
    for panel, name in ((error, "generalization"), (lost, "forgetting")):
        panel.plot(data["round"], data[name].transpose("round", "cell"), label=data["cell"].values)
    plot.legend(canvas, 4)


SHOWN = (
    Observable("error", "G_t", lambda state, info: info.generalization),
    Observable("forgetting", "F_t", lambda state, info: info.forgetting),
)
SWEEPABLE = Sweepable(
    about="one pass over tasks", dims=Dims, readings=READINGS, build=system, observables=observables(*SHOWN)
)
PAPER = mt.Paper(
    name="single",
    package=__name__,
    title="A single overparameterized learner",
    readings=READINGS,
    figures=plot.figures(passes),
    systems={"single": SWEEPABLE},
    most_verdicts=20,
    citation="""@inproceedings{lin2023, year = 2023, booktitle = {International Conference on Machine Learning},
  title = {Theory on Forgetting and Generalization of Continual Learning},
  author = {Lin, Sen and Ju, Peizhong and Liang, Yingbin and Shroff, Ness}}""",
)
