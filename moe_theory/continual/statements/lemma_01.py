"""Lemma 1: gate outputs of two arrivals that carry the same signal, or signals of one cluster.

Definition 1 leaves the noise level sigma_t open. A reading's does not shrink with sigma_0; the proof needs one that
does.
"""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.verify.statement import Hypothesis, counterexample, probability, rate, statement

EVEN = Hypothesis("beta_t is constant", lambda dims, run: run.params.min_strength == run.params.max_strength)

SAME_SIGNAL = statement(
    "lemma-1-more-experts",
    where="Lemma 1 (M > N version), Eq. (10)",
    says=r"""Between two arrivals that carry the same signal an expert's gate output moves by at most O(sigma_0^1.5).
    $$|h_m(X, \theta_t^{(m)}) - h_m(\tilde{X}, \theta_t^{(m)})| = O(\sigma_0^{1.5})$$""",
    hypotheses=[*experiments.MORE, experiments.SMALL_TRUTHS],
    why="""Two hypotheses are missing: that the noise level sigma_t is O(sigma_0), and that both arrivals have one
    strength beta. The proof bounds the sum of the noise by s d sigma_0 with a probability that it calls 1 - o(1), and
    says nothing of sigma_t. Where sigma_t is fixed, the noise that the gates let through is of the order of the gates
    themselves; where strengths differ, so is the signal's part, which the proof cancels. One step besides is wrong: it
    pulls the largest gate out of a sum whose entries cancel.""",
    instance="""M = 3, N = 2, d = 3, s = 2, sigma_t = 0.1, after one round: the median gap is 6.3 sigma_0^1.5 at sigma_0
    = 1e-4, 64 times at 1e-6 and 640 times at 1e-8. With sigma_t = sigma_0 / 4 it is below 0.02 times throughout.""",
    corrected=r"""Where the noise level is O(sigma_0) and strengths are equal, the lemma holds.
    $$\sigma_t = O(\sigma_0), \beta = \tilde{\beta} \Rightarrow |h_m(X) - h_m(\tilde{X})| = O(\sigma_0^{1.5})$$""",
    witness="lemma_01.py",
    disproof="strengths_differ.py",
    proof="lemma_01.py",
    amendment="sigma_t = O(sigma_0), and one strength beta in both",
)
SAME_CLUSTER = SAME_SIGNAL.twin(
    "lemma-1-fewer-experts",
    where="Lemma 1 (full version, M < N), Eq. (25)",
    says=r"""The same gap of O(sigma_0^1.5) holds between arrivals of two tasks that share a cluster.
    $$w_n, w_{n'} \in W_k \Rightarrow |h_m(X, \theta_t^{(m)}) - h_m(\tilde{X}, \theta_t^{(m)})| =
    O(\sigma_0^{1.5})$$""",
    hypotheses=[*experiments.FEWER, experiments.SMALL_TRUTHS],
    why="""As for more experts than tasks, the noise level has to be O(sigma_0), and strengths equal. That a cluster's
    signals, and not its truths alone, are within O(sigma_0^1.5) of each other is said in the proof only.""",
    amendment="sigma_t = O(sigma_0), a cluster's signals O(sigma_0^1.5) apart, and one strength beta in both",
    instance="""M = 3, N = 4 in two clusters of equal signals, d = 3, s = 2, sigma_t = 0.1, after one round: the median
    gap is 6.3 sigma_0^1.5 at sigma_0 = 1e-4, 64 times at 1e-6 and 640 times at 1e-8.""",
    corrected=r"""Where noise is O(sigma_0), strengths are equal and a cluster's signals are within O(sigma_0^1.5), the
    lemma holds.
    $$\sigma_t = O(\sigma_0), \beta = \tilde{\beta}, \|v_n - v_{n'}\|_\infty = O(\sigma_0^{1.5}) \Rightarrow |h_m(X) -
    h_m(\tilde{X})| = O(\sigma_0^{1.5})$$""",
)


@SAME_SIGNAL.literal(
    "lemma-1.same-signal",
    experiments.BY_SCALE,
    rate(at_least=1.5),
    where="Lemma 1, Eq. (10); full version, Eq. (25), M > N",
    instead="lemma-1.small-noise",
).says("""With more experts than tasks, two arrivals of one task have outputs at every expert within O(sigma_0^1.5).

    Tested at the noise level of a reading, since the statement asks nothing of it; the largest gap of an expert.""")
@SAME_SIGNAL.charitable(
    "lemma-1.small-noise",
    experiments.BY_SCALE_QUIET,
    rate(at_least=1.5),
    where="replaces Lemma 1, M > N",
    hypotheses=[experiments.SMALL_NOISE],
).says(r"""Where the noise level is O(sigma_0), two arrivals of one task have outputs within O(sigma_0^1.5).
    $$\sigma_t = O(\sigma_0) \Rightarrow |h_m(X) - h_m(\tilde{X})| = O(\sigma_0^{1.5})$$""")
