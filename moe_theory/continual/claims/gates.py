"""Lemmas 5 to 7, on the gates' gradients, sizes and steps.

An O() or Omega() is tested by its exponent: the slope of log means over a grid of sigma_0, or of M. Along the grid of
sigma_0 Algorithm 1's inputs shrink as it asks, eta and alpha as sigma_0^0.5 (the proof of Lemma 5 needs both from below
too). "For any" is read as the largest, or smallest, over experts, signals and the rounds named.
"""

import numpy as np

from moe_theory.continual.claims.values import (
    EXPONENT_MARGIN,
    FEWER_CELLS,
    QUIET_CELLS,
    SCALE_CELLS,
    named,
    over,
    recorded,
)
from moe_theory.continual.grids import (
    EXPERT_GRID,
    EXPERTS,
    ROUTED,
    SCALES,
    SCALING,
    experts_name,
    exploration_rounds,
)
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, claim

EXPERT_CELLS = tuple(experts_name(number) for number in EXPERTS)


def _explored(run: Run, name: str) -> np.ndarray:
    """A recorded number in the exploration stage, rounds 1 to T1 (T1, B)."""
    return recorded(run, name, 1, exploration_rounds(run.params))


def _largest_explored(name: str):
    return lambda run: _explored(run, name).max(axis=0)


def _least_balance_gradient(run: Run) -> np.ndarray:
    return _explored(run, "least_balance_gradient").min(axis=0)


def _largest_routed_gradient(run: Run) -> np.ndarray:
    """Over the `ROUTED` rounds past T1, as many in each cell."""
    explored = exploration_rounds(run.params)
    return recorded(run, "largest_gradient", explored + 1, explored + ROUTED).max(axis=0)


