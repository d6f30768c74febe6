"""Lemma 16: the error of an arrival's expert, after T1 and up to T1."""

from collections.abc import Callable

import numpy as np

from moe_theory.continual import experiments, interventions, theory
from moe_theory.runs import Run
from moe_theory.verify.region import Size
from moe_theory.verify.statement import equality, identity, statement

ENDS = experiments.MANY_LARGEST + experiments.FEW_LARGEST
LARGEST = experiments.NO_TERMINATION.over(ENDS)

FROZEN = statement(
    "lemma-16-frozen",
    where="Lemma 16, first sentence",
    says=r"""After T1 a later task's error at its expert is what it was with that expert's model at T1.
    $$\|w_t^{(m_i)} - w_{n_i}\|^2 = \|w_{T_1}^{(m_i)} - w_{n_i}\|^2$$""",
    hypotheses=experiments.MORE,
    why="""It rests on Proposition 1, by which no expert moves after T1. Outputs are not ordered by task then, see Lemma
    15: tasks of all kinds go on reaching every expert, and each moves its model. That Lemma 3 fails, by which a repeat
    leaves a model as it is, is not the cause.""",
    instance="""M = 12, N = 6 orthonormal tasks, d = 8, s = 2: 0.5 T1 rounds after T1 the squared error of an arrival's
    expert has changed by 0.92, 0.99 and 1.01 sigma_0^2 in median at sigma_0 = 0.01, 0.001 and 0.0001; a truth's square
    is sigma_0^2.""",
    corrected=r"""A repeat leaves (d - s)/(d - 1) of the squared error in expectation.
    $$\mathbb{E}\left[\|w_t^{(m)} - w_n\|^2 \mid w_{t-1}^{(m)}\right] = \frac{d-s}{d-1} \|w_{t-1}^{(m)} - w_n\|^2$$""",
    witness="proposition_1.py",
    disproof="unseen_direction_models.py",
    derivation="signal_step.py",
)
HISTORY = statement(
    "lemma-16-history",
    where="Lemma 16, Eq. (42)",
    says=r"""Up to T1 the expected error of a task is a geometrically weighted mean over the truths that its expert has
    met.
    $$\mathbb{E}\|w_t^{(m_i)} - w_{n_i}\|^2 = r^{L_t^{(m_i)}} \mathbb{E}\|w_{n_i}\|^2 + \sum_{l=1}^{L_t^{(m_i)}} (1
    - r) r^{L_t^{(m_i)} - l} \mathbb{E}\|w_{\tau(l)} - w_{n_i}\|^2$$""",
    why="""The proof takes the projector P on an arrival's samples to be uniformly random, so that E P = (s/d) I. One of
    the samples is the signal beta v_n, which is always there: where v_n is proportional to w_n, it always shows the
    truth's own direction. Where signals have nothing to do with the truths a first arrival leaves r in mean, but a
    repeat leaves (d - s)/(d - 1): close to r, and not equal.""",
    instance="""d = 2, s = 1, one task, its signal at 45 degrees to its truth: the squared errors are 1/2, 1/2, 1/2, and
    (42) says 1/2, 1/4, 1/8. v_n = w_n, two unit truths of cosine -3/5: right after the first arrival its error is 0,
    and (42) says 1/2; after eight arrivals their mean error is 2.87, and (42) says 1.40.""",
    corrected=r"""In a step the signal's direction u is learned for sure and the rest at random, with Pi = I - u u'.
    $$\mathbb{E}\|w_t - w_i\|^2 = \frac{d-s}{d-1} \|\Pi (w_{t-1} - w_i)\|^2 + \|w_{n_t} - w_i\|^2 - \frac{d-s}{d-1}
    \|\Pi (w_{n_t} - w_i)\|^2$$""",
    witness="lemma_16.py",
    disproof="repeated_signal_history.py",
    derivation="signal_step.py",
    free=(Size("num_samples", 1, 9), experiments.FREE_NOISE, experiments.FREE_BETA),
)
FROZEN.also("proposition-1.contraction", role="corrected")


@FROZEN.charitable(
    "lemma-16.distance",
    experiments.SPECIALIZATION.over(experiments.MANY_CELLS),
    identity(within=1e-3),
    instead="proposition-1.contraction",
).says("""After T1 the squared error of an arrival's expert is what it was at T1 for that arrival's truth; M > N.

    The largest change over rounds, over the truths' mean square.""")
@FROZEN.intervention(
    "lemma-16.distance-apart",
    interventions.LEARNED_APART.over(experiments.MANY_SMALLEST),
    identity(within=1e-3),
).says("Without a start from level gates (outputs sigma_0^0.5 higher for own tasks) it is what it was at T1.")
@FROZEN.suspect(
    "lemma-16.distance-at-once",
    interventions.LEARNED_AT_ONCE.over(experiments.MANY_SMALLEST),
    identity(within=1e-3),
).says("Without slow learning (an expert learns the whole truth at once: Lemma 3 holds) it is what it was at T1.")
def largest_distance_change(run) -> np.ndarray:
    return (
        run.records.distance_change[experiments.stage_rounds(run.params) :].max(axis=0)
        / experiments.truth_length(run) ** 2
    )


def history(run) -> np.ndarray:
    rows = slice(experiments.stage_rounds(run.params))
    truths = run.state.pool.truths.astype(np.float64)
    ratio = theory.overparameterization_ratio(run.dims.num_features, run.dims.num_samples)
    return theory.lemma_16(run.records.task[rows], run.records.expert[rows], truths, ratio)


@HISTORY.charitable("lemma-16.history", LARGEST, equality(history, margin=0.02), instead="lemma-16.step").says(
    "At T1 the arrivals' mean squared error is that of (42), from the truths that each expert has met in order."
)
@HISTORY.intervention(
    "lemma-16.history-gaussian", interventions.EXPLORED.over(ENDS), equality(history, margin=0.02)
).says("Without the signal among the samples (all are Gaussian) the mean squared error at T1 is that of (42).")
@HISTORY.suspect(
    "lemma-16.history-blind", interventions.EXPLORED_BLINDLY.over(ENDS), equality(history, margin=0.02)
).says("Without routes that depend on the features (lambda = 1,000) the mean squared error at T1 is that of (42).")
def explored_error(run) -> np.ndarray:
    return experiments.explored(run, "generalization_error")[-1]


def explored_mean(name: str) -> Callable[[Run], np.ndarray]:
    return lambda run: getattr(run.records, name)[: experiments.stage_rounds(run.params)].mean(axis=0, dtype=np.float64)


HISTORY.replacement(
    "lemma-16.step", LARGEST, equality(explored_mean("step_expected"), margin=0.02)
).says("""A step's expected squared distance to every truth, with the signal learned for sure and the rest at random.

    The signal's direction u is always among the s samples; the others project inside its complement. Means over the
    rounds up to T1 and over all truths w_i; Pi = I - u u'.""")(explored_mean("step_error"))
