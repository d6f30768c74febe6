"""Proposition 3, when the gates are fixed and how they route then, and Lemma 16, the experts' errors."""

import numpy as np

from moe_theory.continual import experiments, theory
from moe_theory.continual.claims.measurements import FAILURE, claim, exploration, per_cell, probable, truth_length
from moe_theory.runs import Run
from moe_theory.verify.claim import over

SHARE_MARGIN = 0.1  # of a share 1/|M_n|
EXTREMES = experiments.MANY_SMALLEST + experiments.FEW_SMALLEST + experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2


def _is_terminated(run: Run) -> np.ndarray:
    return run.records.terminated[experiments.stage_rounds(run.params, experiments.T2_POWER)]


@probable("continual.proposition-3.time", where="Proposition 3, T2")
class Proposition3Time:
    """The gates are fixed from T2 = ceil(M/eta sigma_0^(-1/4)) on, but for delta; the constant of O() is read as 1."""

    formula = r"T_2 = \mathcal{O}(\eta^{-1} \sigma_0^{-0.25} M)"
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.MANY_SMALLEST + experiments.FEW_SMALLEST, _is_terminated)


@probable("continual.proposition-3.time-own", where="Proposition 3, T2")
class Proposition3TimeOwn:
    """At Fig. 2's sigma_0 = 0.4, a point that refutes no O(), its constant read as 1, gates are fixed from T2 on.

    With probability at least 1 - delta. O() is about the limit of small sigma_0, which says nothing of a single point.
    """

    formula = r"T_2 = \mathcal{O}(\eta^{-1} \sigma_0^{-0.25} M), \quad \sigma_0 = 0.4"
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2, _is_terminated)


def _fixed(run: Run) -> np.ndarray:
    """Arrivals past T2 with the gates fixed, whose set is not empty (T, B)."""
    is_late = run.rounds > experiments.stage_rounds(run.params, experiments.T2_POWER)
    return run.records.terminated & is_late[:, None] & (run.records.set_size >= 1)


def _share(happens: np.ndarray) -> np.ndarray:
    return np.asarray(np.mean(happens, axis=0, dtype=np.float64))


def _outside(run: Run) -> np.ndarray:
    return _share(_fixed(run) & ~run.records.is_inside)


def _tolerated_outside(run: Run) -> np.ndarray:
    return FAILURE * _share(_fixed(run))


def _contested(run: Run) -> np.ndarray:
    return _fixed(run) & (run.records.set_size >= 2)


def _leader(run: Run) -> np.ndarray:
    return _share(_contested(run) & run.records.led)


def _even_share(run: Run) -> np.ndarray:
    return _share(_contested(run) / np.maximum(run.records.set_size, 1))


def _bounded_share(run: Run) -> np.ndarray:
    gap = run.records.own_gap.astype(np.float64) / float(run.params.perturbation_scale)
    return _share(_contested(run) * np.minimum(1 / np.maximum(run.records.set_size, 1) + gap, 1))


@claim("continual.proposition-3.inside-tasks", where="Proposition 3, and its full version, case 1", kind="upper_bound")
class Proposition3InsideTasks:
    """With M > N, once the gates are fixed at most a fraction delta of arrivals goes outside the task's set.

    Arrivals past T2 with the gates fixed, whose set is not empty, as shares of all rounds; so is what is allowed.
    """

    formula = r"\mathbb{P}(m_t \notin \mathcal{M}_{n_t}) \leq \delta, \quad t > T_2"
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.MANY_SMALLEST, _outside)
    predict = over(experiments.MANY_SMALLEST, _tolerated_outside)


@claim("continual.proposition-3.inside-clusters", where="Proposition 3, full version, case 2", kind="upper_bound")
class Proposition3InsideClusters:
    """With M < N, once the gates are fixed at most a fraction delta of arrivals goes outside the cluster's set."""

    formula = r"\mathbb{P}(m_t \notin \mathcal{M}_k) \leq \delta, \quad t > T_2"
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.FEW_SMALLEST, _outside)
    predict = over(experiments.FEW_SMALLEST, _tolerated_outside)