@claim(
    "continual.lemma-5.exploration",
    paper="continual",
    where="Lemma 5, Eq. (31), first case",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Lemma5Exploration:
    """In every round up to T1, the task loss's gradient at every expert is of order sigma_0 or larger.

    Tested, as it is proved, on the auxiliary loss's part alone: the locality loss's has the same sign, so the whole is
    no smaller. It has the part's exponent too, but only for far smaller sigma_0 than can be run: until then the least
    move of an expert decides, which shrinks as T1 grows.
    """

    formula = (
        r"\min_{t \leq T_1, m} \|\nabla_{\theta_t^{(m)}} L_t^{task}\|_\infty \geq "
        r"\min_{t \leq T_1, m} \|\nabla_{\theta_t^{(m)}} L_t^{aux}\|_\infty = \Omega(\sigma_0)"
    )
    experiment = SCALING
    side = "at_most"
    abscissa = SCALES
    labels = named(*SCALE_CELLS)
    observe = over(SCALE_CELLS, _least_balance_gradient)
    predict = staticmethod(lambda runs: 1.0)


@claim(
    "continual.lemma-5.routing",
    paper="continual",
    where="Lemma 5, Eq. (31), second case",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Lemma5Routing:
    """In the rounds past T1, of which 100 are tested, its gradient at every expert is O(sigma_0)."""

    formula = r"\max_{t > T_1, m} \|\nabla_{\theta_t^{(m)}} L_t^{task}\|_\infty = O(\sigma_0)"
    experiment = SCALING
    side = "at_least"
    abscissa = SCALES
    labels = named(*SCALE_CELLS)
    observe = over(SCALE_CELLS, _largest_routed_gradient)
    predict = staticmethod(lambda runs: 1.0)


def _largest_gate(run: Run) -> np.ndarray:
    return run.records.gate_size.max(axis=0).astype(np.float64)


def _gate_excess(run: Run) -> np.ndarray:
    """The largest relative excess over eta T1 alpha M, and after T1 over eta (T - T1) alpha M / T1 more."""
    params, last = run.params, int(run.rounds[-1])
    rate, step = float(params.learning_rate), float(params.balance_weight) * int(params.num_experts)
    explored = exploration_rounds(params)
    early = rate * explored * step
    late = early + rate * (last - explored) * step / explored
    excess = np.maximum(
        _explored(run, "gate_size").max(axis=0) / early,
        recorded(run, "gate_size", explored + 1, last).max(axis=0) / late,
    )
    return np.maximum(excess - 1, 0)


@claim("continual.lemma-6.gates", paper="continual", where="Lemma 6", kind="rate", margin=EXPONENT_MARGIN)
class Lemma6:
    """In all rounds the gates of every expert stay O(sigma_0^0.5) in every entry; with more experts than tasks."""

    formula = r"\|\theta_t^{(m)}\|_\infty = O(\sigma_0^{0.5})"
    experiment = SCALING
    side = "at_least"
    abscissa = SCALES
    labels = named(*SCALE_CELLS)
    observe = over(SCALE_CELLS, _largest_gate)
    predict = staticmethod(lambda runs: 0.5)


@claim("continual.lemma-6.gates-fewer", paper="continual", where="Lemma 6, M < N", kind="rate", margin=EXPONENT_MARGIN)
class Lemma6Fewer:
    """In all rounds the gates of every expert stay O(sigma_0^0.5) in every entry; with fewer experts than tasks."""

    formula = r"M < N \Rightarrow \|\theta_t^{(m)}\|_\infty = O(\sigma_0^{0.5})"
    experiment = SCALING
    side = "at_least"
    abscissa = SCALES
    labels = named(*FEWER_CELLS)
    observe = over(FEWER_CELLS, _largest_gate)
    predict = staticmethod(lambda runs: 0.5)


@claim("continual.lemma-6.bound", paper="continual", where="Lemma 6, proof", kind="identity", margin=1e-6)
class Lemma6Bound:
    """No gate's entry exceeds eta T1 alpha M up to T1, nor that and eta (T - T1) alpha M / T1 after it.

    The proof's explicit bound, which leaves out what the locality loss adds; the largest relative excess.
    """

    formula = (
        r"\|\theta_t^{(m)}\|_\infty \leq \eta T_1 \alpha M \ (t \leq T_1), \quad "
        r"\|\theta_t^{(m)}\|_\infty \leq \eta T_1 \alpha M + \eta (T - T_1) \frac{\alpha M}{T_1} \ (t > T_1)"
    )
    experiment = SCALING
    labels = named(*SCALE_CELLS)
    observe = over(SCALE_CELLS, _gate_excess)


@claim("continual.lemma-7.chosen", paper="continual", where="Lemma 7, first case", kind="rate", margin=EXPONENT_MARGIN)
class Lemma7Chosen:
    """In a round up to T1, the chosen expert's output for any signal changes by O(sigma_0) in size."""

    formula = r"|\langle \theta_{t+1}^{(m_t)} - \theta_t^{(m_t)}, v_n \rangle| = O(\sigma_0)"
    experiment = SCALING
    side = "at_least"
    abscissa = SCALES
    labels = named(*SCALE_CELLS)
    observe = over(SCALE_CELLS, _largest_explored("chosen_change"))
    predict = staticmethod(lambda runs: 1.0)


@claim("continual.lemma-7.others", paper="continual", where="Lemma 7, second case", kind="rate", margin=EXPONENT_MARGIN)
class Lemma7Others:
    """In a round up to T1, every other expert's output for any signal changes by O(sigma_0) in size, for fixed M."""

    formula = r"m \neq m_t \Rightarrow |\langle \theta_{t+1}^{(m)} - \theta_t^{(m)}, v_n \rangle| = O(\sigma_0)"
    experiment = SCALING
    side = "at_least"
    abscissa = SCALES
    labels = named(*SCALE_CELLS)
    observe = over(SCALE_CELLS, _largest_explored("others_change"))
    predict = staticmethod(lambda runs: 1.0)


@claim(
    "continual.lemma-7.others-experts",
    paper="continual",
    where="Lemma 7, second case",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Lemma7OthersExperts:
    """In a round up to T1, every other expert's output for any signal changes by O(1/M) in size, for fixed sigma_0."""

    formula = r"m \neq m_t \Rightarrow |\langle \theta_{t+1}^{(m)} - \theta_t^{(m)}, v_n \rangle| = O(M^{-1})"
    experiment = EXPERT_GRID
    side = "at_most"
    abscissa = EXPERTS
    labels = named(*EXPERT_CELLS)
    observe = over(EXPERT_CELLS, _largest_explored("others_change"))
    predict = staticmethod(lambda runs: -1.0)


@claim(
    "continual.lemma-7.sign",
    paper="continual",
    where="Lemma 7, for any signal",
    kind="counterexample",
    replaced_by="continual.lemma-7.sign-own",
)
class Lemma7Sign:
    """In every round up to T1, the chosen expert's output falls for all signals.

    The minus sign before O(sigma_0), which the text below the lemma takes for a fall; a run in which it rises for
    another task's signal in some round violates it.
    """

    formula = r"\langle \theta_{t+1}^{(m_t)} - \theta_t^{(m_t)}, v_n \rangle \leq 0 \ \forall n"
    experiment = SCALING
    labels = named(*SCALE_CELLS)
    observe = over(SCALE_CELLS, lambda run: _explored(run, "chosen_rise").max(axis=0) > 0)


@claim("continual.lemma-7.sign-own", paper="continual", where="replaces Lemma 7, signs", kind="identity", margin=1e-6)
class Lemma7SignOwn:
    """Where the noise is O(sigma_0), the chosen expert's output for the arriving task's signal falls and others' rise.

    The largest change of the wrong sign up to T1, over sigma_0.
    """

    formula = (
        r"\langle \theta_{t+1}^{(m_t)} - \theta_t^{(m_t)}, v_{n_t} \rangle \leq 0 \leq "
        r"\langle \theta_{t+1}^{(m)} - \theta_t^{(m)}, v_{n_t} \rangle, \ m \neq m_t"
    )
    experiment = SCALING
    labels = named(*QUIET_CELLS)

    @staticmethod
    def observe(runs: Runs) -> np.ndarray:
        def largest(run: Run) -> np.ndarray:
            wrong = np.maximum(_explored(run, "own_rise"), _explored(run, "own_fall")).max(axis=0)
            return np.maximum(wrong, 0) / float(run.params.truth_scale)

        return over(QUIET_CELLS, largest)(runs)
