"""Proposition 1: experts keep their sets after exploration, and their models.

Tasks (M > N) are six unrelated ones, clusters (M < N) three pairs. Sets are those of (11) at the gates that route.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.theory import error_contraction
from moe_theory.runs import Run
from moe_theory.verify.claim import Selection
from moe_theory.verify.statement import Criterion, Declared, bound, equality, limit_rate, statement

UNCHANGED = 1e-3  # of the truths' root mean square: what counts as no move in float32
HARDLY = 0.9  # of the error of random tasks: what counts as no specialisation
LEARNED = 1e-4  # of the truths' mean square: squared errors below are too near to rounding for a ratio
MANY = experiments.LIMIT_MANY
FEW = experiments.LIMIT_FEW
SMALLEST = MANY.experiment.at(experiments.specialization_cell(experiments.MANY_EXPERTS, experiments.LIMIT_SCALES[0]))
EMPTY = """It holds in the limit, and for a reason that says little: Algorithm 1 fixes nearly all gates within a few
rounds of T1, and what is fixed cannot change. What the sets are worth is another matter, see (34) and Proposition 3."""
THRESHOLD = """Early termination fixes the gates within a few rounds of T1 where Gamma is above a step of the gates, and
with alpha = o(sigma_0^0.75), which leaves all outputs within Gamma = Theta(sigma_0^1.25), at once. Algorithm 1 asks for
O(sigma_0^1.25): below a step of the gates each move of a model after T1 may change its expert's set."""
FLIPS = """Two opposite tasks, M = 3, alpha = sigma_0^1.5, Gamma = sigma_0^2: round T1 + 1 changes a set with chance
1/4, whatever sigma_0."""
DRIFTS = """M = 12 and N = 6 orthonormal tasks (for M < N 24 in six clusters), d = 8, s = 2: within T1/2 rounds after T1
some model drifts by at least 1.1, 1.2 and 1.25 sigma_0 in each run, at sigma_0 = 0.01, 0.001 and 0.0001."""

UNEARNED = {  # without what the sets are put down to
    "unexplored": ("small random gates at T1, after no exploration", interventions.UNEXPLORED),
    "open": ("gates that are never fixed", interventions.OPEN),
}

TASK_SETS = statement(
    "proposition-1-more-experts-set",
    where="Proposition 1 (M > N version)",
    says=r"""From T1 on every expert keeps the one task it specialises in, except with vanishing probability.
    $$\mathbb{P}\left(m \in \mathcal{M}_n \text{ for all } t > T_1\right) \geq 1 - \delta$$""",
    hypotheses=[*experiments.MORE, experiments.PAST_T1, experiments.SMALL_TRUTHS],
    disproof="small_threshold_sets.py",
    amendment="Gamma = Theta(sigma_0^1.25) and, unless signals are orthogonal, alpha = o(sigma_0^0.75)",
    free=(experiments.FREE_SIGNALS, *experiments.FREE),
    why=THRESHOLD,
    instance=FLIPS,
    note=EMPTY,
)
TASK_MODELS = statement(
    "proposition-1-more-experts-model",
    where="Proposition 1 (M > N version)",
    witness="proposition_1.py",
    disproof="opposite_truths_drift.py",
    says=r"""With more experts than tasks no expert's model moves any more after T1.
    $$w_{T_1+1}^{(m)} = \cdots = w_T^{(m)}$$""",
    hypotheses=[experiments.PAST_T1],
    why="""The proof supposes that after T1 an expert gets tasks of its own set only. Outputs are not ordered by task
    then, see (35) and Lemma 15: tasks of all kinds go on reaching every expert, and each moves its model. That Lemma 3
    fails is not the cause.""",
    instance=DRIFTS,
    corrected=r"""A repeat leaves (d - s)/(d - 1) of an expert's squared error in expectation, so that models settle
    slowly.
    $$\mathbb{E}\left[\|w_t^{(m)} - w_n\|^2 \mid w_{t-1}^{(m)}\right] = \frac{d-s}{d-1} \|w_{t-1}^{(m)} - w_n\|^2$$""",
    note="""With one sample and orthogonal signals it holds, but for chance o(1): see the disproof of (20), by which
    every expert has met every task by T1, and then nothing is left to move. With a baseline in (6),
    continual.baseline.repaired, and orthogonal signals each task gets an expert of its own, and experts that learn at
    once never move again: reinforced.absorption has the proof.""",
)
CLUSTER_SETS = TASK_SETS.twin(
    "proposition-1-fewer-experts-set",
    where="Proposition 1 (full version, M < N)",
    says=r"""With fewer experts than tasks every expert keeps, from T1 on, the one cluster it specialises in.
    $$\mathbb{P}\left(m \in \mathcal{M}_k \text{ for all } t > T_1\right) \geq 1 - \delta$$""",
    hypotheses=[*experiments.FEWER, experiments.PAST_T1, experiments.SMALL_TRUTHS],
)
CLUSTER_MODELS = TASK_MODELS.twin(
    "proposition-1-fewer-experts-model",
    where="Proposition 1 (full version, M < N)",
    says=r"""With fewer experts than tasks an expert's model stays within O(sigma_0^1.5), in every entry, of what it is
    just after T1.
    $$\|w_t^{(m)} - w_{T_1+1}^{(m)}\|_\infty = \mathcal{O}(\sigma_0^{1.5})$$""",
    hypotheses=[*experiments.FEWER, experiments.PAST_T1],
    why="""The proof bounds a model's move after T1 by the distances inside its cluster, as if the expert got tasks of
    that cluster only. Outputs are not ordered by cluster at T1, see Lemma 15: tasks of all clusters go on reaching
    every expert, and move it by order sigma_0. That Lemma 3 fails is not the cause.""",
    note="",
)
CLUSTER_MODELS.also("proposition-1.contraction", role="corrected")


