"""Sentences about Figs. 8 and 9: what the threshold of termination does to loads and learning."""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.continual.claims.measurements import claim, per_cell
from moe_theory.continual.claims.proposition_3 import SHARE_MARGIN
from moe_theory.runs import Run
from moe_theory.verify.claim import Values, named, over

CELLS = tuple(experiments.threshold_name(power) for power in experiments.THRESHOLD_POWERS)
LARGE, SMALL = CELLS[:2], CELLS[2:]  # Gamma > lambda, and Gamma <= lambda
NEARLY_ALWAYS = 0.95  # our reading of a decision that noise cannot alter
LOAD_MARGIN = 0.05  # of the number of experts in use
FORGETTING_MARGIN = 0.05  # of the gap between tasks: our reading of robust


def _counted(run: Run) -> np.ndarray:
    """Arrivals past termination, or past T1 where gates are never fixed (T, B)."""
    terminated = run.records.terminated
    return terminated | (~terminated[-1] & (run.rounds > experiments.stage_rounds(run.params))[:, None])


def _evenness(run: Run) -> np.ndarray:
    counted = _counted(run)
    experts = range(experiments.FIGURE_8.dims.max_experts)
    loads = np.stack([np.sum(counted & (run.records.expert == expert), axis=0) for expert in experts])
    return experiments.effective_experts(loads[None].astype(np.float64))[0]


def _contested(run: Run) -> np.ndarray:
    return _counted(run) & (run.records.set_size >= 2)


@claim("continual.figure-8.leader", where="App. A.7, Fig. 8 (a), (b)", kind="lower_bound")
class Figure8Leader:
    """With Gamma > lambda noise does not turn the router from the expert of highest gate output: 95 % of the arrivals.

    Arrivals past termination (past T1 without one), as shares of all rounds, as is what is asked for.
    """

    formula = r"\Gamma > \lambda \Rightarrow m_t = \underset{m}{\text{arg max}}\, h_m(X_t, \theta^{(m)})"
    experiment = experiments.FIGURE_8
    labels, observe = per_cell(LARGE, lambda run: np.mean(_counted(run) & run.records.led_all, axis=0))
    predict = over(LARGE, lambda run: NEARLY_ALWAYS * np.mean(_counted(run), axis=0))


@claim(
    "continual.figure-8.imbalance",
    where="App. A.7, Fig. 8 (a), (b)",
    kind="ordering",
    replaced_by="continual.figure-8.same-loads",
)
class Figure8Imbalance:
    """Loads under Gamma > lambda are less even than under Gamma at most lambda: fewer experts in use past termination.

    Experts in use: the exponential of the entropy of their shares.
    """

    formula = r"\Gamma > \lambda \geq \Gamma' \Rightarrow \exp H(\Gamma) < \exp H(\Gamma')"
    experiment = experiments.FIGURE_8
    labels = named("(a) below (c)", "(b) below (d)")
    observe = over(LARGE, _evenness)
    predict = over(SMALL, _evenness)


@claim(
    "continual.figure-8.same-loads",
    where="replaces App. A.7, Fig. 8: the threshold and the loads",
    kind="equality",
    margin=LOAD_MARGIN,
)
class Figure8SameLoads:
    """The threshold decides little: as many experts are in use for Gamma > lambda as for others, to 5 %."""

    formula = r"\exp H(\Gamma) = \exp H(\Gamma'), \quad \Gamma > \lambda \geq \Gamma'"
    experiment = experiments.FIGURE_8
    labels = named("(a) and (c)", "(b) and (d)")
    observe = over(LARGE, _evenness)
    predict = over(SMALL, _evenness)


@claim("continual.figure-8.balance", where="App. A.7, Fig. 8 (c), (d)", kind="equality", margin=SHARE_MARGIN)
class Figure8Balance:
    """With Gamma at most lambda experts of one set share its arrivals evenly: its leader has 1/|M_k| of them.

    Past termination (past T1 without one), over arrivals with at least two experts in their set.
    """

    formula = (
        r"\Gamma \leq \lambda \Rightarrow \mathbb{P}(m_t = m \mid m \in \mathcal{M}_k) = \frac{1}{|\mathcal{M}_k|}"
    )
    experiment = experiments.FIGURE_8
    labels, observe = per_cell(SMALL, lambda run: np.mean(_contested(run) & run.records.led, axis=0))
    predict = over(SMALL, lambda run: np.mean(_contested(run) / np.maximum(run.records.set_size, 1), axis=0))


def _final(name: str, *cells: str) -> Values:
    return over(cells, lambda run: getattr(run.records, name)[-1].astype(np.float64))


@claim("continual.figure-9.forgetting", where="App. A.7, Fig. 9", kind="equality", margin=FORGETTING_MARGIN)
class Figure9Forgetting:
    """Forgetting at the end hardly depends on the threshold: to 5 % of the gap between tasks."""

    formula = r"\mathbb{E}[F_T(\Gamma)] = \mathbb{E}[F_T(\sigma_0^{0.75})]"
    experiment = experiments.FIGURE_9
    labels = named(*CELLS[1:])
    observe = _final("forgetting", *CELLS[1:])
    predict = _final("forgetting", CELLS[0])
    scale = staticmethod(lambda runs: np.asarray(experiments.gaps_of(runs[CELLS[0]]).task_gap)[:, None])


@claim("continual.figure-9.generalization", where="App. A.7, Fig. 9", kind="ordering")
class Figure9Generalization:
    """Balanced loads, with Gamma at most lambda, end in less overall generalization error than Gamma > lambda."""

    formula = r"\Gamma > \lambda \geq \Gamma' \Rightarrow \mathbb{E}[G_T(\Gamma')] < \mathbb{E}[G_T(\Gamma)]"
    experiment = experiments.FIGURE_9
    labels = named(*(f"{small} below {large}" for small in SMALL for large in LARGE))
    observe = _final("generalization_error", *np.repeat(SMALL, len(LARGE)))
    predict = _final("generalization_error", *LARGE * len(SMALL))


@claim("continual.figure-9.diversity", where="App. A.7, Fig. 9", kind="ordering")
class Figure9Diversity:
    """Diverse experts have less overall generalization error than one model for all tasks; M = 5 against M = 1."""

    formula = r"\mathbb{E}[G_T^{M=5}] < \mathbb{E}[G_T^{M=1}]"
    experiment = experiments.FIGURE_9
    labels = named(experiments.threshold_name(experiments.PERTURBATION_POWER))
    observe = _final("generalization_error", experiments.threshold_name(experiments.PERTURBATION_POWER))
    predict = _final("generalization_error", experiments.SINGLE)
