"""Lemma 9: the error of a task after T1, and from its expert's history before."""

import numpy as np

from moe_theory.edge import experiments
from moe_theory.edge.params import Dims
from moe_theory.edge.statements.theorem_1 import late_errors
from moe_theory.edge.theory import overparameterization_ratio
from moe_theory.verify.region import Size
from moe_theory.verify.statement import Hypothesis, bound, equality, statement


def both_errors(run) -> np.ndarray:
    """Twice the task gap: two errors of routing that does not look at the task (B,)."""
    return 2 * experiments.task_gap(run)


SETTLED = statement(
    "lemma-9-settled",
    where="Appendix F, Lemma 9, first sentence",
    says=r"""After T1 a later task's error at its expert is what it was with that expert's model at T1, up to
    O(sigma_0^2). $$\left\lVert \mathbf{w}_t^{(m_i)} - \mathbf{w}_{n_i} \right\rVert^2 = \left\lVert
    \mathbf{w}_{T_1}^{(m_i)} - \mathbf{w}_{n_i} \right\rVert^2 + \mathcal{O}(\sigma_0^2), \quad t > T_1$$""",
    hypotheses=experiments.CONVERGES,
    why="""Truths and models are of size sigma_0, so that both errors are O(sigma_0^2) by themselves, and so is any
    difference between them, whatever the router does. With O(sigma_0^4) in its place, as for tasks of one cluster, it
    would be the claim that models stay as they are, which Proposition 3 makes and which is false.""",
    instance="Uniform routing: the error is 2 p (1 - 1/N) sigma_0^2 at T1 and at any later time.",
    corrected="How a task's error goes on after T1 follows from the tasks that its server gets: "
    "`edge.theorem-1.given-routes`.",
    note="The paper takes it from Propositions 2 and 3 without a proof of its own.",
    proof="blind_routing_satisfies_it.py",
)
SETTLED.also("theorem-1.given-routes", role="corrected")


@SETTLED.charitable("lemma-9.settled", experiments.BY_SCALE, bound(at_most=both_errors, trivial=both_errors))
def change_of_error(run) -> np.ndarray:
    r"""The mean error of the tasks past T1 differs by O(sigma_0^2) between the models at T and those at T1.
    $$\left\lvert \left\lVert \mathbf{w}_t^{(m_i)} - \mathbf{w}_{n_i} \right\rVert^2 - \left\lVert
    \mathbf{w}_{T_1}^{(m_i)} - \mathbf{w}_{n_i} \right\rVert^2 \right\rvert \le 2 \Delta = \mathcal{O}(\sigma_0^2)$$"""
    late, earlier = late_errors(run)
    return np.abs(late - earlier)


def history_sum(run) -> np.ndarray:
    """The mean over a run's tasks of the right side of (34), from the experts they went to (B,)."""
    records = run.records
    starts = range(0, records.expert.shape[1], 256)  # in parts: the table of all pairs of tasks is large
    parts = [(records.expert[:, at : at + 256], records.truth[..., at : at + 256].astype(np.float64)) for at in starts]
    return np.concatenate([history_part(expert, truth, run.dims) for expert, truth in parts])


@statement(
    "lemma-9-history",
    where="Appendix F, Lemma 9, Eq. (34)",
    says=r"""Up to T1 the expected error of a task is a geometrically weighted mean over the truths that its expert has
    met. $$\mathbb{E}\left\lVert \mathbf{w}_t^{(m_i)} - \mathbf{w}_{n_i} \right\rVert^2 =
    r^{L_t^{(m_i)}} \mathbb{E}\left\lVert \mathbf{w}_{n_i} \right\rVert^2 + \sum_{l=1}^{L_t^{(m_i)}} (1 - r)\,
    r^{L_t^{(m_i)} - l} \mathbb{E}\left\lVert \mathbf{w}_{\tau^{(m_i)}(l)} - \mathbf{w}_{n_i} \right\rVert^2$$""",
    hypotheses=(
        Hypothesis(
            "at most T_1 rounds are run", lambda dims, run: run.rounds[-1] <= experiments.exploration_rounds(run.params)
        ),
        experiments.ISOTROPIC,
    ),
    note="""The rotational symmetry that its proof takes is a hypothesis: E|P(w - w')|^2 = (s/p)|w - w'|^2 needs
    features without a preferred direction. One column is the signal. Drawn apart from the truths it does no harm that
    2 % would show at Fig. 3's sizes; along its task's truth it does.""",
    corrected="""Where every column of X_t is isotropic and drawn anew, the signal's too, and routes do not see
    features, it holds. By Definition 1, where tasks do not decide their routes, a single expert's exact recursion for
    the moments of its model, with its signal column, at each expert's own load: `edge.exact.nearest`.""",
    disproof="one_arrival_history.py",
    derivation="isotropic_history.py",
    why="""The proof takes features without a preferred direction: E|P(w - w')|^2 = (s/p)|w - w'|^2. By Definition 1 one
    column is the signal's, and a kind's signal is the same each time.""",
    instance="""Signals along truths: a task just learned has no error, and (34) gives it r^L |w|^2 or more. One kind, L
    times, its signal in any direction: (1 - 1/p) ((p - s)/(p - 1))^L |w|^2 in the mean, and (34) has ((p - s)/p)^L.""",
    free=(Size("num_samples", 1, 14), Size("num_tasks", 2, 15), Size("num_features", 11, 30)),
).charitable(
    "lemma-9.history",
    experiments.FIRST_TASKS,
    equality(history_sum, margin=0.02),
    where="Lemma 9, Eq. (34)",
    labels=[f"t = {experiments.HISTORY.num_rounds}"],
)
def last_error(run) -> np.ndarray:
    r"""Under uniform routing the mean error is that of (34), from the truths that each expert has met in their order.
    $$\mathbb{E}\, \frac{1}{t} \sum_{i=1}^{t} \left\lVert \mathbf{w}_t^{(m_i)} - \mathbf{w}_{n_i} \right\rVert^2 =
    \mathbb{E}\, \frac{1}{t} \sum_{i=1}^{t} \left( r^{L_t^{(m_i)}} \left\lVert \mathbf{w}_{n_i} \right\rVert^2 +
    \sum_{l=1}^{L_t^{(m_i)}} (1 - r)\, r^{L_t^{(m_i)} - l}
    \left\lVert \mathbf{w}_{\tau^{(m_i)}(l)} - \mathbf{w}_{n_i} \right\rVert^2 \right)$$"""
    return run.records.flushed[-1].astype(np.float64)


def history_part(expert: np.ndarray, truth: np.ndarray, dims: Dims = experiments.HISTORY_DIMS) -> np.ndarray:
    """The same for replicates with experts (T, B) and truths (T, p, B)."""
    ratio = overparameterization_ratio(dims.num_features, dims.num_samples)
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
