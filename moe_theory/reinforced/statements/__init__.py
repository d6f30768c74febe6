"""Statements on Algorithm 1 with a baseline, ours, and the claims that test them.

The first four are theorems of `docs/pages/derivations/repaired.md`, with signals that are orthogonal, of one length and
without noise, and outputs so small that the softmax is 1/M. When a run settles is measured.
"""

import numpy as np

from moe_theory.continual import repaired
from moe_theory.continual.repaired import cell_name, relative_error
from moe_theory.reinforced import experiments
from moe_theory.reinforced.experiments import AS_MANY, ONE_FEWER, SCALES, TWICE, settling_time
from moe_theory.verify.premises import rest_on
from moe_theory.verify.region import Size
from moe_theory.verify.statement import (
    identity,
    limit_probability,
    limit_rate,
    ordering,
    probability,
    rate,
    statement,
)

SETTLED = experiments.ONCE_SETTLED.over([TWICE, AS_MANY])
TRADING = experiments.TRADING.over({f"sigma_0 = {scale:g}": scale for scale in SCALES})
SMALL = 1e-9  # of what is 0 but for rounding
FREE = (experiments.FREE_SCALE, experiments.FREE_TASKS, experiments.FREE_FEATURES)

CONSERVATION = statement(
    "conservation",
    where="Theorem 1 of the derivation",
    says=r"""Against its own last move an expert's outputs for all tasks add up to what its last move leaves, after any
    rounds, to first order in outputs.
    $$\sum_n \theta_m^\top v_n = -\frac{\eta \|v\|^2}{M} \left(b_m - \frac{1}{M} \sum_j b_j\right)$$""",
    proof="conservation.py",
    free=(experiments.FREE_TASKS, experiments.FREE_FEATURES, experiments.FREE_FIT),
)


@CONSERVATION.charitable("conservation.sums", TRADING, limit_rate(at_least=1))
def off_the_sum(run):
    """After 300 rounds the sum that is off most is so by the order of sigma_0, over what a move of that length adds."""
    lasts = run.records.lasts
    unit = run.params.learning_rate * run.records.square / lasts.shape[1]
    expected = -unit[:, None] * (lasts - lasts.mean(axis=1, keepdims=True))
    off = abs(run.records.sums - expected) / (unit[:, None] * run.params.truth_scale)
    return off[-1].max(axis=0)


ABSORPTION = statement(
    "absorption",
    where="Theorem 2 of the derivation",
    says=r"""A state in which for every task all experts whose outputs are within lambda of the largest had that task
    last is settled, stays so, and no model moves again.
    $$\Delta w_t = 0, \quad t > T_s$$""",
    note="Experts learn at once, and features have no noise: with noise gates have outputs for that, too.",
    proof="absorption.py",
    free=(*FREE, experiments.FREE_SHARE),
)


@ABSORPTION.charitable("absorption.moves", SETTLED, probability(at_most=0.01))
def moves_again(run):
    """In at most 1 % of runs a model moves once the state has settled."""
    return run.state.moved > SMALL


NEEDED = statement(
    "experts-needed",
    where="Corollary 1 of the derivation",
    says="With fewer experts than tasks no state is settled. $$M < N$$",
    proof="experts_needed.py",
    free=(*FREE, experiments.FREE_SHARE),
)


@NEEDED.charitable("experts-needed.never", experiments.ONCE_SETTLED.at(ONE_FEWER), identity(within=SMALL))
def has_settled(run):
    """With M = N - 1 no run has settled, in the time in which all do that have one expert more."""
    return (run.state.settled > 0).astype(float)


FORGETTING = statement(
    "forgetting",
    where="Corollary 2 of the derivation",
    says=r"""Once the state has settled nothing more is forgotten, and errors of earlier rounds are averaged away.
    $$F_t = \frac{T_s - 1}{t - 1} F_{T_s}, \quad G_t = \frac{T_s}{t} G_{T_s}, \quad t > T_s$$""",
    proof="forgetting.py",
    free=(*FREE, experiments.FREE_SHARE),
)


@FORGETTING.charitable("forgetting.decay", SETTLED, identity(within=SMALL))
def off_the_decay(run):
    """At the end F_t and G_t are what they were on settling, times these factors; over the squared length of truths."""
    end, settled, state = run.rounds[-1], run.state.settled, run.state
    forgetting = run.records.forgetting[-1] * (end - 1) - state.forgetting * (settled - 1)
    error = run.records.generalization_error[-1] * end - state.generalization_error * settled
    off = np.maximum(abs(forgetting), abs(error)) / (end * float(run.params.truth_scale) ** 2)
    return np.where(settled > 0, off, 0)


