"""Propositions 1 to 3: how many servers, when the router has converged, and that experts then stay as they are."""

import numpy as np

from moe_theory.edge import experiments, theory
from moe_theory.edge.claims.values import PAST_EXPLORATION, Values, by_servers, misrouted_share, named
from moe_theory.edge.experiments import (
    ADAPTIVE,
    FAILURE,
    HISTORY,
    HISTORY_EXPERTS,
    MAX_DELAY,
    SUFFICIENT,
    SUPPLY,
    cell_name,
)
from moe_theory.edge.params import SIGMA_0
from moe_theory.sweep import Run
from moe_theory.verify.claim import Runs, claim

NUM_TASKS = 10  # N of Fig. 3
NORMAL = theory.specialists_needed(MAX_DELAY, NUM_TASKS, FAILURE, "normal")
BINOMIAL = theory.specialists_needed(MAX_DELAY, NUM_TASKS, FAILURE, "binomial")
CONSTANT = 1.0  # of sigma_0^e in an O() or Omega() of Proposition 2
DRIFT = 3.0  # of sigma_0^2 in Proposition 3: three deviations of truths inside a cluster


def _overfull(specialists: float) -> Values:
    """Whether the kind of a run's last task arrived more than `specialists` times in its last d_u rounds.

    The kind is task 0's, so that it does not depend on what arrived.
    """

    def observe(runs: Runs) -> np.ndarray:
        tasks = runs[cell_name(HISTORY_EXPERTS)].records.task[-MAX_DELAY:]
        return np.sum(tasks == 0, axis=0) > specialists

    return observe


def _supply(runs: Runs):
    return runs[cell_name(SUFFICIENT)].records


def _ceiling(runs: Runs) -> float:
    del runs
    return FAILURE


@claim(
    "edge.proposition-1.normal-quantile",
    paper="edge",
    where="Proposition 1, Eq. (16), and Appendix B",
    kind="probability",
    replaced_by="edge.proposition-1.binomial-quantile",
)
class NormalQuantile:
    """A kind of task arrives more than M_th times in d_u rounds with probability at most delta, M_th from (16)."""

    experiment = HISTORY
    side = "at_most"
    labels = named(f"M_th = {NORMAL:.3g}")
    observe = _overfull(NORMAL)
    predict = _ceiling


@claim(
    "edge.proposition-1.binomial-quantile",
    paper="edge",
    where="replaces Proposition 1, Eq. (16)",
    kind="probability",
)
class BinomialQuantile:
    """A kind of task arrives more than M_th times in d_u rounds with probability at most delta, M_th binomial."""

    experiment = HISTORY
    side = "at_most"
    labels = named(f"M_th = {BINOMIAL}")
    observe = _overfull(BINOMIAL)
    predict = _ceiling


@claim(
    "edge.proposition-1.specialists",
    paper="edge",
    where="Proposition 1, proof: |M_n| >= M_th",
    kind="probability",
)
class Specialists:
    """With M = N M_th ln(1/delta) servers, past T1, fewer than M_th specialise in the arriving kind: at most delta."""

    experiment = SUPPLY
    side = "at_most"
    labels = by_servers(SUFFICIENT)
    observe = staticmethod(lambda runs: _supply(runs).num_specialists[-1] < NORMAL)
    predict = _ceiling


@claim(
    "edge.proposition-1.availability",
    paper="edge",
    where="Proposition 1",
    kind="probability",
)
class Availability:
    """With M = N M_th ln(1/delta) servers, past T1, no idle one specialises in the arriving kind: at most delta."""

    experiment = SUPPLY
    side = "at_most"
    labels = by_servers(SUFFICIENT)
    observe = staticmethod(lambda runs: ~_supply(runs).specialist_idle[-1])
    predict = _ceiling


def _past_exploration(value) -> Values:
    """What `value` gives of the cells of Fig. 3 that pass T1 within the run, one component each."""
    return lambda runs: np.stack([value(runs[cell_name(number)]) for number in PAST_EXPLORATION], axis=1)


