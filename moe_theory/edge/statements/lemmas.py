"""Lemmas 2 to 9. An O(x^e) is tested by its exponent: the slope of log means over a grid of x.

Quantities are those at T1 of each cell, with the gates as the router sees them.
"""

from collections.abc import Callable

import numpy as np

from moe_theory.edge import experiments, theory
from moe_theory.edge.experiments import (
    ADAPTIVE,
    FAILURE,
    HISTORY,
    HISTORY_DIMS,
    HISTORY_EXPERTS,
    RATES,
    SCALE_DIMS,
    SCALES,
    SCALING,
    SERVER_GRID,
    SERVERS,
    by_servers,
    cell_name,
    on,
    over,
    rate_name,
    scale_name,
)
from moe_theory.edge.params import PROPORTIONAL
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, claim, named

EXPONENT_MARGIN = 0.1  # how far an exponent may be from the one claimed
TOLERANCE = 1e-6  # of float32 probabilities
Value = Callable[[Run], np.ndarray]  # of a run (B,)
SCALE_CELLS = tuple(scale_name(scale) for scale in SCALES)
RATE_CELLS = tuple(rate_name(rate) for rate in RATES)
SERVER_CELLS = tuple(cell_name(number) for number in SERVERS)


def over_scales(value: Value, exponent: float) -> Callable:
    """A rate in sigma_0, at least this exponent."""
    observe = over(SCALE_CELLS, value)
    return on(SCALING, named(*SCALE_CELLS), observe, exponent, side="at_least", abscissa=SCALES)


def over_rates(value: Value, exponent: float) -> Callable:
    """A rate in eta, at least this exponent."""
    labels = named(*(f"eta = {rate}" for rate in RATES))
    return on(SCALING, labels, over(RATE_CELLS, value), exponent, side="at_least", abscissa=RATES)


def over_numbers(value: Value, exponent: float) -> Callable:
    """A rate in M, at most this exponent."""
    observe = over(SERVER_CELLS, value)
    return on(SERVER_GRID, by_servers(*SERVERS), observe, exponent, side="at_most", abscissa=SERVERS)


def _explored(run: Run, name: str) -> np.ndarray:
    """A recorded number in the rounds up to T1 (R, B)."""
    return getattr(run.records, name)[: experiments.explored_record(run) + 1].astype(np.float64)


def _at_end(name: str):
    """A recorded number at T1."""
    return lambda run: _explored(run, name)[-1]


def _largest(name: str):
    """The largest value of a recorded number up to T1."""
    return lambda run: _explored(run, name).max(axis=0)


def _largest_step(name: str, sign: int):
    """The largest change by a gate step, of this sign, over the rounds up to T1 with one completion."""
    return lambda run: float(run.params.learning_rate) * np.nanmax(sign * _explored(run, name), axis=0)


def _output_gap(run: Run) -> np.ndarray:
    """Root mean square of h_m(X) - h_m(X~) for two tasks of one kind, over experts and kinds, from the gates at T1.

    Given the gates it is known: the s - 1 noise columns add 2 (s - 1) sigma_t^2 |theta|^2, strengths that differ add
    2 Var(beta) <theta, v>^2, and signals that follow own truths (with beta = 1) add 2 c^2 tau^2 |theta|^2.
    """
    params = run.params
    follows = int(params.signal_law) == PROPORTIONAL
    spread = float(params.signal_scale) * float(params.cluster_spread) if follows else 0.0
    noise = (SCALE_DIMS.num_samples - 1) * float(params.noise_scale) ** 2
    strength_variance = (float(params.max_strength) - float(params.min_strength)) ** 2 / 12
    by_noise = (noise + spread**2) * _at_end("gate_norm")(run) ** 2
    return np.sqrt(2 * (by_noise + strength_variance * _at_end("signal_drive")(run) ** 2))


@claim("edge.lemma-2.outputs", paper="edge", where="Lemma 2, Eq. (14)", kind="rate", margin=EXPONENT_MARGIN)
@over_scales(_output_gap, exponent=1.0)
class Lemma2:
    """Two tasks of one cluster have gate outputs within O(sigma_0) of each other, in root mean square."""

    formula = (
        r"\left( \mathbb{E}\left\lvert h_m(\mathbf{X}, \theta_t^{(m)}) - h_m(\tilde{\mathbf{X}}, "
        r"\theta_t^{(m)}) \right\rvert^2 \right)^{1/2} = \mathcal{O}(\sigma_0), "
        r"\quad \mathbf{w}, \tilde{\mathbf{w}} \in \mathcal{W}_n"
    )


