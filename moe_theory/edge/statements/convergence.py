"""Propositions 1 to 3: how many servers, when the router has converged, and that experts then stay as they are."""

from collections.abc import Callable

import numpy as np

from moe_theory.edge import corrected, experiments, theory
from moe_theory.edge.experiments import (
    ADAPTIVE,
    AVAILABILITY,
    FAILURE,
    HISTORY,
    HISTORY_DIMS,
    HISTORY_EXPERTS,
    MAX_DELAY,
    PAST_EXPLORATION,
    SUFFICIENT,
    by_servers,
    cell_name,
    misrouted_share,
    on,
    over_servers,
    specialists,
)
from moe_theory.edge.params import SIGMA_0
from moe_theory.runs import Run
from moe_theory.verify.claim import Experiment, Runs, Values, claim, named

NUM_TASKS = HISTORY_DIMS.num_tasks  # N of Fig. 3
NORMAL = theory.specialists_needed(MAX_DELAY, NUM_TASKS, FAILURE, "normal")
ROUNDED = int(np.ceil(NORMAL))
BINOMIAL = theory.specialists_needed(MAX_DELAY, NUM_TASKS, FAILURE, "binomial")
SERVING = next(count for count in range(MAX_DELAY) if corrected.unserved(MAX_DELAY, NUM_TASKS, count) < FAILURE)
CONSTANT = 1.0  # of sigma_0^e in an O() or Omega() of Proposition 2
DRIFT = 3.0  # of sigma_0^2 in Proposition 3, a wide reading of O(): truths of a cluster are about 1 sigma_0^2 apart
_QUANTILE = r"M_{th} = \frac{d_u}{N} + \Phi^{-1}(1 - \delta) \sqrt{\frac{d_u}{N} \left( 1 - \frac{1}{N} \right)}"


def at_most_delta(experiment: Experiment, labels: Callable, observe: Values) -> Callable:
    """A probability of at most delta."""
    return on(experiment, labels, observe, FAILURE, side="at_most")


def _overfull(specialists: float) -> Values:
    """Whether kind 0, chosen before anything arrives, came more than `specialists` times in the last d_u rounds."""

    def observe(runs: Runs) -> np.ndarray:
        tasks = runs[cell_name(HISTORY_EXPERTS)].records.task[-MAX_DELAY:]
        return np.sum(tasks == 0, axis=0) > specialists

    return observe


def _records(runs: Runs):
    return runs[cell_name(SUFFICIENT)].records


@claim(
    "edge.proposition-1.normal-quantile",
    paper="edge",
    where="Proposition 1, Eq. (16), and Appendix B",
    kind="probability",
    replaced_by="edge.proposition-1.binomial-quantile",
)
@at_most_delta(HISTORY, named(f"M_th = {NORMAL:.3g}"), _overfull(NORMAL))
class NormalQuantile:
    """A kind of task arrives more than M_th times in d_u rounds with probability at most delta, with (16) as it is."""

    formula = r"\mathbb{P}[A_n > M_{th}] \le \delta, \quad " + _QUANTILE


@claim(
    "edge.proposition-1.binomial-quantile", paper="edge", where="replaces Proposition 1, Eq. (16)", kind="probability"
)
@at_most_delta(HISTORY, named(f"M_th = {BINOMIAL}"), _overfull(BINOMIAL))
class BinomialQuantile:
    """A kind of task arrives more than M_th times in d_u rounds with probability at most delta, M_th binomial."""

    formula = (
        r"\mathbb{P}[A_n > M_{th}] \le \delta, \quad "
        r"M_{th} = \min\left\{ k : \mathbb{P}[\text{Binomial}(d_u, 1/N) > k] < \delta \right\}"
    )


@claim(
    "edge.proposition-1.normal-quantile-rounded-up",
    paper="edge",
    where="Proposition 1, Eq. (16), to whole experts",
    kind="probability",
)
@at_most_delta(HISTORY, named(f"M_th = {ROUNDED}"), _overfull(ROUNDED))
class NormalQuantileRoundedUp:
    """The same for M_th rounded up to whole experts, at this delta; for small delta it fails too."""

    formula = r"\mathbb{P}[A_n > \lceil M_{th} \rceil] \le \delta, \quad " + _QUANTILE


