"""Lemmas 5 to 9: the gates' gradients, sizes and steps, and how evenly exploration loads the experts.

An O() or Omega() is tested by the slope of log means over a grid of sigma_0, of eta or of M. "For any" is read as the
largest, or smallest, over experts, signals and the rounds named.
"""

import numpy as np

from moe_theory.continual.claims.measurements import FAILURE, along, claim, per_cell, probable, rate, recorded
from moe_theory.continual.experiments import (
    EXPERT_CELLS,
    FEWER_EXPERTS_CELLS,
    RATE_CELLS,
    ROUNDS_PAST_EXPLORATION,
    ROUTER_CELLS,
    ROUTER_EXPERT_GRID,
    ROUTER_GRID,
    SMALL_NOISE_CELLS,
    UNIFORM_CELLS,
    stage_rounds,
)
from moe_theory.runs import Run


def _explored(run: Run, name: str) -> np.ndarray:
    return recorded(run, name, 1, stage_rounds(run.params))


def _largest_explored(name: str):
    return lambda run: _explored(run, name).max(axis=0)


def _largest_routed_gradient(run: Run) -> np.ndarray:
    explored = stage_rounds(run.params)
    return recorded(run, "largest_gradient", explored + 1, explored + ROUNDS_PAST_EXPLORATION).max(axis=0)


@rate("continual.lemma-5.exploration", at_most=1.0, where="Lemma 5, Eq. (31), first case")
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
    experiment = ROUTER_GRID
    labels, observe, abscissa = along(ROUTER_CELLS, lambda run: _explored(run, "least_balance_gradient").min(axis=0))


@rate("continual.lemma-5.routing", at_least=1.0, where="Lemma 5, Eq. (31), second case")
class Lemma5Routing:
    """In the rounds past T1, of which 100 are tested, its gradient at every expert is O(sigma_0)."""

    formula = r"\max_{t > T_1, m} \|\nabla_{\theta_t^{(m)}} L_t^{task}\|_\infty = O(\sigma_0)"
    experiment = ROUTER_GRID
    labels, observe, abscissa = along(ROUTER_CELLS, _largest_routed_gradient)


def _largest_gate(run: Run) -> np.ndarray:
    return run.records.gate_size.max(axis=0).astype(np.float64)


def _gate_excess(run: Run) -> np.ndarray:
    """The largest relative excess over eta T1 alpha M, and after T1 over eta (T - T1) alpha M / T1 more."""
    params, last = run.params, int(run.rounds[-1])
    rate, step = float(params.learning_rate), float(params.balance_weight) * int(params.num_experts)
    explored = stage_rounds(params)
    early = rate * explored * step
    late = early + rate * (last - explored) * step / explored
    excess = np.maximum(
        _explored(run, "gate_size").max(axis=0) / early,
        recorded(run, "gate_size", explored + 1, last).max(axis=0) / late,
    )
    return np.maximum(excess - 1, 0)


@rate("continual.lemma-6.gates", at_least=0.5, where="Lemma 6")
class Lemma6:
    """In all rounds the gates of every expert stay O(sigma_0^0.5) in every entry; with more experts than tasks."""

    formula = r"\|\theta_t^{(m)}\|_\infty = O(\sigma_0^{0.5})"
    experiment = ROUTER_GRID
    labels, observe, abscissa = along(ROUTER_CELLS, _largest_gate)


@rate("continual.lemma-6.gates-fewer", at_least=0.5, where="Lemma 6, M < N")
class Lemma6Fewer:
    """In all rounds the gates of every expert stay O(sigma_0^0.5) in every entry; with fewer experts than tasks."""

    formula = r"M < N \Rightarrow \|\theta_t^{(m)}\|_\infty = O(\sigma_0^{0.5})"
    experiment = ROUTER_GRID
    labels, observe, abscissa = along(FEWER_EXPERTS_CELLS, _largest_gate)


