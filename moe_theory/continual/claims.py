"""Claims of the continual-learning paper, each beside the right statement where it is wrong.

Predictions are made for each replicate's own pool and loads, so that only what the statement leaves to chance is
left in a difference. Metrics are squared model distances; margins are fractions of a `scale` in the same unit.
"""

import jax
import jax.numpy as jnp
import numpy as np

from moe_theory.continual import experiments, theory
from moe_theory.continual.experiments import FIGURE_2, HISTORY, NUM_POOLS, ROUTING, SINGLE_EXPERT, cell_name
from moe_theory.continual.system import balance_cost, draw, learn
from moe_theory.core import gating
from moe_theory.core.random import root_key
from moe_theory.sweep import Run
from moe_theory.verify.claim import Runs, claim

SINGLE, MANY, FEW = cell_name(1, True), cell_name(20, True), cell_name(5, True)
MOE_SIZES = (5, 10, 20)
LATE = (100, 200, 500, 1000, 2000)  # rounds at which Theorem 1 and 2 are tested, the last being the paper's T
ALMOST_ZERO = 0.05  # of a single expert's error: our reading of "almost zero"


def _rows(run: Run, rounds: tuple[int, ...]) -> np.ndarray:
    return np.searchsorted(run.rounds, rounds)


def _at(run: Run, values: np.ndarray, rounds: tuple[int, ...]) -> np.ndarray:
    """Values (R, B) at some recorded rounds, as components (B, V)."""
    return values[_rows(run, rounds)].T.astype(np.float64)


def _labels(*rounds: int):
    return lambda runs: [f"t = {time}" for time in rounds]


def _final(runs: Runs, metric: str, num_experts: int, terminate: bool = True) -> np.ndarray:
    return getattr(runs[cell_name(num_experts, terminate)].records, metric)[-1].astype(np.float64)


def _by_size(runs: Runs):
    return [f"M = {num_experts}" for num_experts in MOE_SIZES]


def _more_experts_than_tasks(dims, runs: Runs):
    num_experts, need = runs[MANY].params.num_experts, dims.num_tasks * np.log(dims.num_tasks)
    return [(f"M = {num_experts} >= N ln N = {need:.1f}", num_experts >= need)]


def _fewer_experts_than_tasks(dims, runs: Runs):
    num_experts, num_clusters = runs[FEW].params.num_experts, runs[FEW].params.num_clusters
    need = num_clusters * np.log(num_clusters)
    return [
        (f"M = {num_experts} < N = {dims.num_tasks}", num_experts < dims.num_tasks),
        (f"M = {num_experts} >= K ln K = {need:.1f}", num_experts >= need),
    ]


def _pool_gaps(runs: Runs) -> theory.Gaps:
    """Gaps of the shared pools (B,), computed once a pool."""
    run = runs[SINGLE]
    pools = experiments.pools_of(run, NUM_POOLS)
    return theory.Gaps(*np.transpose([theory.gaps(pool) for pool in pools])[:, run.replicates % NUM_POOLS])


def _proposition_4(runs: Runs) -> theory.Bound:
    dims = SINGLE_EXPERT.dims
    ratio = theory.overparameterization_ratio(dims.num_features, dims.num_samples)
    return theory.proposition_4(_pool_gaps(runs), ratio, runs[SINGLE].rounds[:, None])


def _task_gap(runs: Runs) -> np.ndarray:
    return _pool_gaps(runs).task_gap[:, None]


@claim(
    "continual.proposition-4.forgetting",
    paper="continual",
    where="Proposition 4, Eq. (17)",
    kind="equality",
    margin=0.02,
    replaced_by="continual.exact.forgetting",
)
class Proposition4Forgetting:
    """A single expert's expected forgetting is (W - Delta) times the mean of r^t - r^tau, and so vanishes."""

    experiment = SINGLE_EXPERT
    scale = _task_gap

    def observe(runs):
        return runs[SINGLE].records.forgetting.T

    def predict(runs):
        return _proposition_4(runs).forgetting.T


@claim(
    "continual.exact.forgetting",
    paper="continual",
    where="replaces Proposition 4, Eq. (17)",
    kind="equality",
    margin=0.02,
)
class ExactForgetting:
    """A single expert's expected forgetting is what the exact moment recursion gives, the task's own arrival included."""

    experiment = SINGLE_EXPERT
    scale = _task_gap

    def observe(runs):
        return runs[SINGLE].records.forgetting.T

    def predict(runs):
        return experiments.exact_of(runs[SINGLE], SINGLE_EXPERT.dims).forgetting.T