@SAME_CLUSTER.literal(
    "lemma-1.same-cluster",
    experiments.BY_SCALE_FEWER,
    rate(at_least=1.5),
    where="Lemma 1, full version, Eq. (25), M < N",
    instead="lemma-1.same-cluster-small-noise",
).says("""With fewer experts than tasks, two tasks of one cluster have outputs at every expert within O(sigma_0^1.5).

    Truths of a cluster are within O(sigma_0^1.5); of noise and signals the statement asks nothing more than a reading.
    """)
@SAME_CLUSTER.charitable(
    "lemma-1.same-cluster-small-noise",
    experiments.BY_SCALE_NEAR,
    rate(at_least=1.5),
    where="replaces Lemma 1, M < N",
    hypotheses=[experiments.SMALL_NOISE],
).says(r"""Where noise is O(sigma_0) and a cluster's signals are within O(sigma_0^1.5), so are its tasks' outputs.
    $$\sigma_t = O(\sigma_0), \|v_n - v_{n'}\|_\infty = O(\sigma_0^{1.5}) \Rightarrow |h_m(X, \theta_t^{(m)}) -
    h_m(\tilde{X}, \theta_t^{(m)})| = O(\sigma_0^{1.5})$$""")
def output_gap(run) -> np.ndarray:
    """max_m |h_m(X) - h_m(X~)|."""
    return np.abs(np.diff(experiments.gate_output_pairs(run), axis=1)).max(axis=(1, 2))


@SAME_SIGNAL.literal(
    "lemma-1.probability",
    experiments.BY_SCALE,
    probability(at_most=experiments.FAILURE),
    where="Lemma 1, with probability at least 1 - o(1)",
    instead="lemma-1.small-noise-probability",
)
def exceeds_proof(run) -> np.ndarray:
    r"""The proof's bound on that gap, with its constant s d max |theta| for each matrix, fails with vanishing chance.

    Vanishing is read as at most 0.05, at every sigma_0 of the grid down to 0.000625.
    $$P(\max_m |h_m(X) - h_m(\tilde{X})| > 2 s d \sigma_0 \max_{t, j} |\theta_{t, j}|) = o(1)$$"""
    size = run.records.gate_size.max(axis=0).astype(np.float64)
    entries = experiments.ROUTER_DIMS.num_samples * experiments.ROUTER_DIMS.num_features
    return output_gap(run) > 2 * entries * float(run.params.truth_scale) * size


@SAME_SIGNAL.step(
    "lemma-1.product",
    experiments.BY_SCALE,
    counterexample(),
    where="Lemma 1, proof, first display",
    instead="lemma-1.small-noise-probability",
)
def exceeds_product(run) -> np.ndarray:
    r"""The noise moves no gate output by more than the gates' largest entry times the size of the sum of its entries.

    The proof's step to that sum, in which entries of both signs cancel. The left side is taken at the gates of round
    T, the largest entry over all experts and all rounds of the run.
    $$|\sum_{i, j} \theta_{t, j}^{(m)} X_{t, (i, j)}| \leq \max_{t, j} |\theta_{t, j}^{(m)}| \cdot |\sum_{i, j}
    X_{t, (i, j)}|$$"""
    noise, size = experiments.noise_sums(run)[:, 0], run.records.gate_size.max(axis=0).astype(np.float64)
    inner = np.abs(np.einsum("mdb,bd->mb", experiments.gates_of(run), noise)).max(axis=0)
    return inner > size * np.abs(noise.sum(axis=1)) * (1 + 1e-9)


@SAME_SIGNAL.replacement(
    "lemma-1.small-noise-probability",
    experiments.BY_SCALE_QUIET,
    probability(at_most=experiments.FAILURE),
    where="replaces Lemma 1, with probability at least 1 - o(1)",
    hypotheses=[EVEN],
)
def exceeds_tail(run) -> np.ndarray:
    r"""The gaps of all experts are within sigma_t (4 (s - 1) ln(2M/delta))^0.5 |theta|, but for chance delta = 0.05.

    That is O(sigma_0^1.5) where sigma_t is O(sigma_0) and gates are O(sigma_0^0.5); strengths beta_t are equal.
    $$P(\exists m: |h_m(X) - h_m(\tilde{X})| > \sigma_t \sqrt{4 (s - 1) \ln (2 M / \delta)} \|\theta^{(m)}\|_2) \leq
    \delta$$"""
    norms = np.sqrt(np.sum(experiments.gates_of(run) ** 2, axis=1))  # (M, B)
    deviations = float(run.params.noise_scale) * np.sqrt(2 * (experiments.ROUTER_DIMS.num_samples - 1)) * norms
    gaps = np.abs(np.diff(experiments.gate_output_pairs(run), axis=1))[:, 0].T
    return np.any(gaps > np.sqrt(2 * np.log(2 * len(norms) / experiments.FAILURE)) * deviations, axis=0)
