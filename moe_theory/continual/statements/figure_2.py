"""Sentences about Fig. 2: termination, many experts against one, and more experts than needed."""

import dataclasses
from collections.abc import Callable

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.runs import Run
from moe_theory.verify.statement import bound, ordering, probability, statement

MOE_SIZES = (5, 10, 20)
BY_SIZE = tuple(f"M = {size}" for size in MOE_SIZES)
TERMINATED, ENDLESS = ([experiments.cell_name(size, terminate) for size in MOE_SIZES] for terminate in (True, False))
BOTH, AGAINST_ONE, BLIND_AGAINST_ONE = (
    dataclasses.replace(runs.together(*TERMINATED, *others), labels=BY_SIZE)
    for runs, others in (
        (experiments.FIGURE_2, ENDLESS),
        (experiments.FIGURE_2, [experiments.SINGLE]),
        (interventions.FIGURE_2_BLIND, [experiments.SINGLE]),
    )
)
TEN_AND_TWENTY = experiments.FIGURE_2.together(experiments.cell_name(10), experiments.cell_name(20))
BELOW = experiments.SINGLE, experiments.FEW
BLIND_TEN_AND_TWENTY = interventions.FIGURE_2_BLIND.together(experiments.cell_name(10), experiments.cell_name(20))
LONG_SIGNALS = interventions.FIGURE_2_LONG.together(experiments.cell_name(10), experiments.cell_name(20))
METRICS = ("forgetting", "generalization_error")
BOTH_METRICS = ["forgetting", "generalization error"]
FORGETTING, ERROR = map(experiments.final, METRICS)
ALMOST_ZERO = 0.05  # of a single expert's error: our reading of "almost zero"
FIXED = """It needs gates that are fixed at some time. With strong signals a step exceeds the perturbation (kappa/lambda
is <16>, <8> and <4> at M = 5, 10 and 20), experts' outputs stay further apart than Gamma, and the gates of few runs are
fixed by T = <2000>: in the others both algorithms are the same. With kappa/lambda from <1.7> to <6.8>, as unit signals
have it, nearly all are. To compare only runs whose gates are fixed would select the easy ones."""

RISE = statement(
    "figure-2-rise",
    where="Sec. 6, Fig. 2 (a), (c)",
    says=r"""While experts explore, forgetting and overall generalization error both grow before they fall.
    $$\mathbb{E}[F_{10}] < \mathbb{E}[F_{T_1}] > \mathbb{E}[F_T], \quad \mathbb{E}[G_{10}] < \mathbb{E}[G_{T_1}] >
    \mathbb{E}[G_T]$$""",
)
ZERO = statement(
    "figure-2-almost-zero",
    where="Sec. 6, Fig. 2 (a), (c)",
    says="Both metrics settle next to zero for every Mixture-of-Experts that stops updating its gates.",
    note="""At most 5 % of a single expert's error is our reading of it. It depends on the signals: where they are
    strong, most runs end that low, and the mean is made by the others.""",
)
WORSE = statement(
    "figure-2-endless",
    where="Sec. 6, Fig. 2 (b), (d)",
    says="Gates that are updated for ever do worse on both metrics than gates whose updates stop.",
    corrected=FIXED,
)
SWINGS = statement(
    "figure-2-oscillation",
    where="Sec. 6, Fig. 2 (b), (d)",
    says="Gates that are updated for ever make both metrics swing widely.",
    note="Ups and downs between records, less the net change, are our measure of it.",
)
MISROUTING = statement(
    "figure-2-misrouting",
    where="Sec. 6, Fig. 2 (b), (d)",
    says="The cause is that a router which goes on learning comes to pick experts of the wrong kind.",
    corrected=FIXED,
)
AGAINST_SINGLE = statement(
    "figure-2-single-expert",
    where="Sec. 6, Fig. 2 (a), (c)",
    says="A Mixture-of-Experts that stops updating its gates beats one expert clearly on both metrics.",
)
SLOWER = statement(
    "figure-2-more-experts-slower",
    where="Sec. 6, Fig. 2, M = 10 against M = 20",
    says=r"""Once there are more experts than tasks, further ones make convergence take longer.
    $$\sum_{t = 20, 40, \ldots, T} \mathbb{E}[G_t - G_T \mid M = 10] < \sum_{t = 20, 40, \ldots, T} \mathbb{E}[G_t -
    G_T \mid M = 20]$$""",
)
NO_BETTER = statement(
    "figure-2-more-experts-no-better",
    where="Sec. 6, Fig. 2, M = 10 against M = 20",
    says=r"""Once there are more experts than tasks, further ones do not make the outcome better.
    $$\mathbb{E}[G_T \mid M = 10] \le 1.05\, \mathbb{E}[G_T \mid M = 20]$$""",
    why="The figure shows M = 10 and 20 alone. Just above N = 6 a few experts more still help.",
    amendment="from M = 10 on, the least number above N that the figure shows",
)