TIME = statement(
    "settling",
    where="When it settles",
    says=r"""With as many experts as tasks or more, runs settle as sigma_0 falls, in this order of rounds.
    $$T_s = \Theta(\sigma_0^{-1/4}), \quad M \geq N$$""",
    note="""A proof lacks one step: that rest points of the gates at which some task has two kinds of experts near its
    largest output are left. With eta, lambda and moves of the orders of Algorithm 1 outputs get lambda apart after an
    order of sigma_0^-1/4 rounds.""",
    free=(),
)
OVER_SCALES = {
    of: experiments.SETTLES.over({f"{of}, sigma_0 = {scale:g}": scale for scale in SCALES}) for of in (TWICE, AS_MANY)
}


@TIME.charitable("settling.happens", OVER_SCALES[TWICE], limit_probability(to=1, margin=0.05)).says(
    "With M = 2 N runs settle within 64 N M sigma_0^-1/4 rounds, but for o(1)."
)
@TIME.charitable("settling.happens-as-many", OVER_SCALES[AS_MANY], limit_probability(to=1, margin=0.05)).says(
    "With M = N runs settle within 64 N M sigma_0^-1/4 rounds, but for o(1)."
)
def settles(run):
    return run.state.settled > 0


@TIME.charitable("settling.time", OVER_SCALES[TWICE], limit_rate(equal=-0.25, margin=0.05)).says(
    "With M = 2 N the mean number of rounds until a run has settled is of the order of sigma_0^-1/4."
)
@TIME.ours("settling.time-as-many", OVER_SCALES[AS_MANY], limit_rate(equal=-0.25, margin=0.05)).says(
    "With M = N the mean number of rounds until a run has settled is of the order of sigma_0^-1/4."
)
def rounds_until_settled(run):
    return settling_time(run).astype(float)


TIME_OF_EXPERTS = statement(
    "settling-experts",
    where="When it settles, by experts",
    says=r"Runs take longer to settle with more experts, by a power between these. $$M^{3/2} \leq T_s \leq M^2$$",
    note="""An expert meets a task every N M rounds, and its output moves by an M-th of eta times a cost, so that M^2 is
    what a steady lead would take.""",
    free=(),
)
OVER_EXPERTS = experiments.SETTLES_MANY.over({f"M = {number}": number for number in experiments.MANY})


@TIME_OF_EXPERTS.charitable("settling-experts.least", OVER_EXPERTS, rate(at_least=1.5)).says(
    "With three tasks and 6 to 48 experts the mean of T_s grows by M^1.5 at least."
)
@TIME_OF_EXPERTS.charitable("settling-experts.most", OVER_EXPERTS, rate(at_most=2)).says(
    "With three tasks and 6 to 48 experts the mean of T_s grows by M^2 at most."
)
def rounds_with_experts(run):
    return settling_time(run).astype(float)


ERROR = statement(
    "less-error",
    where="Beside Algorithm 1 as printed",
    says="At the end the error is below that of Algorithm 1 as printed, with orthogonal signals and M > N, for "
    "sigma_0 of 1e-4 to 0.1. $$G_T < G_T^{\\mathrm{printed}}$$",
    free=(Size("num_tasks", 2, 5), experiments.FREE_LAW),
)
PRINTED_SCALES = repaired.SCALES[:4]
PAIRS = [cell_name(variant, "orthogonal", 5, scale) for variant in ("repaired", "printed") for scale in PRINTED_SCALES]


def printed_error(*runs):
    return np.stack([relative_error(run) for run in runs[len(PRINTED_SCALES) :]])


@ERROR.charitable(
    "less-error.end",
    experiments.BESIDE_PRINTED.together(*PAIRS),
    ordering(below=printed_error),
    labels=[f"sigma_0 = {scale:g}" for scale in PRINTED_SCALES],
)
def error_against_baseline(*runs):
    """With M = 5 the mean of G_T after 64 N M sigma_0^-1/4 rounds is below the printed one, sigma_0 from 1e-4 to .1."""
    return np.stack([relative_error(run) for run in runs[: len(PRINTED_SCALES)]])


rest_on("reinforced", {"forgetting": "absorption"})