@TASK_SETS.charitable(
    "proposition-1.sets-tasks", MANY, experiments.LIKELY, where="Proposition 1, and its full version, case 1"
).says("With M > N, every expert keeps its task's set in all rounds after T1, with probability 1 - o(1).")
@CLUSTER_SETS.charitable(
    "proposition-1.sets-clusters", FEW, experiments.LIKELY, where="Proposition 1, full version, case 2"
).says("With M < N, every expert keeps its cluster's set in all rounds after T1, with probability 1 - o(1).")
def is_always_stable(run) -> np.ndarray:
    return run.state.is_stable


def claim_competitors(
    measure: Callable[[Run], np.ndarray],
    cases: Mapping[str, Declared],
    rivals: Mapping[str, tuple[str, Sequence[Selection]]],
    does: str,
    criterion: Criterion = experiments.LIKELY,
) -> None:
    """That each rival, by name in words and on its runs with M > N and M < N, does likely what a statement's two cases,
    by the ids of their claims, say of Algorithm 1.
    """
    for name, (words, runs) in rivals.items():
        for (id, case), relation, own in zip(cases.items(), "><", runs, strict=True):
            says = f"With M {relation} N and {words}, {does}."
            case.competitor(f"{id}-{name}", own, criterion).says(says)(measure)


claim_competitors(
    is_always_stable,
    {"proposition-1.sets-tasks": TASK_SETS, "proposition-1.sets-clusters": CLUSTER_SETS},
    UNEARNED,
    "every expert keeps its set after T1, with probability 1 - o(1)",
)


@TASK_MODELS.charitable(
    "proposition-1.unchanged",
    MANY,
    experiments.LIKELY,
    where="Proposition 1, and its full version, case 1",
    hypotheses=experiments.MORE,
    instead="proposition-1.contraction",
).says("""With M > N, no expert moves after round T1 + 1, with probability 1 - o(1).

    No move is one of at most a thousandth of the truths' root mean square, in every entry.""")
@TASK_MODELS.intervention(
    "proposition-1.unchanged-apart", interventions.APART_MANY, experiments.LIKELY, hypotheses=experiments.MORE
).says("Without a start from level gates (outputs sigma_0^0.5 higher for own tasks) no expert moves after T1 + 1.")
@TASK_MODELS.suspect(
    "proposition-1.unchanged-at-once", interventions.AT_ONCE_MANY, experiments.LIKELY, hypotheses=experiments.MORE
).says("Without slow learning (an expert learns the whole truth at once: Lemma 3 holds) no expert moves after T1 + 1.")
def is_unchanged(run) -> np.ndarray:
    return run.state.drift <= UNCHANGED * experiments.truth_length(run)


@CLUSTER_MODELS.charitable(
    "proposition-1.drift",
    FEW,
    limit_rate(at_least=1.5),
    where="Proposition 1, full version, case 2",
    instead="proposition-1.contraction",
).says("With M < N, every expert stays within O(sigma_0^1.5) of what it was at round T1 + 1, in all later rounds.")
@CLUSTER_MODELS.intervention("proposition-1.drift-apart", interventions.APART_FEW, limit_rate(at_least=1.5)).says(
    "Without a start from level gates (outputs sigma_0^0.5 higher for own clusters) experts stay within O(sigma_0^1.5)."
)
@CLUSTER_MODELS.suspect("proposition-1.drift-at-once", interventions.AT_ONCE_FEW, limit_rate(at_least=1.5)).says(
    "Without slow learning (an expert learns a whole truth at once: Lemma 3 holds) experts stay within O(sigma_0^1.5)."
)
def largest_drift(run) -> np.ndarray:
    return run.state.drift


def late_repeats(run) -> tuple[np.ndarray, np.ndarray]:
    """Where past T1 an expert repeats a task that it has not learned up to rounding, and its squared error before."""
    # A move is orthogonal to what it leaves, so the squared error before it is the sum of both squares.
    before = run.records.error + run.records.update_norm.astype(np.float64) ** 2
    repeats = experiments.repeats_of(run) & (before > LEARNED * experiments.truth_length(run) ** 2)
    repeats[: experiments.stage_rounds(run.params)] = False
    return repeats, before


