"""A task goes to the less loaded of two experts drawn at random.

Source: Azar, Broder, Karlin and Upfal, *Balanced Allocations*, 1999.
"""

import dataclasses
import math
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp

import moe_theory as mt
from moe_theory import plot
from moe_theory.core import constraints
from moe_theory.sweep.systems import Sweepable, observables
from moe_theory.verification.statement import ordering, probability


@dataclasses.dataclass(frozen=True)
class Dims:  # static: sizes of arrays
    max_experts: constraints.Size = 256


class Params(NamedTuple):  # traced: what readings choose and sweeps vary
    num_experts: Annotated[constraints.Count, constraints.PaddedTo("max_experts")] = 256
    num_choices: Annotated[constraints.Count, constraints.OneOf((1, 2))] = 2


class State(NamedTuple):  # of one replicate, carried from round to round
    loads: jax.Array  # (max_experts,), 0 beyond num_experts
    round: jax.Array  # every state needs it


def system(dims):
    """Return the algorithm for arrays of these sizes."""

    def init(key, params):
        return State(jnp.zeros(dims.max_experts), jnp.int32(0))

    def step(key, state, params):
        candidates = jax.random.randint(key, (2,), 0, params.num_experts)
        is_choice = jnp.arange(2) < params.num_choices
        candidate_loads = jnp.where(is_choice, state.loads[candidates], jnp.inf)  # with one choice the first is chosen
        chosen = candidates[candidate_loads.argmin()]
        info = ()  # nothing to observe but the state
        return State(state.loads.at[chosen].add(1), state.round + 1), info

    return mt.System(init, step)


def peak(state, info):
    """Largest load, in tasks."""
    return state.loads.max()


READINGS = {  # the first is the default
    "best-of-2": mt.Reading("best-of-2", "two are drawn", Params(num_choices=2)),
    "best-of-1": mt.Reading("best-of-1", "one is drawn", Params(num_choices=1)),
}
CELLS = {"as read": {}, "one drawn": {"num_choices": 1}}  # parameters that each cell adds to the reading
FILL = mt.Experiment("fill", Dims(), system(Dims()), CELLS, num_rounds=256, record_every=16, observe=peak)

THEOREM_1 = mt.statement("theorem-1", module=__name__)


@THEOREM_1.literal("allocations.theorem-1.peak", FILL.at("as read"), probability(at_least=0.9))
def loads_stay_small(run):
    return run.records[-1] <= math.log2(math.log(256)) + 2


@THEOREM_1.charitable(
    "allocations.theorem-1.gain",
    FILL.together("as read", "one drawn"),
    ordering(below=lambda _, one_drawn: one_drawn.records[-1]),
)
def load_with_choice(two_drawn, one_drawn):
    return two_drawn.records[-1]


@plot.figure(
    "allocations.peaks", plot.over_rounds(FILL), title="Largest loads", summary="Mean of peaks.", rounds=FILL.num_rounds
)
def peaks(data, canvas):
    """Mean over replicates of the largest load, after each number of tasks."""
    (panel,) = plot.row(canvas, ["256 experts"], xlabel="tasks", ylabel="largest load")
    panel.plot(data["round"], data["peak"].transpose("round", "cell"), label=data["cell"].values)
    plot.legend(canvas, 2)


SWEEPABLE = Sweepable(about="two choices", dims=Dims, readings=READINGS, build=system, observables=observables(peak))
PAPER = mt.Paper(
    name="allocations",
    package=__name__,
    title="Balanced allocations",
    readings=READINGS,
    figures=plot.figures(peaks),
    systems={"allocations": SWEEPABLE},
    citation="""@article{azar, title = {Balanced Allocations}, year = 1999,
  author = {Azar, Yossi and Broder, Andrei and Karlin, Anna and Upfal, Eli}}""",
)