@claim(
    "continual.proposition-4.generalization-error",
    paper="continual",
    where="Proposition 4, Eq. (18)",
    kind="equality",
    margin=0.02,
    replaced_by="continual.exact.generalization-error",
)
class Proposition4GeneralizationError:
    """A single expert's expected overall generalization error after T rounds is r^T W + (1 - r^T) Delta."""

    experiment = SINGLE_EXPERT
    labels = _labels(SINGLE_EXPERT.num_rounds)

    def observe(runs):
        return runs[SINGLE].records.generalization_error[-1]

    def predict(runs):
        return _proposition_4(runs).generalization_error[-1]


@claim(
    "continual.exact.generalization-error",
    paper="continual",
    where="replaces Proposition 4, Eq. (18)",
    kind="equality",
    margin=0.02,
)
class ExactGeneralizationError:
    """A single expert's expected overall generalization error is what the exact moment recursion gives."""

    experiment = SINGLE_EXPERT

    def observe(runs):
        return runs[SINGLE].records.generalization_error.T

    def predict(runs):
        return experiments.exact_of(runs[SINGLE], SINGLE_EXPERT.dims).generalization_error.T


@claim("continual.theorem-1.forgetting", paper="continual", where="Theorem 1, Eq. (19)", kind="upper_bound")
class Theorem1Forgetting:
    """With more experts than tasks, expected forgetting during exploration is below the load bound of (19)."""

    experiment = FIGURE_2
    hypotheses = _more_experts_than_tasks
    labels = _labels(20, 40)  # the recorded rounds up to T1 = 40

    def observe(runs):
        return _at(runs[MANY], runs[MANY].records.forgetting, (20, 40))

    def predict(runs):
        return _at(runs[MANY], experiments.bounds_of(runs[MANY], FIGURE_2.dims).forgetting, (20, 40))


@claim(
    "continual.theorem-1.forgetting-decay",
    paper="continual",
    where="Theorem 1, below Eq. (19)",
    kind="equality",
    margin=0.05,
)
class Theorem1ForgettingDecay:
    """After exploration nothing more is forgotten: E[F_t] = (T1 - 1)/(t - 1) E[F_T1] for t > T1."""

    experiment = FIGURE_2
    hypotheses = _more_experts_than_tasks
    labels = _labels(*LATE)

    def observe(runs):
        return _at(runs[MANY], runs[MANY].records.forgetting, LATE)

    def predict(runs):
        params = runs[MANY].params
        explored = int(theory.exploration_rounds(params.num_experts, params.learning_rate))
        return _at(runs[MANY], runs[MANY].records.forgetting, (explored,)) * (explored - 1) / (np.array(LATE) - 1)

    def scale(runs):
        return experiments.gaps_of(runs[MANY]).task_gap[:, None]


@claim("continual.theorem-1.generalization-error", paper="continual", where="Theorem 1, Eq. (20)", kind="upper_bound")
class Theorem1GeneralizationError:
    """With more experts than tasks, the expected overall generalization error is below the load bound of (20)."""

    experiment = FIGURE_2
    hypotheses = _more_experts_than_tasks
    labels = _labels(*LATE)

    def observe(runs):
        return _at(runs[MANY], runs[MANY].records.generalization_error, LATE)

    def predict(runs):
        return _at(runs[MANY], experiments.bounds_of(runs[MANY], FIGURE_2.dims).generalization_error, LATE)


def _theorem_2(runs: Runs, form: str) -> theory.Bound:
    return experiments.bounds_of(runs[FEW], FIGURE_2.dims, form)


@claim(
    "continual.theorem-2.forgetting",
    paper="continual",
    where="Theorem 2, Eq. (21)",
    kind="upper_bound",
    replaced_by="continual.theorem-2.forgetting-corrected",
)
class Theorem2Forgetting:
    """With fewer experts than tasks, expected forgetting after exploration is below (21) as printed."""

    experiment = FIGURE_2
    hypotheses = _fewer_experts_than_tasks
    labels = _labels(*LATE)

    def observe(runs):
        return _at(runs[FEW], runs[FEW].records.forgetting, LATE)

    def predict(runs):
        return _at(runs[FEW], _theorem_2(runs, "printed").forgetting, LATE)


