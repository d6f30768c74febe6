"""Statements on Algorithm 1 with a baseline, and the claims that test them.

The first four are theorems of `docs/pages/derivations/repaired.md`. They assume noiseless orthogonal signals of one
length and a softmax that gives every expert 1/M. The time to settle is measured.
"""

import functools

import numpy as np

from moe_theory.core.tasks import ORTHOGONAL
from moe_theory.reinforced import experiments
from moe_theory.reinforced.experiments import AS_MANY, PRINTED_SCALES, SCALES, TWICE, relative_error, settling_time
from moe_theory.verification.region import Size
from moe_theory.verification.statement import identity, limit_rate, ordering, probability, rate
from moe_theory.verification.statement import statement as declare

SETTLED = experiments.ONCE_SETTLED.over([TWICE, AS_MANY])
TRADING = experiments.TRADING.over({f"sigma_0 = {scale:g}": scale for scale in SCALES})
SMALL = 1e-9  # numbers below this are 0 up to rounding
FREE = (experiments.FREE_SCALE, experiments.FREE_TASKS, experiments.FREE_FEATURES, experiments.FREE_SHARE)

HOLDS = {
    "orthogonal-signals": lambda dims, run: (run.params.signal_law == ORTHOGONAL) & (run.params.noise_scale == 0),
    "unit-strengths": lambda dims, run: (run.params.min_strength == 1) & (run.params.max_strength == 1),
    "one-update": lambda dims, run: True,  # `experiments.settling` fits models by `whole_truth`
}
statement = functools.partial(declare, holds=HOLDS)

CONSERVATION = statement(
    "conservation", module=__name__, free=(experiments.FREE_TASKS, experiments.FREE_FEATURES, experiments.FREE_FIT)
)


@CONSERVATION.charitable("conservation.sums", TRADING, limit_rate(at_least=1))
def off_the_sum(run):
    last_costs = run.records.lasts
    step_size = run.params.learning_rate * run.records.square / last_costs.shape[1]
    expected = -step_size[:, None] * (last_costs - last_costs.mean(axis=1, keepdims=True))
    distances = abs(run.records.sums - expected) / (step_size[:, None] * run.params.truth_scale)
    return distances[-1].max(axis=0)


ABSORPTION = statement("absorption", module=__name__, free=FREE)


@ABSORPTION.charitable("absorption.moves", SETTLED, probability(at_most=0.01))
def moves_again_or_never_settles(run):
    return (run.state.moved > SMALL) | (run.state.settled == 0)


NEEDED = statement("experts-needed", module=__name__, free=FREE)


@NEEDED.charitable("experts-needed.never", experiments.ONCE_SETTLED.at(experiments.ONE_FEWER), identity(within=SMALL))
def has_settled(run):
    return (run.state.settled > 0).astype(float)


FORGETTING = statement("forgetting", module=__name__, free=FREE)


@FORGETTING.charitable("forgetting.decay", SETTLED, identity(within=SMALL))
def off_the_decay(run):
    end = run.rounds[-1]
    state = run.state
    # F_t and G_t are means over t - 1 and t rounds. The sums behind these means do not grow once a run is settled.
    forgetting_growth = run.records.forgetting[-1] * (end - 1) - state.forgetting * (state.settled - 1)
    error_growth = run.records.generalization_error[-1] * end - state.generalization_error * state.settled
    growth = np.maximum(abs(forgetting_growth), abs(error_growth)) / (end * float(run.params.truth_scale) ** 2)
    return np.where(state.settled > 0, growth, 0)


TIME = statement("settling", module=__name__, free=())
OVER_SCALES = {
    name: experiments.SETTLES.over({f"{name}, sigma_0 = {scale:g}": scale for scale in SCALES})
    for name in (TWICE, AS_MANY)
}


TIME.charitable("settling.time", OVER_SCALES[TWICE], limit_rate(equal=-0.25, margin=0.05))(settling_time)


@TIME.charitable("settling.happens", OVER_SCALES[TWICE], probability(at_least=0.95))
@TIME.ours("settling.happens-as-many", OVER_SCALES[AS_MANY], probability(at_least=0.95))
def settles(run):
    return run.state.settled > 0


TIME.ours("settling.time-as-many", OVER_SCALES[AS_MANY], limit_rate(equal=-0.25, margin=0.05))(settling_time)

TIME_OF_EXPERTS = statement("settling-experts", module=__name__, free=())
OVER_EXPERTS = experiments.SETTLES_MANY.over({f"M = {number}": number for number in experiments.EXPERT_NUMBERS})
TIME_OF_EXPERTS.charitable("settling-experts.most", OVER_EXPERTS, rate(at_most=2))(settling_time)
TIME_OF_EXPERTS.charitable("settling-experts.least", OVER_EXPERTS, rate(at_least=1.5))(settling_time)

ERROR = statement("less-error", module=__name__, free=(Size("num_tasks", low=2, high=5), experiments.FREE_LAW))
REPAIRED, PRINTED = experiments.VARIANTS
REPAIRED_CELLS = [experiments.cell_name(REPAIRED, scale) for scale in PRINTED_SCALES]
PRINTED_CELLS = [experiments.cell_name(PRINTED, scale) for scale in PRINTED_SCALES]


def printed_error(*runs):
    return np.stack([relative_error(run) for run in runs[len(PRINTED_SCALES) :]])


@ERROR.charitable(
    "less-error.end",
    experiments.BESIDE_PRINTED.together(*REPAIRED_CELLS, *PRINTED_CELLS),
    ordering(below=printed_error),
    labels=[f"sigma_0 = {scale:g}" for scale in PRINTED_SCALES],
)
def repaired_error(*runs):
    return np.stack([relative_error(run) for run in runs[: len(PRINTED_SCALES)]])