@claim("edge.lemma-3.sum", paper="edge", where="Lemma 3, proof", kind="identity", margin=1e-3)
@on(SCALING, named(*SCALE_CELLS), over(SCALE_CELLS, lambda run: run.records.gate_drift.max(axis=0).astype(np.float64)))
class Lemma3Sum:
    """Gate steps sum to zero over the experts, and so in every round do the gates, relative to their largest entry."""

    formula = (
        r"\sum_{m \in \mathbb{M}} \left( \theta_t^{(m)} - \theta_{t-1}^{(m)} \right) = \mathbf{0}, \quad "
        r"\sum_{m \in \mathbb{M}} \theta_t^{(m)} = \mathbf{0}"
    )


@claim("edge.lemma-3.own", paper="edge", where="Lemma 3, first case", kind="rate", margin=EXPONENT_MARGIN)
@over_scales(_largest_step("own_change", -1), exponent=1.0)
class Lemma3Own:
    """Completing a task of kind n lowers the expert's own output <theta, v_n> by O(sigma_0), in all rounds up to T1."""

    formula = (
        r"\left\langle \theta_t^{(m)} - \theta_{t-1}^{(m)}, \mathbf{v}_n \right\rangle = -\mathcal{O}(\sigma_0) "
        r"\quad \text{if } m \text{ completes a task of } \mathcal{W}_n \text{ at } t \le T_1"
    )


@claim("edge.lemma-3.others", paper="edge", where="Lemma 3, second case", kind="rate", margin=EXPONENT_MARGIN)
@over_numbers(_largest_step("others_change", 1), exponent=-1.0)
class Lemma3Others:
    """It raises every other expert's output <theta, v_n> by O(1/M), in all rounds up to T1."""

    formula = (
        r"\left\langle \theta_t^{(m)} - \theta_{t-1}^{(m)}, \mathbf{v}_n \right\rangle = \mathcal{O}(M^{-1}) "
        r"\quad \text{if another expert completes a task of } \mathcal{W}_n \text{ at } t \le T_1"
    )


@claim("edge.lemma-3.others-scale", paper="edge", where="Lemma 3, second case", kind="rate", margin=EXPONENT_MARGIN)
@over_scales(_largest_step("others_change", 1), exponent=1.0)
class Lemma3OthersScale:
    """It raises every other expert's output <theta, v_n> by O(sigma_0), in all rounds up to T1."""

    formula = (
        r"\left\langle \theta_t^{(m)} - \theta_{t-1}^{(m)}, \mathbf{v}_n \right\rangle = \mathcal{O}(\sigma_0) "
        r"\quad \text{if another expert completes a task of } \mathcal{W}_n \text{ at } t \le T_1"
    )


@claim("edge.lemma-4.gates", paper="edge", where="Lemma 4", kind="rate", margin=EXPONENT_MARGIN)
@over_scales(_largest("gate_size"), exponent=0.5)
class Lemma4:
    """Up to T1 the gates stay O(sigma_0^(1/2)) in every entry."""

    formula = r"\left\lVert \theta_t^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0^{1/2}), \quad 1 \le t \le T_1"


