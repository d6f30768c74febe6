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
    last is settled, stays so while the softmax is 1/M, and no model moves again.
    $$\Delta w_t = 0, \quad t > T_s$$""",
    note="Experts learn at once, and features have no noise: with noise gates have outputs for that, too.",
    proof="absorption.py",
    free=(*FREE, experiments.FREE_SHARE),
)


@ABSORPTION.charitable("absorption.moves", SETTLED, probability(at_most=0.01))
def moves_again(run):
    """In at most 1 % of runs a model moves once the state has settled, or it has not settled by the end."""
    return (run.state.moved > SMALL) | (run.state.settled == 0)


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
    says=r"""Once the state has settled, and while the softmax is 1/M, nothing more is forgotten, and errors of earlier
    rounds are averaged away.
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
    says=r"""With three tasks and M = 3 or 6, Gaussian truths and orthogonal signals, runs settle in rounds of this
    order, up to logarithms.
    $$T_s = \sigma_0^{-1/4 + o(1)}$$""",
    note="""A proof lacks one step: that rest points of the gates at which some task has two kinds of experts near its
    largest output are left. With eta, lambda and moves of the orders of Algorithm 1 outputs get lambda apart after an
    order of sigma_0^-0.25 rounds; from the level state, a rest point, a factor ln(1/sigma_0) is likely. Truths that are
    nearly alike, or on a line, leave some runs unsettled for long.""",
    free=(),
)
OVER_SCALES = {
    of: experiments.SETTLES.over({f"{of}, sigma_0 = {scale:g}": scale for scale in SCALES}) for of in (TWICE, AS_MANY)
}


@TIME.charitable("settling.happens", OVER_SCALES[TWICE], probability(at_least=0.95)).says(
    "With M = 2 N at least 95 % of runs settle within 64 N M sigma_0^-0.25 rounds, at sigma_0 of 1e-6 to 1e-3."
)
@TIME.charitable("settling.happens-as-many", OVER_SCALES[AS_MANY], probability(at_least=0.95)).says(
    "With M = N at least 95 % of runs settle within 64 N M sigma_0^-0.25 rounds, at sigma_0 of 1e-6 to 1e-3."
)
def settles(run):
    return run.state.settled > 0


TIME.ours("settling.time-as-many", OVER_SCALES[AS_MANY], limit_rate(equal=-0.25, margin=0.05)).says(
    "With M = N the mean number of rounds until a run has settled has this exponent, at sigma_0 of 1e-6 to 1e-3."
)(settling_time)
TIME.charitable("settling.time", OVER_SCALES[TWICE], limit_rate(equal=-0.25, margin=0.05)).says(
    "With M = 2 N the mean number of rounds until a run has settled has this exponent, at sigma_0 of 1e-6 to 1e-3."
)(settling_time)


TIME_OF_EXPERTS = statement(
    "settling-experts",
    where="When it settles, by experts",
    says=r"""With three tasks and 6 to 48 experts runs take longer to settle with more experts, by such a power.
    $$T_s \propto M^a, \quad 3/2 \leq a \leq 2$$""",
    note="""An expert meets a task every N M rounds, and its output moves by an M-th of eta times a cost, so that M^2 is
    what a steady lead would take.""",
    free=(),
)
OVER_EXPERTS = experiments.SETTLES_MANY.over({f"M = {number}": number for number in experiments.MANY})


TIME_OF_EXPERTS.charitable("settling-experts.most", OVER_EXPERTS, rate(at_most=2)).says(
    "With three tasks and 6 to 48 experts the mean of T_s grows by M^2 at most."
)(settling_time)
TIME_OF_EXPERTS.charitable("settling-experts.least", OVER_EXPERTS, rate(at_least=1.5)).says(
    "With three tasks and 6 to 48 experts the mean of T_s grows by M^1.5 at least."
)(settling_time)


ERROR = statement(
    "less-error",
    where="Beside Algorithm 1 as printed",
    says="At the end the error is below that of Algorithm 1 as printed, with orthogonal signals and M = 5, for "
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
    """With M = 5 the mean of G_T after 64 N M sigma_0^-0.25 rounds is below the printed one, at sigma_0 1e-4 to .1."""
    return np.stack([relative_error(run) for run in runs[: len(PRINTED_SCALES)]])


rest_on("reinforced", {"forgetting": "absorption"})