@claim("continual.lemma-6.bound", where="Lemma 6, proof", kind="identity", margin=1e-6)
class Lemma6Bound:
    """No gate's entry exceeds eta T1 alpha M up to T1, nor that and eta (T - T1) alpha M / T1 after it.

    The proof's explicit bound, which leaves out what the locality loss adds; the largest relative excess.
    """

    formula = (
        r"\|\theta_t^{(m)}\|_\infty \leq \eta T_1 \alpha M \ (t \leq T_1), \quad "
        r"\|\theta_t^{(m)}\|_\infty \leq \eta T_1 \alpha M + \eta (T - T_1) \frac{\alpha M}{T_1} \ (t > T_1)"
    )
    experiment = ROUTER_GRID
    labels, observe = per_cell(ROUTER_CELLS, _gate_excess)


@rate("continual.lemma-7.chosen", at_least=1.0, where="Lemma 7, first case")
class Lemma7Chosen:
    """In a round up to T1, the chosen expert's output for any signal changes by O(sigma_0) in size."""

    formula = r"|\langle \theta_{t+1}^{(m_t)} - \theta_t^{(m_t)}, v_n \rangle| = O(\sigma_0)"
    experiment = ROUTER_GRID
    labels, observe, abscissa = along(ROUTER_CELLS, _largest_explored("chosen_change"))


@rate("continual.lemma-7.others", at_least=1.0, where="Lemma 7, second case")
class Lemma7Others:
    """In a round up to T1, every other expert's output for any signal changes by O(sigma_0) in size, for fixed M."""

    formula = r"m \neq m_t \Rightarrow |\langle \theta_{t+1}^{(m)} - \theta_t^{(m)}, v_n \rangle| = O(\sigma_0)"
    experiment = ROUTER_GRID
    labels, observe, abscissa = along(ROUTER_CELLS, _largest_explored("others_change"))


@rate("continual.lemma-7.others-experts", at_most=-1.0, where="Lemma 7, second case")
class Lemma7OthersExperts:
    """In a round up to T1, every other expert's output for any signal changes by O(1/M) in size, for fixed sigma_0."""

    formula = r"m \neq m_t \Rightarrow |\langle \theta_{t+1}^{(m)} - \theta_t^{(m)}, v_n \rangle| = O(M^{-1})"
    experiment = ROUTER_EXPERT_GRID
    labels, observe, abscissa = along(EXPERT_CELLS, _largest_explored("others_change"))