def _pairs(run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """|h_m - h_m'|, |pi_m - pi_m'| and pi_m' of all ordered pairs of experts at the last round (M, M, B)."""
    count = int(run.params.num_experts)
    outputs = run.records.gate_outputs[-1][:count].astype(np.float64)
    probabilities = run.records.gate_probabilities[-1][:count].astype(np.float64)
    return (
        np.abs(outputs[:, None] - outputs[None, :]),
        np.abs(probabilities[:, None] - probabilities[None, :]),
        np.broadcast_to(probabilities[None, :], (count, count, probabilities.shape[1])),
    )


def _lipschitz_excess(run: Run) -> np.ndarray:
    gap, difference, _ = _pairs(run)
    return np.maximum(difference - gap / 2, 0).max(axis=(0, 1))


def _printed_shortfall(run: Run) -> np.ndarray:
    gap, difference, other = _pairs(run)
    return np.maximum(other * gap - difference, 0).max(axis=(0, 1))


def _smaller_shortfall(run: Run) -> np.ndarray:
    gap, difference, other = _pairs(run)
    smaller = np.minimum(other, other.transpose(1, 0, 2))
    return np.maximum(smaller * gap - difference, 0).max(axis=(0, 1))


_FIGURE_CELLS = tuple(cell_name(number) for number in (10, 50))


@claim("edge.lemma-5.upper", paper="edge", where="Lemma 5, first case", kind="identity", margin=TOLERANCE)
@on(ADAPTIVE, by_servers(10, 50), over(_FIGURE_CELLS, _lipschitz_excess))
class Lemma5Upper:
    """|pi_m - pi_m'| is at most half of |h_m - h_m'|, for all pairs of experts."""

    formula = r"\left\lvert \pi_m - \pi_{m'} \right\rvert \le \frac{1}{2} \left\lvert h_m - h_{m'} \right\rvert"


@claim(
    "edge.lemma-5.lower",
    paper="edge",
    where="Lemma 5, proof of the second case",
    kind="identity",
    margin=TOLERANCE,
    replaced_by="edge.lemma-5.lower-of-the-smaller",
)
@on(ADAPTIVE, by_servers(10, 50), over(_FIGURE_CELLS, _printed_shortfall))
class Lemma5Lower:
    """|pi_m - pi_m'| is at least pi_m' |h_m - h_m'|, for all ordered pairs of experts."""

    formula = r"\left\lvert \pi_m - \pi_{m'} \right\rvert \ge \pi_{m'} \left\lvert h_m - h_{m'} \right\rvert"


@claim(
    "edge.lemma-5.lower-of-the-smaller",
    paper="edge",
    where="replaces Lemma 5, second case",
    kind="identity",
    margin=TOLERANCE,
)
@on(ADAPTIVE, by_servers(10, 50), over(_FIGURE_CELLS, _smaller_shortfall))
class Lemma5Smaller:
    """|pi_m - pi_m'| is at least min(pi_m, pi_m') |h_m - h_m'|, for all pairs of experts."""

    formula = (
        r"\left\lvert \pi_m - \pi_{m'} \right\rvert \ge \min(\pi_m, \pi_{m'}) \left\lvert h_m - h_{m'} \right\rvert"
    )


def _any_disorder(run: Run) -> np.ndarray:
    """Whether at T1 some expert that specialises in kind n has pi_m(v_n) <= pi_m(v_n') for another kind."""
    gates = run.records.gates[experiments.explored_record(run)][: int(run.params.num_experts)].astype(np.float64)
    drives = np.einsum("mdb,ndb->mnb", gates, run.state.pool.signals.astype(np.float64))
    log_probabilities = drives - np.logaddexp.reduce(drives, axis=0, keepdims=True)
    return np.any(drives.argmax(axis=1) != log_probabilities.argmax(axis=1), axis=0)


@claim("edge.lemma-6.order", paper="edge", where="Lemma 6, Eq. (27)", kind="probability")
@on(ADAPTIVE, by_servers(10, 50), over(_FIGURE_CELLS, _any_disorder), FAILURE, side="at_most")
class Lemma6:
    """At T1 an expert whose output is largest for kind n has its largest probability there, but for chance delta."""

    formula = (
        r"\mathbb{P}\left[ \exists\, m \in \mathcal{M}_n, n' \neq n : "
        r"\pi_m(\mathbf{X}_n, \Theta_{T_1}) \le \pi_m(\mathbf{X}_{n'}, \Theta_{T_1}) \right] \le \delta"
    )


@claim("edge.lemma-7.loads", paper="edge", where="Lemma 7, Eq. (29)", kind="rate", margin=EXPONENT_MARGIN)
@over_numbers(_at_end("load_gap"), exponent=-1.0)
class Lemma7:
    """At T1 every expert's share of the tasks is within O(1/M) of 1/M."""

    formula = r"\left\lvert f_{T_1}^{(m)} - \frac{1}{M} \right\rvert = \mathcal{O}(M^{-1}), \quad m \in \mathbb{M}"


@claim("edge.lemma-7.learning-rate", paper="edge", where="Lemma 7, Eq. (29)", kind="rate", margin=EXPONENT_MARGIN)
@over_rates(_at_end("load_gap"), exponent=0.5)
class Lemma7Rate:
    """At T1 every expert's share of the tasks is within O(eta^(1/2)) of 1/M, for small eta."""

    formula = r"\left\lvert f_{T_1}^{(m)} - \frac{1}{M} \right\rvert = \mathcal{O}(\eta^{1/2}), \quad m \in \mathbb{M}"


@claim("edge.lemma-7.hoeffding", paper="edge", where="Lemma 7, proof: 1 - 2 M exp(-2 eps^2 T1)", kind="probability")
class Lemma7Hoeffding:
    """At T1 every expert's share is within Hoeffding's eps = (ln(2M/delta) / (2 T1))^(1/2), but for chance delta."""

    formula = (
        r"\mathbb{P}\left[ \underset{m \in \mathbb{M}}{\max} \left\lvert f_{T_1}^{(m)} - \frac{1}{M} \right\rvert > "
        r"\sqrt{\frac{\ln(2 M / \delta)}{2\, T_1}} \right] \le \delta"
    )
    experiment = SERVER_GRID
    side = "at_most"
    labels = by_servers(*SERVERS)
    predict = staticmethod(lambda runs: FAILURE)

    @staticmethod
    def observe(runs: Runs) -> np.ndarray:
        def is_outside(run: Run) -> np.ndarray:
            rounds = experiments.exploration_rounds(run.params)
            allowed = np.sqrt(np.log(2 * int(run.params.num_experts) / FAILURE) / (2 * rounds))
            return _at_end("load_gap")(run) > allowed

        return over(SERVER_CELLS, is_outside)(runs)


@claim("edge.lemma-8.scale", paper="edge", where="Lemma 8", kind="rate", margin=EXPONENT_MARGIN)
@over_scales(_at_end("gate_gap"), exponent=1.0)
class Lemma8Scale:
    """At T1 the gates of two experts are within O(sigma_0) of each other in every entry."""

    formula = (
        r"\left\lVert \theta_{T_1}^{(m)} - \theta_{T_1}^{(m')} \right\rVert_\infty = \mathcal{O}(\sigma_0), "
        r"\quad m \neq m'"
    )


@claim("edge.lemma-8.learning-rate", paper="edge", where="Lemma 8", kind="rate", margin=EXPONENT_MARGIN)
@over_rates(_at_end("gate_gap"), exponent=-0.5)
class Lemma8Rate:
    """At T1 the gates of two experts are within O(eta^(-1/2)) of each other in every entry, for small eta."""

    formula = (
        r"\left\lVert \theta_{T_1}^{(m)} - \theta_{T_1}^{(m')} \right\rVert_\infty = \mathcal{O}(\eta^{-1/2}), "
        r"\quad m \neq m'"
    )


def _history_sum(runs: Runs) -> np.ndarray:
    """The mean over a run's tasks of the right side of (34), from the experts they went to (B,)."""
    records = runs[cell_name(HISTORY_EXPERTS)].records
    starts = range(0, records.expert.shape[1], 256)  # in parts: the table of all pairs of tasks is large
    parts = [(records.expert[:, at : at + 256], records.truth[..., at : at + 256].astype(np.float64)) for at in starts]
    return np.concatenate([_history_part(expert, truth) for expert, truth in parts])


def _history_part(expert: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The same for replicates with experts (T, B) and truths (T, p, B)."""
    ratio = theory.overparameterization_ratio(HISTORY_DIMS.num_features, HISTORY_DIMS.num_samples)
    is_routed = expert >= 0
    together = (expert[:, None] == expert[None, :]) & is_routed[:, None]
    loads = together.sum(axis=1)
    later = np.triu(np.ones(together.shape[:2]), 1)[:, :, None] * together
    weights = (1 - ratio) * ratio ** later.sum(axis=1)  # of the task in row l, for its L - l successors
    norms = np.sum(truth**2, axis=1)
    products = np.moveaxis(np.einsum("bid,bjd->bij", *(2 * (truth.transpose(2, 0, 1),)), optimize=True), 0, -1)
    distances = norms[:, None] + norms[None, :] - 2 * products
    errors = ratio**loads * norms + np.sum(together * weights[:, None] * distances, axis=0)
    return np.sum(is_routed * errors, axis=0) / np.maximum(is_routed.sum(axis=0), 1)


def _last_error(runs: Runs) -> np.ndarray:
    return runs[cell_name(HISTORY_EXPERTS)].records.flushed[-1].astype(np.float64)


@claim("edge.lemma-9.history", paper="edge", where="Lemma 9, Eq. (34)", kind="equality", margin=0.02)
@on(HISTORY, named(f"t = {HISTORY.num_rounds}"), _last_error, _history_sum)
class Lemma9:
    """Under uniform routing the mean error is that of (34), from the truths that each expert has met in their order."""

    formula = (
        r"\mathbb{E}\, \frac{1}{t} \sum_{i=1}^{t} \left\lVert \mathbf{w}_t^{(m_i)} - \mathbf{w}_{n_i} \right\rVert^2 = "
        r"\mathbb{E}\, \frac{1}{t} \sum_{i=1}^{t} \left( r^{L_t^{(m_i)}} \left\lVert \mathbf{w}_{n_i} \right\rVert^2 + "
        r"\sum_{l=1}^{L_t^{(m_i)}} (1 - r)\, r^{L_t^{(m_i)} - l} "
        r"\left\lVert \mathbf{w}_{\tau^{(m_i)}(l)} - \mathbf{w}_{n_i} \right\rVert^2 \right)"
    )
