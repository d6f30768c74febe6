"""Proposition 3, when the gates are fixed and how they route then, and Lemma 16, the experts' errors."""

import numpy as np

from moe_theory.continual import theory
from moe_theory.continual.claims import stages
from moe_theory.continual.claims.stages import (
    FEW_LARGEST,
    FEW_OWN,
    FEW_SMALLEST,
    MANY_CELLS,
    MANY_LARGEST,
    MANY_OWN,
    MANY_SMALLEST,
    ROOT_TERMINATION,
    likely,
)
from moe_theory.continual.claims.values import FAILURE, named, over
from moe_theory.continual.specialisation import LEARNING, SCALE_DIMS, SETTLING, stage_rounds
from moe_theory.runs import Run
from moe_theory.verify.claim import claim

SHARE_MARGIN = 0.1  # of a share 1/|M_n|
EXTREMES = MANY_SMALLEST + FEW_SMALLEST + MANY_OWN + FEW_OWN


def _is_terminated(run: Run) -> np.ndarray:
    """Whether the gates are no longer updated after round T2."""
    return run.records.terminated[stage_rounds(run.params, ROOT_TERMINATION)]


@claim("continual.proposition-3.time", paper="continual", where="Proposition 3, T2", kind="probability")
class Proposition3Time:
    """The gates are fixed from T2 = ceil(M/eta sigma_0^(-1/4)) on, but for delta; the constant of O() is read as 1."""

    formula = r"T_2 = \mathcal{O}(\eta^{-1} \sigma_0^{-0.25} M)"
    experiment = SETTLING
    side = "at_least"
    labels = named(*MANY_SMALLEST, *FEW_SMALLEST)
    observe = over(MANY_SMALLEST + FEW_SMALLEST, _is_terminated)
    predict = likely


@claim("continual.proposition-3.time-own", paper="continual", where="Proposition 3, T2", kind="probability")
class Proposition3TimeOwn:
    """At Fig. 2's sigma_0 = 0.4, a point that refutes no O(), its constant read as 1, gates are fixed from T2 on.

    With probability at least 1 - delta. O() is about the limit of small sigma_0, which says nothing of a single point.
    """

    formula = r"T_2 = \mathcal{O}(\eta^{-1} \sigma_0^{-0.25} M), \quad \sigma_0 = 0.4"
    experiment = SETTLING
    side = "at_least"
    labels = named(*MANY_OWN, *FEW_OWN)
    observe = over(MANY_OWN + FEW_OWN, _is_terminated)
    predict = likely


def _fixed(run: Run) -> np.ndarray:
    """Arrivals past T2 with the gates fixed, whose set is not empty (T, B)."""
    is_late = run.rounds > stage_rounds(run.params, ROOT_TERMINATION)
    return run.records.terminated & is_late[:, None] & (run.records.set_size >= 1)


def _share(happens: np.ndarray) -> np.ndarray:
    """How often something happens, or how much of it, a round (B,)."""
    return np.asarray(np.mean(happens, axis=0, dtype=np.float64))


def _outside(run: Run) -> np.ndarray:
    return _share(_fixed(run) & ~run.records.is_inside)


def _tolerated_outside(run: Run) -> np.ndarray:
    return FAILURE * _share(_fixed(run))


def _contested(run: Run) -> np.ndarray:
    """Arrivals past termination with at least two experts in their set."""
    return _fixed(run) & (run.records.set_size >= 2)


def _leader(run: Run) -> np.ndarray:
    return _share(_contested(run) & run.records.led)


def _even_share(run: Run) -> np.ndarray:
    return _share(_contested(run) / np.maximum(run.records.set_size, 1))


def _bounded_share(run: Run) -> np.ndarray:
    gap = run.records.own_gap.astype(np.float64) / float(run.params.perturbation_scale)
    return _share(_contested(run) * np.minimum(1 / np.maximum(run.records.set_size, 1) + gap, 1))


@claim(
    "continual.proposition-3.inside-tasks",
    paper="continual",
    where="Proposition 3, and its full version, case 1",
    kind="upper_bound",
)
class Proposition3InsideTasks:
    """With M > N, once the gates are fixed at most a fraction delta of arrivals goes outside the task's set.

    Arrivals past T2 with the gates fixed, whose set is not empty, as shares of all rounds; so is what is allowed.
    """

    formula = r"\mathbb{P}(m_t \notin \mathcal{M}_{n_t}) \leq \delta, \quad t > T_2"
    experiment = SETTLING
    labels = named(*MANY_SMALLEST)
    observe = over(MANY_SMALLEST, _outside)
    predict = over(MANY_SMALLEST, _tolerated_outside)