def contracted_errors(run) -> np.ndarray:
    contraction = error_contraction(
        experiments.SPECIALIZATION.dims.num_features, experiments.SPECIALIZATION.dims.num_samples
    )
    return contraction * np.sum(late_repeats(run)[0], axis=0)


@TASK_MODELS.replacement(
    "proposition-1.contraction",
    experiments.SPECIALIZATION.over(experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2),
    equality(contracted_errors, margin=0.02),
    where="replaces Proposition 1 and Lemma 12",
)
def remaining_errors(run) -> np.ndarray:
    """After T1 a repeat of an expert's last task leaves (d - s)/(d - 1) of its squared error, in expectation.

    Sums over repeats of what is left, as a fraction, where the error before is not down to rounding."""
    repeats, before = late_repeats(run)
    return np.sum(np.where(repeats, run.records.error / np.where(repeats, before, 1), 0), axis=0)


@TASK_SETS.step(
    "proposition-1.order-tasks", MANY, experiments.LIKELY, where="Proposition 1, proof: Eq. (34), M > N"
).says(r"""With M > N, after T1 for each task's signal the experts of its set are above all others, but for o(1).
    $$\pi_m(X_n, \Theta_{T_1}) > \pi_{m'}(X_n, \Theta_{T_1}), \quad m \in \mathcal{M}_n, m' \in \mathcal{M}_{n'}$$""")
@CLUSTER_SETS.step(
    "proposition-1.order-clusters", FEW, experiments.LIKELY, where="Proposition 1, proof: Eq. (34), M < N"
).says(r"""With M < N, after T1 for each signal the experts of its cluster's set are above all others, but for o(1).
    $$\pi_m(X_k, \Theta_{T_1}) > \pi_{m'}(X_k, \Theta_{T_1}), \quad m \in \mathcal{M}_k, m' \in \mathcal{M}_{k'}$$""")
def is_ordered_after_exploration(run) -> np.ndarray:
    return run.state.was_ordered


EQUATION_35 = statement(
    "equation-35",
    where="Proof of Proposition 1, Eq. (35)",
    witness="proposition_2.py",
    disproof="equation_35.py",
    says=r"""After exploration an expert's probabilities for two tasks differ by at least the order sigma_0^0.5.
    $$|\pi_m(X_n, \Theta_t) - \pi_m(X_{n'}, \Theta_t)| = \Omega(\sigma_0^{0.5})$$""",
    hypotheses=experiments.MORE,
    why="""The line above it bounds the difference of the gate outputs by O(sigma_0^0.5), from Lemma 6. Lemma 10 then
    compares probabilities with outputs, and the upper bound comes out as a lower one. The gates are smaller than the
    bound: T1 = M/eta steps of eta times a gradient of O(sigma_0) leave entries of O(sigma_0), up to a logarithm.""",
    instance="M = 6, N = 3: of all experts and tasks the largest is .12 to .13 sigma_0, from sigma_0 = .1 to .0001.",
    corrected=r"""For truths of size O(sigma_0), as the proof of Lemma 5 has them, it is at most of order sigma_0, up to
    a logarithm: three lines from Lemma 5.
    $$|\pi_m(X_n, \Theta_t) - \pi_m(X_{n'}, \Theta_t)| = \mathcal{O}(\sigma_0 \log(1/\sigma_0))$$""",
)


@EQUATION_35.charitable("equation-35", MANY, limit_rate(at_most=0.5), instead="equation-35.order").says(r"""
    With M > N, the largest difference of an expert's probabilities for two tasks, at T1 + 1, is of order sigma_0^0.5.
    $$\max_{m, n, n'} |\pi_m(X_n, \Theta_t) - \pi_m(X_{n'}, \Theta_t)| = \Omega(\sigma_0^{0.5})$$""")
@EQUATION_35.replacement("equation-35.order", MANY, limit_rate(at_least=1.0)).says(r"""
    With M > N, that difference is of order sigma_0 or less, up to a logarithm.
    $$\max_{m, n, n'} |\pi_m(X_n, \Theta_t) - \pi_m(X_{n'}, \Theta_t)| = \mathcal{O}(\sigma_0 \log(1/\sigma_0))$$""")
def largest_probability_gap(run) -> np.ndarray:
    return run.state.probability_gap


def most_of_random(run) -> np.ndarray:
    return HARDLY * experiments.task_gap(run)


@EQUATION_35.ours("equation-35.nothing-specialises", SMALLEST, bound(at_least=most_of_random))
def last_error(run) -> np.ndarray:
    r"""In the paper's own limit nothing specialises: the error stays near that of random routing, at least 0.9 Delta.

    A step of the gates moves an output by the gate drive, of order sigma_0^1.5, and chance by lambda, of order
    sigma_0^1.25: their ratio goes to 0. Delta is the mean squared distance of two random tasks.
    At sigma_0 = 1e-6.
    $$\mathbb{E}[G_T] \geq 0.9\, \Delta, \quad \sigma_0 \to 0$$"""
    return run.records.generalization_error[-1]
