"""Lemma 5: how gaps of routing probabilities depend on gaps of gate outputs."""

import itertools

import numpy as np

from moe_theory.edge.experiments import ADAPTIVE
from moe_theory.edge.statements.lemma_1 import UPDATES
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.statement import alike, identity

PAIRS = ADAPTIVE.over("num_experts", 10, 50)
TOLERANCE = 1e-6  # rounding error of float32 probabilities


def gaps_of_pairs(run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return |h_m - h_m'|, |pi_m - pi_m'| and pi_m' of all ordered pairs of experts at the last round (M, M, B)."""
    num_experts = int(run.params.num_experts)
    outputs = run.records.gate_outputs[-1][:num_experts].astype(np.float64)
    probabilities = run.records.gate_probabilities[-1][:num_experts].astype(np.float64)
    gaps = np.abs(outputs[:, None] - outputs[None, :])
    differences = np.abs(probabilities[:, None] - probabilities[None, :])
    return gaps, differences, np.broadcast_to(probabilities[None, :], differences.shape)


@statement("lemma-5-close", module=__name__).charitable("lemma-5.upper", PAIRS, identity(within=TOLERANCE))
def lipschitz_excess(run) -> np.ndarray:
    gap, difference, _ = gaps_of_pairs(run)
    return np.maximum(difference - gap / 2, 0).max(axis=(0, 1))


LEMMA_5_APART = statement("lemma-5-apart", module=__name__)
OUTPUTS = (-1.0, -0.4, 0.0, 0.7, 1.0)


@LEMMA_5_APART.charitable("lemma-5.bounded", UPDATES.at("M = 4"), identity(within=1e-12), exact=True)
def bounded_shortfall(run) -> np.ndarray:
    triples = np.array(list(itertools.product(OUTPUTS, repeat=3)))
    probabilities = np.exp(triples) / np.exp(triples).sum(axis=1, keepdims=True)
    gaps = np.abs(triples[:, 0] - triples[:, 1])
    differences = np.abs(probabilities[:, 0] - probabilities[:, 1])
    least_probability = np.exp(-2) / 3  # lower bound for three outputs that are at most 2 apart
    return alike(run, float(np.maximum(least_probability * gaps - differences, 0).max()))


@LEMMA_5_APART.literal("lemma-5.lower", PAIRS, identity(within=TOLERANCE), instead="lemma-5.lower-of-the-smaller")
def printed_shortfall(run) -> np.ndarray:
    gap, difference, probability = gaps_of_pairs(run)
    return np.maximum(probability * gap - difference, 0).max(axis=(0, 1))


@LEMMA_5_APART.replacement("lemma-5.lower-of-the-smaller", PAIRS, identity(within=TOLERANCE))
def smaller_shortfall(run) -> np.ndarray:
    gap, difference, probability = gaps_of_pairs(run)
    smaller = np.minimum(probability, probability.transpose(1, 0, 2))  # the smaller of pi_m' and pi_m
    return np.maximum(smaller * gap - difference, 0).max(axis=(0, 1))