def _is_unserved(runs: Runs) -> np.ndarray:
    """Whether the kind of the last task came at least `SERVING` times in the d_u - 1 rounds before it."""
    tasks = runs[cell_name(HISTORY_EXPERTS)].records.task
    return np.sum(tasks[-MAX_DELAY:-1] == tasks[-1], axis=0) >= SERVING


@claim(
    "edge.proposition-1.arriving-task",
    paper="edge",
    where="replaces Proposition 1, Eq. (16), for the task that arrives",
    kind="probability",
)
@at_most_delta(HISTORY, named(f"{SERVING} specialists"), _is_unserved)
class ArrivingTask:
    """So many specialists that the kinds of d_u - 1 earlier tasks leave one idle for the next, but for chance delta."""

    formula = (
        r"\mathbb{P}[\text{at least } k \text{ of the last } d_u - 1 \text{ tasks are in } \mathcal{W}_n] \le \delta, "
        r"\quad k = \min\left\{ j : \mathbb{P}[\text{Binomial}(d_u - 1, 1/N) \ge j] < \delta \right\}"
    )


@claim(
    "edge.proposition-1.specialists",
    paper="edge",
    where="Proposition 1, proof: M_n has M_th members",
    kind="probability",
)
@at_most_delta(AVAILABILITY, by_servers(SUFFICIENT), lambda runs: _records(runs).num_specialists[-1] < NORMAL)
class Specialists:
    """Past T1, with M = N M_th ln(1/delta), fewer than M_th specialise in the arriving kind: at most delta."""

    formula = (
        r"\mathbb{P}\left[ \left\lvert \mathcal{M}_n \right\rvert < M_{th} \right] \le \delta, "
        r"\quad M = N M_{th} \ln\left( \frac{1}{\delta} \right), \; t > T_1"
    )


@claim("edge.proposition-1.availability", paper="edge", where="Proposition 1", kind="probability")
@at_most_delta(AVAILABILITY, by_servers(SUFFICIENT), lambda runs: ~_records(runs).specialist_idle[-1])
class Availability:
    """Past T1, with M = N M_th ln(1/delta), no idle one specialises in the arriving kind: at most delta."""

    formula = (
        r"\mathbb{P}\left[ \gamma_t^{(m)} = 0 \text{ for all } m \in \mathcal{M}_n \right] \le \delta, "
        r"\quad M = N M_{th} \ln\left( \frac{1}{\delta} \right), \; t > T_1"
    )


def _other_gaps(run: Run) -> np.ndarray:
    """Whether at the last round a specialist of the arriving kind and another expert are closer than (17) allows."""
    own, probabilities = specialists(run), _probabilities(run)
    gaps = np.abs(probabilities[:, None] - probabilities[None, :])
    is_pair = own[:, None] & ~own[None, :]
    nearest = np.min(np.where(is_pair, gaps, np.inf), axis=(0, 1))
    return nearest < CONSTANT * SIGMA_0**0.5


def _same_gaps(run: Run) -> np.ndarray:
    """Whether at the last round two specialists of the arriving kind are farther apart than (17) allows."""
    own, probabilities = specialists(run), _probabilities(run)
    spread = np.max(np.where(own, probabilities, -np.inf), axis=0) - np.min(
        np.where(own, probabilities, np.inf), axis=0
    )
    return spread > CONSTANT * SIGMA_0  # -inf where there is none


def _share_excess(run: Run) -> np.ndarray:
    """By how much the smallest probability of the arriving kind's specialists exceeds 1 / |M_n|."""
    own, probabilities = specialists(run), _probabilities(run)
    smallest = np.min(np.where(own, probabilities, 1.0), axis=0)
    return np.where(own.any(axis=0), np.maximum(smallest - 1 / np.maximum(own.sum(axis=0), 1), 0), 0)


def _probabilities(run: Run) -> np.ndarray:
    """pi of the existing experts at the last round (M, B)."""
    return run.records.gate_probabilities[-1][: int(run.params.num_experts)].astype(np.float64)