@claim(
    "continual.proposition-3.inside-clusters",
    paper="continual",
    where="Proposition 3, full version, case 2",
    kind="upper_bound",
)
class Proposition3InsideClusters:
    """With M < N, once the gates are fixed at most a fraction delta of arrivals goes outside the cluster's set."""

    formula = r"\mathbb{P}(m_t \notin \mathcal{M}_k) \leq \delta, \quad t > T_2"
    experiment = SETTLING
    labels = named(*FEW_SMALLEST)
    observe = over(FEW_SMALLEST, _outside)
    predict = over(FEW_SMALLEST, _tolerated_outside)


@claim(
    "continual.proposition-3.inside-own",
    paper="continual",
    where="Proposition 3, full version",
    kind="upper_bound",
)
class Proposition3InsideOwn:
    """At Fig. 2's sigma_0 = 0.4, a point that refutes no O(), its constant read as 1, past T2 few leave their set.

    Both cases, at most a fraction delta of arrivals. O() is about the limit of small sigma_0, not of a single point.
    """

    formula = r"\mathbb{P}(m_t \notin \mathcal{M}_{n_t}) \leq \delta, \quad t > T_2, \sigma_0 = 0.4"
    experiment = SETTLING
    labels = named(*MANY_OWN, *FEW_OWN)
    observe = over(MANY_OWN + FEW_OWN, _outside)
    predict = over(MANY_OWN + FEW_OWN, _tolerated_outside)


@claim(
    "continual.proposition-3.uniform-tasks",
    paper="continual",
    where="Proposition 3, and its full version, case 1",
    kind="equality",
    margin=SHARE_MARGIN,
    replaced_by="continual.proposition-3.leader",
)
class Proposition3UniformTasks:
    """With M > N, once the gates are fixed a set's expert of highest gate output is chosen as often as any, 1/|M_n|.

    Over arrivals past T2 with at least two experts in the set, as shares of all rounds.
    """

    formula = r"\mathbb{P}(m_t = m \mid m \in \mathcal{M}_{n_t}) = \frac{1}{|\mathcal{M}_{n_t}|}, \quad t > T_2"
    experiment = SETTLING
    labels = named(*MANY_SMALLEST)
    observe = over(MANY_SMALLEST, _leader)
    predict = over(MANY_SMALLEST, _even_share)


@claim(
    "continual.proposition-3.uniform-clusters",
    paper="continual",
    where="Proposition 3, full version, case 2",
    kind="equality",
    margin=SHARE_MARGIN,
    replaced_by="continual.proposition-3.leader",
)
class Proposition3UniformClusters:
    """With M < N, once the gates are fixed a set's expert of highest gate output is chosen as often as any, 1/|M_k|."""

    formula = r"\mathbb{P}(m_t = m \mid m \in \mathcal{M}_k) = \frac{1}{|\mathcal{M}_k|}, \quad t > T_2"
    experiment = SETTLING
    labels = named(*FEW_SMALLEST)
    observe = over(FEW_SMALLEST, _leader)
    predict = over(FEW_SMALLEST, _even_share)


@claim(
    "continual.proposition-3.uniform-own",
    paper="continual",
    where="Proposition 3, full version",
    kind="equality",
    margin=SHARE_MARGIN,
    replaced_by="continual.proposition-3.leader",
)
class Proposition3UniformOwn:
    """At Fig. 2's sigma_0 = 0.4, a point that refutes no O(), its constant read as 1, a leader past T2 has 1/|M_n|.

    Both cases, of the arrivals of its set. O() is about the limit of small sigma_0, not of a single point.
    """

    formula = r"\mathbb{P}(m_t = m \mid m \in \mathcal{M}_{n_t}) = \frac{1}{|\mathcal{M}_{n_t}|}, \quad \sigma_0 = 0.4"
    experiment = SETTLING
    labels = named(*MANY_OWN, *FEW_OWN)
    observe = over(MANY_OWN + FEW_OWN, _leader)
    predict = over(MANY_OWN + FEW_OWN, _even_share)


@claim(
    "continual.proposition-3.leader",
    paper="continual",
    where="replaces Proposition 3, identical probabilities",
    kind="upper_bound",
)
class Proposition3Leader:
    """Once the gates are fixed a set's leader is chosen with chance 1/|M_n| plus the set's gap over lambda, at most.

    The density of r_m is 1/lambda: to close a gap moves the chance to win by the gap over lambda or less.
    """

    formula = (
        r"\mathbb{P}(m_t = m) \leq \frac{1}{|\mathcal{M}_{n_t}|} + "
        r"\frac{1}{\lambda} \max_{m, m' \in \mathcal{M}_{n_t}} |h_m - h_{m'}|"
    )
    experiment = SETTLING
    labels = named(*EXTREMES)
    observe = over(EXTREMES, _leader)
    predict = over(EXTREMES, _bounded_share)
    trivial = over(EXTREMES, lambda run: _share(_contested(run)))


