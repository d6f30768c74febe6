"""Sentences about Fig. 8: what the threshold of termination does to loads."""

import numpy as np

from moe_theory.continual.experiments import FIGURE_8, THRESHOLDS, effective_experts, stage_rounds
from moe_theory.verify.statement import bound, equality, ordering, ranged, statement

CELLS = tuple(THRESHOLDS)
LARGE, SMALL = CELLS[:2], CELLS[2:]  # Gamma > lambda, and Gamma <= lambda
ALL = FIGURE_8.together(*CELLS)
NEARLY_ALWAYS = 0.95  # our reading of a decision that noise cannot alter
LOAD_MARGIN = 0.05  # of the number of experts in use
SHARE_MARGIN = 0.1  # of a share 1/|M_k|

IMBALANCE = statement(
    "figure-8-imbalance",
    where="Appendix A.7, Fig. 8 (a), (b)",
    says=r"""A threshold above lambda ends learning while one expert of a cluster is ahead by more than the noise, so
    loads stay unequal.
    $$\Gamma > \lambda \geq \Gamma' \Rightarrow \exp H(\Gamma) < \exp H(\Gamma')$$""",
    note="Within what was run the threshold makes no difference to the number of experts in use.",
)
BALANCE = statement(
    "figure-8-balance",
    where="Appendix A.7, Fig. 8 (c), (d)",
    says=r"""A threshold of at most lambda leaves gaps that the noise bridges, so specialists of one cluster share its
    tasks.
    $$\Gamma \leq \lambda \Rightarrow \mathbb{P}(m_t = m \mid m \in \mathcal{M}_k) = \frac{1}{|\mathcal{M}_k|}$$""",
    note="An even share within a tenth is our reading of balance: the leader of a set gets almost twice that.",
)


def counted(run) -> np.ndarray:
    """Arrivals past termination, or past T1 where gates are never fixed (T, B)."""
    terminated = run.records.terminated
    return terminated | (~terminated[-1] & (run.rounds > stage_rounds(run.params))[:, None])


def evenness(run) -> np.ndarray:
    """The number of experts in use (B,)."""
    is_counted, experts = counted(run), range(FIGURE_8.dims.max_experts)
    loads = np.stack([np.sum(is_counted & (run.records.expert == expert), axis=0) for expert in experts])
    return effective_experts(loads[None].astype(np.float64))[0]


def evenness_of_small(*runs) -> np.ndarray:
    return np.stack([evenness(run) for run in runs[len(LARGE) :]])


@IMBALANCE.literal(
    "figure-8.leader",
    FIGURE_8.over(LARGE),
    bound(at_least=lambda run: NEARLY_ALWAYS * np.mean(counted(run), axis=0)),
    where="App. A.7, Fig. 8 (a), (b)",
)
def leads(run) -> np.ndarray:
    r"""With Gamma > lambda noise does not turn the router from the expert of highest gate output: 95 % of the arrivals.

    Arrivals past termination (past T1 without one), as shares of all rounds, as is what is asked for.
    $$\Gamma > \lambda \Rightarrow m_t = \underset{m}{\text{arg max}}\, h_m(X_t, \theta^{(m)})$$"""
    return np.mean(counted(run) & run.records.led_all, axis=0)


@IMBALANCE.figure(
    "figure-8.imbalance",
    ALL,
    ordering(below=evenness_of_small),
    where="App. A.7, Fig. 8 (a), (b)",
    labels=["(a) below (c)", "(b) below (d)"],
    instead="figure-8.same-loads",
).says("""
    Loads under Gamma > lambda are less even than under Gamma at most lambda: fewer experts in use past termination.

    Experts in use: the exponential of the entropy of their shares.""")
@IMBALANCE.replacement(
    "figure-8.same-loads",
    ALL,
    equality(evenness_of_small, margin=LOAD_MARGIN),
    where="replaces App. A.7, Fig. 8: the threshold and the loads",
    labels=["(a) and (c)", "(b) and (d)"],
).says(r"""The threshold decides little: as many experts are in use for Gamma > lambda as for others, to 5 %.
    $$\exp H(\Gamma) = \exp H(\Gamma'), \quad \Gamma > \lambda \geq \Gamma'$$""")
def evenness_of_large(*runs) -> np.ndarray:
    return np.stack([evenness(run) for run in runs[: len(LARGE)]])


def contested(run) -> np.ndarray:
    return counted(run) & (run.records.set_size >= 2)


@ranged(0, 1)
def even_share(run) -> np.ndarray:
    return np.mean(contested(run) / np.maximum(run.records.set_size, 1), axis=0)


@BALANCE.literal(
    "figure-8.balance",
    FIGURE_8.over(SMALL),
    equality(even_share, margin=SHARE_MARGIN),
    where="App. A.7, Fig. 8 (c), (d)",
)
@ranged(0, 1)
def leader_share(run) -> np.ndarray:
    """With Gamma at most lambda experts of one set share its arrivals evenly: its leader has 1/|M_k| of them.

    Past termination (past T1 without one), over arrivals with at least two experts in their set."""
    return np.mean(contested(run) & run.records.led, axis=0)
