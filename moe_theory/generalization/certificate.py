"""A bound on the risk of one trained model, by the length of a code for its weights and its training error.

A prefix-free code, fixed before the samples, describes model h in L(h) bits, so that the 2^-L(h) sum to at most 1
(Kraft). For one h, m independent samples and a loss in [0, 1], let p be the risk and q <= p the mean loss on the
samples. Then P(kl(q, p) >= x) <= exp(-m x) (Hoeffding 1963, Theorem 1), where kl(q, p) = q log(q/p) + (1 - q)
log((1 - q)/(1 - p)). With x(h) = (L(h) log 2 + log(1/delta)) / m the failures of all models sum to at most delta. So
with probability 1 - delta the trained model has kl(q, p) < x(h), and p is below the largest number that satisfies this.

The code describes everything that training chose. Its length is n log2 r bits for n weights with r levels that were
fixed before. For any weights it is 8 times the number of bytes after compression by zlib. A choice among N ways after
seeing the samples costs log2 N bits more.
"""

import math

from moe_theory.core.constraints import Count, OpenProbability, Probability, require
from moe_theory.core.errors import InvalidValueError

__all__ = ["certificate"]


def certificate(num_bits: int, training_error: float, num_samples: int, delta: float = 0.05) -> float:
    """Bound a model's risk with probability 1 - delta, given the `num_bits` that describe it in a prefix-free code.

    Args:
        training_error: mean loss on the m samples, in [0, 1].
    Source: Hoeffding (1963), Theorem 1, and a union over a prefix-free code.
    Raises: InvalidValueError for numbers out of range.

    Examples:
        >>> from moe_theory.generalization import certificate
        >>> round(certificate.certificate(num_bits=0, training_error=0.0, num_samples=100), 6)
        0.029513
    """
    require(Count, num_samples=num_samples)
    require(Probability, training_error=training_error)
    require(OpenProbability, delta=delta)
    if num_bits < 0:
        raise InvalidValueError(
            f"num_bits={num_bits} is the length of a code, so it must be at least 0. Raise it.", argument="num_bits"
        )
    nats = num_bits * math.log(2) + math.log(1 / delta)
    return largest_risk(training_error, nats / num_samples)


def largest_risk(training_error: float, divergence: float) -> float:
    """Return the largest p with kl(q, p) <= `divergence`, rounded up, where q is the training error.

    Source: bisection, because the binary kl divergence increases in p >= q.
    """
    low = training_error
    high = 1.0
    while True:
        middle = (low + high) / 2
        if not low < middle < high:  # no number is between them
            return high
        if divergence_of(training_error, middle) <= divergence:
            low = middle
        else:
            high = middle


def divergence_of(q: float, p: float) -> float:
    """Return kl(q, p) = q log(q/p) + (1 - q) log((1 - q)/(1 - p)), in nats. Source: Hoeffding (1963)."""
    divergence = 0.0
    if q > 0:
        divergence += q * math.log(q / p)
    if q < 1:
        divergence += (1 - q) * (math.log1p(-q) - math.log1p(-p))
    return max(divergence, 0.0)  # rounding may make it negative