@claim(
    "continual.theorem-2.forgetting-corrected",
    paper="continual",
    where="Theorem 2, Eq. (21), exponent as Appendix J derives it",
    kind="upper_bound",
)
class Theorem2ForgettingCorrected:
    """Expected forgetting after exploration is below (21) with r^(L_tau - L_T1) in its third term."""

    experiment = FIGURE_2
    hypotheses = _fewer_experts_than_tasks
    labels = _labels(*LATE)

    def observe(runs):
        return _at(runs[FEW], runs[FEW].records.forgetting, LATE)

    def predict(runs):
        return _at(runs[FEW], _theorem_2(runs, "corrected").forgetting, LATE)


@claim("continual.theorem-2.generalization-error", paper="continual", where="Theorem 2, Eq. (22)", kind="upper_bound")
class Theorem2GeneralizationError:
    """With fewer experts than tasks, the expected overall generalization error is below (22) as printed."""

    experiment = FIGURE_2
    hypotheses = _fewer_experts_than_tasks
    labels = _labels(*LATE)

    def observe(runs):
        return _at(runs[FEW], runs[FEW].records.generalization_error, LATE)

    def predict(runs):
        return _at(runs[FEW], _theorem_2(runs, "printed").generalization_error, LATE)


@claim(
    "continual.theorem-2.generalization-error-appendix",
    paper="continual",
    where="Theorem 2, Eq. (22) as Appendix J ends",
    kind="upper_bound",
)
class Theorem2GeneralizationErrorAppendix:
    """The expected overall generalization error is below the appendix's form of (22), with exponents lower by 1."""

    experiment = FIGURE_2
    hypotheses = _fewer_experts_than_tasks
    labels = _labels(*LATE)

    def observe(runs):
        return _at(runs[FEW], runs[FEW].records.generalization_error, LATE)

    def predict(runs):
        return _at(runs[FEW], _theorem_2(runs, "appendix").generalization_error, LATE)


def _repeats(run: Run) -> np.ndarray:
    """Where a task meets an expert whose last task was the same one: (T, B) of a full history."""
    tasks, experts = run.records.task, run.records.expert
    lanes = np.arange(tasks.shape[1])
    last = np.full((experts.max() + 1, tasks.shape[1]), -1)
    repeats = np.zeros(tasks.shape, bool)
    for time in range(len(tasks)):
        repeats[time] = last[experts[time], lanes] == tasks[time]
        last[experts[time], lanes] = tasks[time]
    return repeats


@claim(
    "continual.lemma-3",
    paper="continual",
    where="Lemma 3",
    kind="identity",
    margin=1e-3,
    replaced_by="continual.lemma-3.corrected",
)
class Lemma3:
    """An expert whose last task comes again does not change; its largest move, over the truths' root mean square."""

    experiment = HISTORY

    def labels(runs):
        return ["M = 5"]

    def observe(runs):
        run = runs[FEW]
        largest = np.max(np.where(_repeats(run), run.records.update_norm, 0), axis=0)
        return largest / np.sqrt(experiments.gaps_of(run).truth_norm)


@claim(
    "continual.lemma-3.corrected",
    paper="continual",
    where="replaces Lemma 3",
    kind="equality",
    margin=0.02,
)
class Lemma3Corrected:
    """A repeat multiplies an expert's expected squared error by (d - s)/(d - 1)."""

    experiment = HISTORY

    def labels(runs):
        return ["M = 1"]

    def observe(runs):
        errors = runs[SINGLE].records.error.astype(np.float64)
        return np.sum(np.where(_repeats(runs[SINGLE]), errors, 0), axis=0)

    def predict(runs):
        # A move is orthogonal to what it leaves, so the error before it is their sum of squares.
        moves = runs[SINGLE].records
        before = moves.error.astype(np.float64) + moves.update_norm.astype(np.float64) ** 2
        contraction = theory.error_contraction(HISTORY.dims.num_features, HISTORY.dims.num_samples)
        return contraction * np.sum(np.where(_repeats(runs[SINGLE]), before, 0), axis=0)


@claim("continual.lemma-4", paper="continual", where="Lemma 4", kind="identity", margin=1e-5)
class Lemma4:
    """The task loss's gradients in the gates sum to zero over experts; their sum over their largest entry."""

    experiment = ROUTING

    def labels(runs):
        return ["t = 51"]

    def observe(runs):
        run, dims = runs[FEW], ROUTING.dims

        def imbalance(replicate, state):
            # Differentiated by jax.grad from the loss itself, not by the closed form that the system uses.
            key = jax.random.fold_in(root_key(4), replicate)
            arrival, perturbation = draw(key, dims, state.pool, run.params)
            after, info = learn(state, arrival, perturbation, run.params)
            move = info.update_norm**run.params.locality_power
            costs = jnp.where(info.chosen, move + balance_cost(after.visits, after.round, run.params), 0)
            exists = jnp.arange(dims.max_experts) < run.params.num_experts
            gradient = jax.grad(gating.task_loss)(state.gates, jnp.sum(arrival.features, axis=1), exists, costs)
            return jnp.max(jnp.abs(jnp.sum(gradient, axis=0))) / jnp.max(jnp.abs(gradient))

        return jax.jit(jax.vmap(imbalance, in_axes=(0, -1)))(run.replicates, run.state)