@claim(
    "continual.lemma-7.sign",
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
    experiment = ROUTER_GRID
    labels, observe = per_cell(ROUTER_CELLS, lambda run: _explored(run, "chosen_rise").max(axis=0) > 0)


def _largest_wrong_sign(run: Run) -> np.ndarray:
    wrong = np.maximum(_explored(run, "own_rise"), _explored(run, "own_fall")).max(axis=0)
    return np.maximum(wrong, 0) / float(run.params.truth_scale)


@claim("continual.lemma-7.sign-own", where="replaces Lemma 7, signs", kind="identity", margin=1e-6)
class Lemma7SignOwn:
    """Where the noise is O(sigma_0), the chosen expert's output for the arriving task's signal falls and others' rise.

    The largest change of the wrong sign up to T1, over sigma_0.
    """

    formula = (
        r"\langle \theta_{t+1}^{(m_t)} - \theta_t^{(m_t)}, v_{n_t} \rangle \leq 0 \leq "
        r"\langle \theta_{t+1}^{(m)} - \theta_t^{(m)}, v_{n_t} \rangle, \ m \neq m_t"
    )
    experiment = ROUTER_GRID
    labels, observe = per_cell(SMALL_NOISE_CELLS, _largest_wrong_sign)


def _load_gap(run: Run) -> np.ndarray:
    """max_m |f_T1(m) - 1/M|."""
    count = int(run.params.num_experts)
    shares = run.state.explored_visits[:count].astype(np.float64) / stage_rounds(run.params)
    return np.abs(shares - 1 / count).max(axis=0)


def _one_load_gap(run: Run) -> np.ndarray:
    """|f_T1(1) - 1/M|, of one expert that is fixed before the run."""
    share = run.state.explored_visits[0].astype(np.float64) / stage_rounds(run.params)
    return np.abs(share - 1 / int(run.params.num_experts))


@rate("continual.lemma-8.learning-rate", at_least=0.5, where="Lemma 8, Eq. (32)")
class Lemma8Rate:
    """At T1 every expert's share of the tasks is within O(eta^0.5) of 1/M for small eta, in mean."""

    formula = r"|f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5})"
    experiment = ROUTER_GRID
    labels, observe, abscissa = along(RATE_CELLS, _load_gap)


@rate("continual.lemma-8.experts", at_most=-1.0, where="Lemma 8, Eq. (32)", replaced_by="continual.lemma-8.independent")
class Lemma8Experts:
    """At T1 every expert's share of the tasks is within O(1/M) of 1/M, in mean.

    "Any expert m" is read as all experts at once: the largest distance of a share from 1/M.
    """

    formula = r"\max_m |f_{T_1}^{(m)} - \frac{1}{M}| = O(M^{-1})"
    experiment = ROUTER_EXPERT_GRID
    labels, observe, abscissa = along(EXPERT_CELLS, _load_gap)


@rate(
    "continual.lemma-8.one-expert",
    at_most=-1.0,
    where="Lemma 8, Eq. (32), for one expert",
    replaced_by="continual.lemma-8.independent-one-expert",
)
class Lemma8OneExpert:
    """At T1 the share of one expert, fixed beforehand, is within O(1/M) of 1/M, in mean."""

    formula = r"|f_{T_1}^{(1)} - \frac{1}{M}| = O(M^{-1})"
    experiment = ROUTER_EXPERT_GRID
    labels, observe, abscissa = along(EXPERT_CELLS, _one_load_gap)


@rate(
    "continual.lemma-8.experts-proved",
    at_most=-0.5,
    where="Lemma 8, what its proof gives",
    replaced_by="continual.lemma-8.independent",
)
class Lemma8ExpertsProved:
    """At T1 every expert's share of the tasks is within O(M^-0.5) of 1/M, in mean.

    What the proof's inequality gives with T1 = M/eta: eps = (eta ln(2M/delta) / (2M))^0.5, and not eta^0.5 / M.
    """

    formula = r"|f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5} M^{-0.5})"
    experiment = ROUTER_EXPERT_GRID
    labels, observe, abscissa = along(EXPERT_CELLS, _load_gap)


def _exceeds_hoeffding(run: Run) -> np.ndarray:
    """Whether some expert's share is farther from 1/M than (ln(2M/delta) / (2 T1))^0.5."""
    explored = stage_rounds(run.params)
    return _load_gap(run) > np.sqrt(np.log(2 * int(run.params.num_experts) / FAILURE) / (2 * explored))


@probable(
    "continual.lemma-8.hoeffding",
    where="Lemma 8, proof",
    is_likely=False,
    replaced_by="continual.lemma-8.independent-hoeffding",
)
class Lemma8Hoeffding:
    """At T1 every expert's share is within (ln(2M/delta) / (2 T1))^0.5 of 1/M, but for chance delta = 0.05.

    The proof applies Hoeffding's inequality to routes that depend on each other.
    """

    formula = r"P(\exists m: |f_{T_1}^{(m)} - \frac{1}{M}| > \epsilon) \leq 2 M \exp (-2 \epsilon^2 T_1) = \delta"
    experiment = ROUTER_EXPERT_GRID
    labels, observe = per_cell(EXPERT_CELLS, _exceeds_hoeffding)


@rate("continual.lemma-8.independent", at_most=-0.5, where="replaces Lemma 8, Eq. (32)")
class Lemma8Independent:
    """Where the perturbation outweighs the gate outputs, every expert's share at T1 is within O(M^-0.5) of 1/M.

    Routes are then independent and uniform, as the proof supposes; lambda is 1000. O(M^-0.5) is what Hoeffding's
    inequality gives, and not sharp: the largest distance of such shares is of order eta^0.5 M^-1 (ln M)^0.5.
    """

    formula = r"\lambda \gg \|h\|_\infty \Rightarrow |f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5} M^{-0.5})"
    experiment = ROUTER_EXPERT_GRID
    labels, observe, abscissa = along(UNIFORM_CELLS, _load_gap)


@rate("continual.lemma-8.independent-one-expert", at_most=-1.0, where="replaces Lemma 8, Eq. (32), for one expert")
class Lemma8IndependentOneExpert:
    """Where the perturbation outweighs the gate outputs, one expert's share at T1 is within O(1/M) of 1/M, in mean.

    Its number of tasks is then binomial with mean T1/M = 1/eta, so that the distance is of order eta^0.5 / M.
    """

    formula = r"\lambda \gg \|h\|_\infty \Rightarrow |f_{T_1}^{(1)} - \frac{1}{M}| = O(\eta^{0.5} M^{-1})"
    experiment = ROUTER_EXPERT_GRID
    labels, observe, abscissa = along(UNIFORM_CELLS, _one_load_gap)


@probable("continual.lemma-8.independent-hoeffding", where="replaces Lemma 8, proof", is_likely=False)
class Lemma8IndependentHoeffding:
    """There every share is within (ln(2M/delta) / (2 T1))^0.5 of 1/M, but for chance delta = 0.05."""

    formula = r"\lambda \gg \|h\|_\infty \Rightarrow " + Lemma8Hoeffding.formula
    experiment = ROUTER_EXPERT_GRID
    labels, observe = per_cell(UNIFORM_CELLS, _exceeds_hoeffding)


def _final_gate_gap(run: Run) -> np.ndarray:
    """max |theta_T1^(m) - theta_T1^(m')|: the gates that route in round T1 are those after round T1 - 1."""
    explored = stage_rounds(run.params)
    return recorded(run, "gate_gap", explored - 1, explored - 1)[0]


@rate("continual.lemma-9.scale", at_least=0.75, where="Lemma 9")
class Lemma9Scale:
    """At T1 the gates of two experts are within O(eta^-0.5 sigma_0) of each other: O(sigma_0^0.75), as eta shrinks."""

    formula = r"\|\theta_{T_1}^{(m)} - \theta_{T_1}^{(m')}\|_\infty = O(\eta^{-0.5} \sigma_0) = O(\sigma_0^{0.75})"
    experiment = ROUTER_GRID
    labels, observe, abscissa = along(ROUTER_CELLS, _final_gate_gap)


@rate("continual.lemma-9.learning-rate", at_least=-0.5, where="Lemma 9")
class Lemma9Rate:
    """At T1 the gates of two experts are within O(eta^-0.5) of each other for small eta, at a fixed sigma_0."""

    formula = r"\|\theta_{T_1}^{(m)} - \theta_{T_1}^{(m')}\|_\infty = O(\eta^{-0.5})"
    experiment = ROUTER_GRID
    labels, observe, abscissa = along(RATE_CELLS, _final_gate_gap)


@rate("continual.lemma-9.experts", at_most=0.0, where="Lemma 9")
class Lemma9Experts:
    """At T1 the gates of two experts are within O(1) of each other for many experts: the bound does not grow with M."""

    formula = r"\|\theta_{T_1}^{(m)} - \theta_{T_1}^{(m')}\|_\infty = O(M^0)"
    experiment = ROUTER_EXPERT_GRID
    labels, observe, abscissa = along(EXPERT_CELLS, _final_gate_gap)
