"""Exact probabilities of the perturbed router (1), of which Lemma 2 and Corollary 1 speak."""

import numpy as np
from jaxtyping import Float


def routing_probabilities(outputs: Float[np.ndarray, "*batch M"], scale: float) -> Float[np.ndarray, "*batch M"]:
    """P(argmax_j h_j + r_j = m) for independent r_j ~ U[0, scale], in float64.

    With expert m's perturbation at u * scale it wins with probability prod_j F(u + (h_m - h_j) / scale), F the
    distribution function of U[0, 1]: a polynomial of degree M - 1 between the places where a factor reaches 0 or 1,
    which Gauss-Legendre quadrature integrates over u in [0, 1] without error but rounding.

    Source: Eq. (1) and Appendix B of `continual`.
    """
    outputs = np.asarray(outputs, np.float64) / scale
    num_experts = outputs.shape[-1]
    leads = outputs[..., :, None] - outputs[..., None, :]  # (..., M, M): h_m - h_j; j = m is left out below
    others = leads[..., ~np.eye(num_experts, dtype=bool)].reshape(*outputs.shape, num_experts - 1)
    kinks = np.concatenate(
        [-others, 1 - others, np.zeros_like(outputs)[..., None], np.ones_like(outputs)[..., None]], -1
    )
    ends = np.sort(np.clip(kinks, 0, 1), axis=-1)
    middles, halves = (ends[..., 1:] + ends[..., :-1]) / 2, (ends[..., 1:] - ends[..., :-1]) / 2
    nodes, weights = np.polynomial.legendre.leggauss(num_experts // 2 + 1)
    total = np.zeros(outputs.shape)
    for node, weight in zip(nodes, weights, strict=True):
        places = middles + halves * node
        wins = np.clip(places[..., :, None] + others[..., None, :], 0, 1).prod(axis=-1)
        total += weight * np.sum(halves * wins, axis=-1)
    return total


def sharp_constant(scale: float) -> float:
    """The least L with |p - p^|_inf <= L |h - h^|_inf for all outputs and any number M >= 2 of experts: 2 / lambda.

    dp_m/dh_m = sum_j c_j and dp_m/dh_j = -c_j with c_j >= 0, and sum_j c_j is 1/lambda times the increase of
    prod_j F(u + (h_m - h_j) / lambda) over u in [0, 1], at most 1. Equal outputs attain it: raise
    one and lower all others.

    Source: Lemma 2 of `continual`, corrected.
    """
    return 2 / scale