@claim("edge.proposition-2.same-set", paper="edge", where="Proposition 2, Eq. (17), first line", kind="probability")
@at_most_delta(ADAPTIVE, by_servers(*PAST_EXPLORATION), over_servers(PAST_EXPLORATION, _same_gaps))
class SameSet:
    """Past T1 all specialists of the arriving kind have gate probabilities within sigma_0, but for chance delta."""

    formula = (
        r"\mathbb{P}\left[ \underset{m, m' \in \mathcal{M}_n}{\max} "
        r"\left\lvert \pi_m - \pi_{m'} \right\rvert > \sigma_0 \right] \le \delta, "
        r"\quad \mathbf{w}_t \in \mathcal{W}_n, \; t > T_1"
    )


@claim(
    "edge.proposition-2.other-set",
    paper="edge",
    where="Proposition 2, Eq. (17), second line",
    kind="probability",
    replaced_by="edge.proposition-2.share",
)
@at_most_delta(ADAPTIVE, by_servers(*PAST_EXPLORATION), over_servers(PAST_EXPLORATION, _other_gaps))
class OtherSet:
    """Past T1 specialists and other experts have gate probabilities sigma_0^(1/2) apart, but for chance delta."""

    formula = (
        r"\mathbb{P}\left[ \underset{m \in \mathcal{M}_n, m' \notin \mathcal{M}_n}{\min} "
        r"\left\lvert \pi_m - \pi_{m'} \right\rvert < \sigma_0^{1/2} \right] \le \delta, "
        r"\quad \mathbf{w}_t \in \mathcal{W}_n, \; t > T_1"
    )


@claim(
    "edge.proposition-2.share",
    paper="edge",
    where="replaces Proposition 2, Eq. (17), second line",
    kind="identity",
    margin=1e-6,
)
@on(ADAPTIVE, by_servers(*PAST_EXPLORATION), over_servers(PAST_EXPLORATION, _share_excess))
class Share:
    """Probabilities sum to 1: some specialist's is at most 1 / |M_n|, and its gap to any smaller one."""

    formula = (
        r"\sum_{m \in \mathbb{M}} \pi_m = 1 \;\Rightarrow\; \underset{m \in \mathcal{M}_n}{\min}\, \pi_m \le "
        r"\frac{1}{\left\lvert \mathcal{M}_n \right\rvert}"
    )


@claim("edge.proposition-2.routing", paper="edge", where="Proposition 2, last sentence", kind="upper_bound")
@on(ADAPTIVE, by_servers(*PAST_EXPLORATION), over_servers(PAST_EXPLORATION, misrouted_share), FAILURE)
class Routing:
    """Past T1 at most a fraction delta of the tasks goes to an expert that specialises in another kind, or in none."""

    formula = (
        r"\mathbb{E}\, \frac{1}{T - T_1} \sum_{t = T_1 + 1}^{T} \mathbb{1}\{ m_t \notin \mathcal{M}_{n_t} \} \le \delta"
    )


def _has_drifted(run: Run) -> np.ndarray:
    """Whether some expert's |w_T - w_T1|_inf is above the bound."""
    first = experiments.explored_record(run)
    change = (run.records.experts[-1] - run.records.experts[first])[: int(run.params.num_experts)]
    return np.abs(change).max(axis=(0, 1)) > DRIFT * SIGMA_0**2


@claim("edge.proposition-3.experts", paper="edge", where="Proposition 3, Eq. (18)", kind="probability")
@at_most_delta(ADAPTIVE, by_servers(*PAST_EXPLORATION), over_servers(PAST_EXPLORATION, _has_drifted))
class ExpertsConverge:
    """From T1 to T no expert's model moves by more than 3 sigma_0^2 in any entry, but for chance delta."""

    formula = (
        r"\mathbb{P}\left[ \underset{m \in \mathbb{M}}{\max} "
        r"\left\lVert \mathbf{w}_T^{(m)} - \mathbf{w}_{T_1}^{(m)} \right\rVert_\infty > 3 \sigma_0^2 \right] \le \delta"
    )