def _probability_gaps(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the arriving kind's specialists m, at the last round, of the gap of pi to other specialists and to
    the other experts; where there are none, the gap is 0 and, to the others, counts from the largest pi."""
    gates = run.records.gates[-1].astype(np.float64)
    probabilities = run.records.gate_probabilities[-1].astype(np.float64)
    signals = run.state.pool.signals.astype(np.float64)
    count = int(run.params.num_experts)
    kinds = np.argmax(np.einsum("mdb,ndb->mnb", gates, signals), axis=1)[:count]
    is_own = kinds == run.records.task[-1]
    within, across = np.zeros(is_own.shape[1]), np.zeros(is_own.shape[1])
    for index in range(is_own.shape[1]):
        own, other = (probabilities[:count, index][mask] for mask in (is_own[:, index], ~is_own[:, index]))
        if len(own) > 1:
            within[index] = np.abs(own[:, None] - own[None, :]).max()
        if len(own) and len(other):
            across[index] = np.abs(own[:, None] - other[None, :]).min()
    return within, across


@claim(
    "edge.proposition-2.same-set",
    paper="edge",
    where="Proposition 2, Eq. (17), first line",
    kind="upper_bound",
)
class SameSet:
    """Past T1 two specialists of a kind have gate probabilities within sigma_0 of each other."""

    experiment = ADAPTIVE
    labels = by_servers(*PAST_EXPLORATION)
    observe = _past_exploration(lambda run: _probability_gaps(run)[0])
    predict = staticmethod(lambda runs: CONSTANT * SIGMA_0)
    trivial = staticmethod(lambda runs: 1.0)


@claim(
    "edge.proposition-2.other-set",
    paper="edge",
    where="Proposition 2, Eq. (17), second line",
    kind="lower_bound",
    replaced_by="edge.proposition-2.other-set-shared",
)
class OtherSet:
    """Past T1 a specialist and any other expert have gate probabilities at least sigma_0^(1/2) apart."""

    experiment = ADAPTIVE
    labels = by_servers(*PAST_EXPLORATION)
    observe = _past_exploration(lambda run: _probability_gaps(run)[1])
    predict = staticmethod(lambda runs: CONSTANT * SIGMA_0**0.5)


def _share(run: Run) -> np.ndarray:
    gates = run.records.gates[-1].astype(np.float64)
    signals = run.state.pool.signals.astype(np.float64)
    kinds = np.argmax(np.einsum("mdb,ndb->mnb", gates, signals), axis=1)[: int(run.params.num_experts)]
    return 1 / np.maximum(np.sum(kinds == run.records.task[-1], axis=0), 1)


@claim(
    "edge.proposition-2.other-set-shared",
    paper="edge",
    where="replaces Proposition 2, Eq. (17), second line",
    kind="upper_bound",
)
class OtherSetShared:
    """Probabilities sum to 1: the smallest gap to an expert of another set is at most 1 / |M_n|."""

    experiment = ADAPTIVE
    labels = by_servers(*PAST_EXPLORATION)
    observe = _past_exploration(lambda run: _probability_gaps(run)[1])
    predict = _past_exploration(_share)
    trivial = staticmethod(lambda runs: 1.0)


@claim(
    "edge.proposition-2.routing",
    paper="edge",
    where="Proposition 2, last sentence",
    kind="upper_bound",
)
class Routing:
    """Past T1 at most a fraction delta of the tasks goes to an expert that specialises in another kind."""

    experiment = ADAPTIVE
    labels = by_servers(*PAST_EXPLORATION)
    observe = _past_exploration(misrouted_share)
    predict = _ceiling


def _expert_drift(run: Run) -> np.ndarray:
    """Mean over experts of |w_T - w_T1|_inf."""
    first = experiments.record_after(run, experiments.exploration_rounds(run.params))
    change = run.records.experts[-1] - run.records.experts[first]
    return np.abs(change.astype(np.float64))[: int(run.params.num_experts)].max(axis=1).mean(axis=0)


@claim(
    "edge.proposition-3.experts",
    paper="edge",
    where="Proposition 3, Eq. (18)",
    kind="upper_bound",
)
class ExpertsConverge:
    """Past T1 an expert's model moves by no more than 3 sigma_0^2 in its largest entry, on average over experts."""

    experiment = ADAPTIVE
    labels = by_servers(*PAST_EXPLORATION)
    observe = _past_exploration(_expert_drift)
    predict = staticmethod(lambda runs: DRIFT * SIGMA_0**2)
