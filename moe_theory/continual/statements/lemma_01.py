"""Lemma 1: gate outputs of two arrivals with the same signal, or signals of one cluster.

Definition 1 does not fix sigma_t. In the readings sigma_t does not shrink with sigma_0, but the proof needs this.
"""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.continual.experiments import RARELY
from moe_theory.continual.statements.setting import statement
from moe_theory.verification.statement import counterexample, rate

STATED = rate(at_least=1.5)
SAME_SIGNAL = statement("lemma-1-more-experts", module=__name__)
SAME_CLUSTER = statement("lemma-1-fewer-experts", module=__name__)


@SAME_SIGNAL.literal("lemma-1.same-signal", experiments.BY_SCALE, STATED, instead="lemma-1.small-noise")
@SAME_SIGNAL.charitable("lemma-1.small-noise", experiments.BY_SCALE_QUIET, STATED, hypotheses=["small-noise"])
@SAME_CLUSTER.literal(
    "lemma-1.same-cluster", experiments.BY_SCALE_FEWER, STATED, instead="lemma-1.same-cluster-small-noise"
)
@SAME_CLUSTER.charitable(
    "lemma-1.same-cluster-small-noise", experiments.BY_SCALE_NEAR, STATED, hypotheses=["small-noise"]
)
def output_gap(run) -> np.ndarray:
    return np.abs(np.diff(experiments.gate_output_pairs(run), axis=1)).max(axis=(1, 2))


@SAME_SIGNAL.literal("lemma-1.probability", experiments.BY_SCALE, RARELY, instead="lemma-1.small-noise-probability")
def exceeds_proof(run) -> np.ndarray:
    size = run.records.gate_size.max(axis=0).astype(np.float64)
    num_entries = experiments.ROUTER_DIMS.num_samples * experiments.ROUTER_DIMS.num_features
    return output_gap(run) > 2 * num_entries * float(run.params.truth_scale) * size


@SAME_SIGNAL.step("lemma-1.product", experiments.BY_SCALE, counterexample(), instead="lemma-1.small-noise-probability")
def exceeds_product(run) -> np.ndarray:
    noise = experiments.noise_sums(run)[:, 0]
    size = run.records.gate_size.max(axis=0).astype(np.float64)
    largest_product = np.abs(np.einsum("mdb,bd->mb", experiments.gates_of(run), noise)).max(axis=0)
    return largest_product > size * np.abs(noise.sum(axis=1)) * (1 + 1e-9)  # the margin excludes rounding


@SAME_SIGNAL.replacement(
    "lemma-1.small-noise-probability", experiments.BY_SCALE_QUIET, RARELY, hypotheses=["constant-strength"]
)
def exceeds_tail(run) -> np.ndarray:
    norms = np.sqrt(np.sum(experiments.gates_of(run) ** 2, axis=1))  # (M, B)
    deviations = float(run.params.noise_scale) * np.sqrt(2 * (experiments.ROUTER_DIMS.num_samples - 1)) * norms
    gaps = np.abs(np.diff(experiments.gate_output_pairs(run), axis=1))[:, 0].T
    most_deviations = np.sqrt(2 * np.log(2 * len(norms) / experiments.FAILURE))  # Gaussian tails, over all gates
    return np.any(gaps > most_deviations * deviations, axis=0)