Measure = Callable[[Run], np.ndarray]


def of_first(measure: Measure) -> Callable[..., np.ndarray]:
    """A measure of the runs of three sizes with termination, a component each, that stand before others."""
    return lambda *runs: np.stack([measure(run) for run in runs[: len(MOE_SIZES)]])


def of_rest(measure: Measure) -> Callable[..., np.ndarray]:
    """The same of the runs behind them."""
    return lambda *runs: np.stack([measure(run) for run in runs[len(MOE_SIZES) :]])


def second_half(run, name: str) -> np.ndarray:
    return getattr(run.records, name)[run.rounds > experiments.FIGURE_2.num_rounds // 2].astype(np.float64)


def swing(name: str) -> Measure:
    """How far a metric goes up and down between records of the second half, beyond what it changes in all."""

    def beyond_change(run) -> np.ndarray:
        steps = np.diff(second_half(run, name), axis=0)
        return np.abs(steps).sum(axis=0) - np.abs(steps.sum(axis=0))  # 0 for a metric that only falls

    return beyond_change


def mean_move(run) -> np.ndarray:
    return second_half(run, "update_norm").mean(axis=0)


def early(round: int) -> Measure:
    """Both metrics at a round (2, B)."""
    return lambda run: np.concatenate([experiments.metric(name, round)(run) for name in METRICS])


def excess_error(run) -> np.ndarray:
    """The mean over t of how far the error is above the one that the run ends with."""
    error = experiments.metric("generalization_error")(run)
    return (error - error[-1]).T.mean(axis=1)


below_explored = ordering(below=early(40))
early_both, at_end = early(10), early(experiments.FIGURE_2.num_rounds)
RISE.figure(
    "figure-2.rise",
    experiments.JUST_EXPLORED.at(experiments.MANY),
    below_explored,
    labels=BOTH_METRICS,
).says(r"""
    Both metrics first increase while experts explore: at M = 20, from t = 10 to the end of exploration, t = 40.
    $$\mathbb{E}[F_{10}] < \mathbb{E}[F_{T_1}], \quad \mathbb{E}[G_{10}] < \mathbb{E}[G_{T_1}]$$""")(early_both)
RISE.competitor(
    "figure-2.rise-blind", interventions.JUST_EXPLORED_BLIND.at(experiments.MANY), below_explored, labels=BOTH_METRICS
).says(r"""Behind a router that looks at nothing, too, both metrics increase from t = 10 to t = 40.
    $$\mathbb{E}[F_{10}] < \mathbb{E}[F_{T_1}], \quad \mathbb{E}[G_{10}] < \mathbb{E}[G_{T_1}]$$""")(early_both)
RISE.figure(
    "figure-2.fall", experiments.FIGURE_2.at(experiments.MANY), below_explored, labels=BOTH_METRICS
).says(r"""Both metrics then fall: at M = 20, from the end of exploration, t = 40, to t = 2000.
    $$\mathbb{E}[F_T] < \mathbb{E}[F_{T_1}], \quad \mathbb{E}[G_T] < \mathbb{E}[G_{T_1}]$$""")(at_end)
RISE.competitor(
    "figure-2.fall-blind", interventions.FIGURE_2_BLIND.at(experiments.MANY), below_explored, labels=BOTH_METRICS
).says(r"""Behind a router that looks at nothing, too, both metrics fall from t = 40 to t = 2000.
    $$\mathbb{E}[F_T] < \mathbb{E}[F_{T_1}], \quad \mathbb{E}[G_T] < \mathbb{E}[G_{T_1}]$$""")(at_end)
WORSE.figure(
    "figure-2.termination-forgetting", BOTH, ordering(below=of_rest(FORGETTING)), where="Sec. 6, Fig. 2 (a), (b)"
).says(r"""Terminating the gate updates ends in less forgetting than never terminating them, for every size of MoE.
    $$\mathbb{E}[F_T \mid \text{terminate}] < \mathbb{E}[F_T \mid \text{continue}], \quad M \in \{5, 10, 20\}$$
    """)(of_first(FORGETTING))
WORSE.figure(
    "figure-2.termination-generalization", BOTH, ordering(below=of_rest(ERROR)), where="Sec. 6, Fig. 2 (c), (d)"
).says(r"""Terminating the gate updates ends in less overall generalization error than never terminating them.
    $$\mathbb{E}[G_T \mid \text{terminate}] < \mathbb{E}[G_T \mid \text{continue}], \quad M \in \{5, 10, 20\}$$
    """)(of_first(ERROR))
SWINGS.literal(
    "figure-2.oscillation-forgetting", BOTH, ordering(below=of_rest(swing("forgetting"))), where="Sec. 6, Fig. 2 (b)"
).says(r"""Without termination forgetting oscillates more: ups and downs over t > 1000, less the net change.
    $$\mathbb{E}[S \mid \text{terminate}] < \mathbb{E}[S \mid \text{continue}], \quad S = \sum_{t=1000}^{1980}
    \left| F_{t+20} - F_t \right| - \left| F_{2000} - F_{1000} \right|$$""")(of_first(swing("forgetting")))
SWINGS.literal(
    "figure-2.oscillation-generalization",
    BOTH,
    ordering(below=of_rest(swing("generalization_error"))),
    where="Sec. 6, Fig. 2 (d)",
).says(r"""Without termination the generalization error oscillates more: ups and downs, less the net change.
    $$\mathbb{E}[S \mid \text{terminate}] < \mathbb{E}[S \mid \text{continue}], \quad S = \sum_{t=1000}^{1980}
    \left| G_{t+20} - G_t \right| - \left| G_{2000} - G_{1000} \right|$$""")(of_first(swing("generalization_error")))
MISROUTING.figure("figure-2.misrouting", BOTH, ordering(below=of_rest(mean_move))).says(r"""
    Without termination tasks reach less suitable experts: the chosen expert has to move farther, over t > 1000.
    $$\mathbb{E}\left[\left\lVert w_t - w_{t-1} \right\rVert \mid \text{terminate}\right] <
    \mathbb{E}\left[\left\lVert w_t - w_{t-1} \right\rVert \mid \text{continue}\right], \quad t > 1000$$
    """)(of_first(mean_move))
forgetting_of_first, error_of_first = of_first(FORGETTING), of_first(ERROR)
AGAINST_SINGLE.competitor(
    "figure-2.blind-forgetting", BLIND_AGAINST_ONE, ordering(below=of_rest(FORGETTING))
).says(r"""As many experts behind a router that looks at nothing forget less than a single one, too.
    $$\mathbb{E}[F_T \mid M] < \mathbb{E}[F_T \mid M = 1], \quad M \in \{5, 10, 20\}$$
    """)(forgetting_of_first)
AGAINST_SINGLE.competitor(
    "figure-2.blind-generalization", BLIND_AGAINST_ONE, ordering(below=of_rest(ERROR))
).says(r"""As many experts behind a router that looks at nothing generalize better than a single one, too.
    $$\mathbb{E}[G_T \mid M] < \mathbb{E}[G_T \mid M = 1], \quad M \in \{5, 10, 20\}$$
    """)(error_of_first)
AGAINST_SINGLE.figure(
    "figure-2.moe-forgetting", AGAINST_ONE, ordering(below=of_rest(FORGETTING)), where="Sec. 6, Fig. 2 (a)"
).says(r"""A Mixture-of-Experts with termination forgets less than a single expert.
    $$\mathbb{E}[F_T \mid M] < \mathbb{E}[F_T \mid M = 1], \quad M \in \{5, 10, 20\}$$
    """)(forgetting_of_first)
AGAINST_SINGLE.figure(
    "figure-2.moe-generalization", AGAINST_ONE, ordering(below=of_rest(ERROR)), where="Sec. 6, Fig. 2 (c)"
).says(r"""A Mixture-of-Experts with termination generalizes better than a single expert.
    $$\mathbb{E}[G_T \mid M] < \mathbb{E}[G_T \mid M = 1], \quad M \in \{5, 10, 20\}$$
    """)(error_of_first)


def tolerated(*runs) -> np.ndarray:
    single = runs[-1]
    return np.stack([ALMOST_ZERO * experiments.final(name)(single) for name in METRICS for _ in MOE_SIZES])


@ZERO.literal(
    "figure-2.almost-zero",
    AGAINST_ONE,
    bound(at_most=tolerated),
    labels=[f"{name}, M = {size}" for name in ("forgetting", "generalization error") for size in MOE_SIZES],
)
def both_final(*runs) -> np.ndarray:
    r"""With termination both metrics end at almost zero, read as at most 5 % of a single expert's.
    $$\mathbb{E}[F_T \mid M = 10] \le 0.05\, \mathbb{E}[F_T \mid M = 1], \quad \mathbb{E}[G_T \mid M = 10] \le
    0.05\, \mathbb{E}[G_T \mid M = 1]$$"""
    return np.stack([experiments.final(name)(run) for name in METRICS for run in runs[: len(MOE_SIZES)]])


def ends_near_zero(*runs) -> np.ndarray:
    return np.stack([ERROR(run) <= ALMOST_ZERO * experiments.task_gap(run) for run in runs])


ZERO.ours(
    "figure-2.almost-zero-median", experiments.FIGURE_2.together(*TERMINATED), probability(at_least=0.5), labels=BY_SIZE
).says(r"""
    With termination most runs end with a generalization error of almost zero, at most 5 % of the task gap Delta.

    The median in place of the mean, which the runs that end badly decide.
    $$\mathbb{P}(G_T \le 0.05\, \Delta) \geq \frac{1}{2}$$""")(ends_near_zero)


def excess_of_fewer(fewer, more) -> np.ndarray:
    return excess_error(fewer)


slower = ordering(below=lambda fewer, more: excess_error(more))
SLOWER.competitor("figure-2.more-experts-slower-blind", BLIND_TEN_AND_TWENTY, slower, labels=["mean over t"]).says(
    "Behind a router that looks at nothing, too, the error is less far above its end at M = 10 than at 20."
)(excess_of_fewer)
SLOWER.literal(
    "figure-2.more-experts-slower-long", LONG_SIGNALS, slower, where="Sec. 6, Fig. 2 (c)", labels=["mean over t"]
).says("With signals of scale 6 in place of 2.5, too, the error is less far above its end at M = 10 than at 20.")(
    excess_of_fewer
)
SLOWER.figure(
    "figure-2.more-experts-slower",
    TEN_AND_TWENTY,
    slower,
    where="Sec. 6, Fig. 2 (c)",
    labels=["mean over t"],
).says("""Beyond M > N more experts delay convergence: the error is less far above its end at M = 10 than at 20.

    Compared is the mean over t = 20, 40, ... of how far the error is above the one at T. Where it ends is what the
    next sentence is about; behind a router that looks at nothing it rises to its end.""")(excess_of_fewer)


def error_of_fewer(fewer, more) -> np.ndarray:
    return ERROR(fewer)


no_worse = bound(at_most=lambda fewer, more: ERROR(more), margin=0.05)
AT_END = experiments.at_rounds(experiments.FIGURE_2.num_rounds)
NO_BETTER.competitor(
    "figure-2.more-experts-no-better-below", interventions.FIGURE_2_BELOW.together(*BELOW), no_worse, labels=AT_END
).says("With fewer experts than tasks, too, more do not improve the result: M = 1 ends no worse than M = 5.")(
    error_of_fewer
)
NO_BETTER.literal(
    "figure-2.more-experts-just-above",
    interventions.FIGURE_2_ABOVE.together(*map(experiments.cell_name, interventions.JUST_ABOVE)),
    no_worse,
    labels=AT_END,
).says("Just above N = 6, too, more experts do not improve the result: M = 7 ends no worse than M = 14, within 5 %.")(
    error_of_fewer
)
NO_BETTER.figure(
    "figure-2.more-experts-no-better",
    TEN_AND_TWENTY,
    no_worse,
    where="Sec. 6, Fig. 2 (c)",
    labels=AT_END,
).says("Beyond M > N more experts do not improve the result: M = 10 ends no worse than M = 20, within 5 %.")(
    error_of_fewer
)