@claim("continual.proposition-3.inside-own", where="Proposition 3, full version", kind="upper_bound")
class Proposition3InsideOwn:
    """At Fig. 2's sigma_0 = 0.4, a point that refutes no O(), its constant read as 1, past T2 few leave their set.

    Both cases, at most a fraction delta of arrivals. O() is about the limit of small sigma_0, not of a single point.
    """

    formula = r"\mathbb{P}(m_t \notin \mathcal{M}_{n_t}) \leq \delta, \quad t > T_2, \sigma_0 = 0.4"
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2, _outside)
    predict = over(experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2, _tolerated_outside)


@claim(
    "continual.proposition-3.uniform-tasks",
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
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.MANY_SMALLEST, _leader)
    predict = over(experiments.MANY_SMALLEST, _even_share)


@claim(
    "continual.proposition-3.uniform-clusters",
    where="Proposition 3, full version, case 2",
    kind="equality",
    margin=SHARE_MARGIN,
    replaced_by="continual.proposition-3.leader",
)
class Proposition3UniformClusters:
    """With M < N, once the gates are fixed a set's expert of highest gate output is chosen as often as any, 1/|M_k|."""

    formula = r"\mathbb{P}(m_t = m \mid m \in \mathcal{M}_k) = \frac{1}{|\mathcal{M}_k|}, \quad t > T_2"
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.FEW_SMALLEST, _leader)
    predict = over(experiments.FEW_SMALLEST, _even_share)


@claim(
    "continual.proposition-3.uniform-own",
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
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2, _leader)
    predict = over(experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2, _even_share)


@claim("continual.proposition-3.leader", where="replaces Proposition 3, identical probabilities", kind="upper_bound")
class Proposition3Leader:
    """Once the gates are fixed a set's leader is chosen with chance 1/|M_n| plus the set's gap over lambda, at most.

    The density of r_m is 1/lambda: to close a gap moves the chance to win by the gap over lambda or less.
    """

    formula = (
        r"\mathbb{P}(m_t = m) \leq \frac{1}{|\mathcal{M}_{n_t}|} + "
        r"\frac{1}{\lambda} \max_{m, m' \in \mathcal{M}_{n_t}} |h_m - h_{m'}|"
    )
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(EXTREMES, _leader)
    predict = over(EXTREMES, _bounded_share)
    trivial = over(EXTREMES, lambda run: _share(_contested(run)))


@claim(
    "continual.lemma-16.distance",
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
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(
        experiments.MANY_CELLS,
        lambda run: run.records.distance_change[exploration(run).stop :].max(axis=0) / truth_length(run) ** 2,
    )


def _history(run: Run) -> np.ndarray:
    rows = exploration(run)
    truths = run.state.pool.truths.astype(np.float64)
    ratio = theory.overparameterization_ratio(
        experiments.NO_TERMINATION.dims.num_features, experiments.NO_TERMINATION.dims.num_samples
    )
    return theory.lemma_16(run.records.task[rows], run.records.expert[rows], truths, ratio)


def _explored_mean(name: str):
    return lambda run: getattr(run.records, name)[exploration(run)].mean(axis=0, dtype=np.float64)


@claim(
    "continual.lemma-16.history",
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
    experiment = experiments.NO_TERMINATION
    labels, observe = per_cell(
        experiments.MANY_LARGEST + experiments.FEW_LARGEST,
        lambda run: run.records.generalization_error[exploration(run)][-1].astype(np.float64),
    )
    predict = over(experiments.MANY_LARGEST + experiments.FEW_LARGEST, _history)


@claim("continual.lemma-16.step", where="replaces Lemma 16, Eq. (42)", kind="equality", margin=0.02)
class Lemma16Step:
    """A step's expected squared distance to every truth, with the signal learned for sure and the rest at random.

    The signal's direction u is always among the s samples; the others project inside its complement. Means over the
    rounds up to T1 and over all truths w_i; Pi = I - u u'.
    """

    formula = (
        r"\mathbb{E}\|w_t - w_i\|^2 = \frac{d-s}{d-1} \|\Pi (w_{t-1} - w_i)\|^2 + \|w_{n_t} - w_i\|^2 "
        r"- \frac{d-s}{d-1} \|\Pi (w_{n_t} - w_i)\|^2"
    )
    experiment = experiments.NO_TERMINATION
    labels, observe = per_cell(experiments.MANY_LARGEST + experiments.FEW_LARGEST, _explored_mean("step_error"))
    predict = over(experiments.MANY_LARGEST + experiments.FEW_LARGEST, _explored_mean("step_expected"))