def _largest_distance_change(run: Run) -> np.ndarray:
    return run.records.distance_change[stages.explored(run) :].max(axis=0) / stages.truth_length(run) ** 2


@claim(
    "continual.lemma-16.distance",
    paper="continual",
    where="Lemma 16, first sentence",
    kind="identity",
    margin=1e-3,
    replaced_by="continual.proposition-1.contraction",
)
class Lemma16Distance:
    """After T1 the squared error of an arrival's expert is what it was at T1 for that arrival's truth; M > N.

    The largest change over rounds, over the truths' mean square.
    """

    formula = r"\|w_t^{(m_i)} - w_{n_i}\|^2 = \|w_{T_1}^{(m_i)} - w_{n_i}\|^2"
    experiment = SETTLING
    labels = named(*MANY_CELLS)
    observe = over(MANY_CELLS, _largest_distance_change)


def history_error(tasks: np.ndarray, experts: np.ndarray, truths: np.ndarray) -> np.ndarray:
    """The mean over arrivals of the right side of (42), from tasks and experts (T, B) and truths (N, d, B)."""
    ratio = theory.overparameterization_ratio(SCALE_DIMS.num_features, SCALE_DIMS.num_samples)
    met = np.take_along_axis(truths, tasks[:, None, :], axis=0)
    together = experts[:, None] == experts[None, :]
    loads = together.sum(axis=1)
    later = np.triu(np.ones(together.shape[:2]), 1)[:, :, None] * together
    weights = (1 - ratio) * ratio ** later.sum(axis=1)  # of the arrival in row l, for its L - l successors
    distances = np.sum((met[:, None] - met[None, :]) ** 2, axis=2)
    errors = ratio**loads * np.sum(met**2, axis=1) + np.sum(together * weights[:, None] * distances, axis=0)
    return errors.mean(axis=0)


def _history(run: Run) -> np.ndarray:
    rows = slice(stages.explored(run))
    truths = run.state.pool.truths.astype(np.float64)
    return history_error(run.records.task[rows], run.records.expert[rows], truths)


def _explored_error(run: Run) -> np.ndarray:
    return run.records.generalization_error[stages.explored(run) - 1].astype(np.float64)


def _explored_mean(name: str):
    """The mean of a recorded number over the rounds up to T1."""
    return lambda run: getattr(run.records, name)[: stages.explored(run)].mean(axis=0, dtype=np.float64)


@claim(
    "continual.lemma-16.history",
    paper="continual",
    where="Lemma 16, Eq. (42)",
    kind="equality",
    margin=0.02,
    replaced_by="continual.lemma-16.step",
)
class Lemma16History:
    """At T1 the arrivals' mean squared error is that of (42), from the truths that each expert has met in order."""

    formula = (
        r"\mathbb{E}\|w_t^{(m_i)} - w_{n_i}\|^2 = r^{L_t^{(m_i)}} \mathbb{E}\|w_{n_i}\|^2 + "
        r"\sum_{l=1}^{L_t^{(m_i)}} (1 - r) r^{L_t^{(m_i)} - l} \mathbb{E}\|w_{\tau(l)} - w_{n_i}\|^2"
    )
    experiment = LEARNING
    labels = named(*MANY_LARGEST, *FEW_LARGEST)
    observe = over(MANY_LARGEST + FEW_LARGEST, _explored_error)
    predict = over(MANY_LARGEST + FEW_LARGEST, _history)


@claim("continual.lemma-16.step", paper="continual", where="replaces Lemma 16, Eq. (42)", kind="equality", margin=0.02)
class Lemma16Step:
    """A step's expected squared distance to every truth, with the signal learned for sure and the rest at random.

    The signal's direction u is always among the s samples; the others project inside its complement. Means over the
    rounds up to T1 and over all truths w_i; Pi = I - u u'.
    """

    formula = (
        r"\mathbb{E}\|w_t - w_i\|^2 = \frac{d-s}{d-1} \|\Pi (w_{t-1} - w_i)\|^2 + \|w_{n_t} - w_i\|^2 "
        r"- \frac{d-s}{d-1} \|\Pi (w_{n_t} - w_i)\|^2"
    )
    experiment = LEARNING
    labels = named(*MANY_LARGEST, *FEW_LARGEST)
    observe = over(MANY_LARGEST + FEW_LARGEST, _explored_mean("step_error"))
    predict = over(MANY_LARGEST + FEW_LARGEST, _explored_mean("step_expected"))