@claim("continual.figure-2.termination-forgetting", paper="continual", where="Sec. 6, Fig. 2 (a), (b)", kind="ordering")
class TerminationForgetting:
    """Terminating the gate updates ends in less forgetting than updating for ever, for every size of MoE."""

    experiment = FIGURE_2
    labels = _by_size

    def observe(runs):
        return np.transpose([_final(runs, "forgetting", size) for size in MOE_SIZES])

    def predict(runs):
        return np.transpose([_final(runs, "forgetting", size, terminate=False) for size in MOE_SIZES])


@claim(
    "continual.figure-2.termination-generalization",
    paper="continual",
    where="Sec. 6, Fig. 2 (c), (d)",
    kind="ordering",
)
class TerminationGeneralization:
    """Terminating the gate updates ends in less overall generalization error than updating for ever."""

    experiment = FIGURE_2
    labels = _by_size

    def observe(runs):
        return np.transpose([_final(runs, "generalization_error", size) for size in MOE_SIZES])

    def predict(runs):
        return np.transpose([_final(runs, "generalization_error", size, terminate=False) for size in MOE_SIZES])


@claim("continual.figure-2.moe-forgetting", paper="continual", where="Sec. 6, Fig. 2 (a)", kind="ordering")
class MoeForgetting:
    """A Mixture-of-Experts with termination forgets less than a single expert."""

    experiment = FIGURE_2
    labels = _by_size

    def observe(runs):
        return np.transpose([_final(runs, "forgetting", size) for size in MOE_SIZES])

    def predict(runs):
        return _final(runs, "forgetting", 1)[:, None]


@claim("continual.figure-2.moe-generalization", paper="continual", where="Sec. 6, Fig. 2 (c)", kind="ordering")
class MoeGeneralization:
    """A Mixture-of-Experts with termination generalizes better than a single expert."""

    experiment = FIGURE_2
    labels = _by_size

    def observe(runs):
        return np.transpose([_final(runs, "generalization_error", size) for size in MOE_SIZES])

    def predict(runs):
        return _final(runs, "generalization_error", 1)[:, None]


@claim("continual.figure-2.almost-zero", paper="continual", where="Sec. 6, Fig. 2 (a), (c)", kind="upper_bound")
class AlmostZero:
    """With termination both metrics end at almost zero, read as at most 5 % of a single expert's (M = 10)."""

    experiment = FIGURE_2

    def labels(runs):
        return ["forgetting", "generalization error"]

    def observe(runs):
        return np.transpose([_final(runs, metric, 10) for metric in ("forgetting", "generalization_error")])

    def predict(runs):
        metrics = ("forgetting", "generalization_error")
        return ALMOST_ZERO * np.transpose([_final(runs, metric, 1) for metric in metrics])


@claim("continual.figure-2.more-experts-slower", paper="continual", where="Sec. 6, Fig. 2 (c)", kind="ordering")
class MoreExpertsSlower:
    """Beyond M > N more experts delay convergence: M = 10 has the smaller error than M = 20, averaged over all rounds."""

    experiment = FIGURE_2

    def labels(runs):
        return ["mean over t"]

    def observe(runs):
        return runs[cell_name(10, True)].records.generalization_error.mean(axis=0, dtype=np.float64)

    def predict(runs):
        return runs[cell_name(20, True)].records.generalization_error.mean(axis=0, dtype=np.float64)


@claim(
    "continual.figure-2.more-experts-no-better",
    paper="continual",
    where="Sec. 6, Fig. 2 (c)",
    kind="upper_bound",
    margin=0.05,
)
class MoreExpertsNoBetter:
    """Beyond M > N more experts do not improve the result: M = 10 ends no worse than M = 20, within 5 %."""

    experiment = FIGURE_2

    def labels(runs):
        return ["t = 2000"]

    def observe(runs):
        return _final(runs, "generalization_error", 10)

    def predict(runs):
        return _final(runs, "generalization_error", 20)
