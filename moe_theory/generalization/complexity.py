"""Complexities in Theorem 1: the Rademacher complexity of two constant experts, and routers' Natarajan dimensions.

R_S(F) = E_sigma sup_f (1/m) sum_i sigma_i f(x_i) over independent fair signs sigma, given the inputs x_i. R_m(F) is its
mean over samples.

A class shatters points if two functions f_0, f_1 differ at each of them, and members make every choice of "as f_0" or
"as f_1" at each point (Definition 3). d_N is the largest number of shattered points. Under the reading "mask-dimension"
labels are the masks of the active experts, under "router-dimension" the gates a(x).

Everything is float64 on the host.

Natarajan dimensions d_N of top-k routers:

"linear", masks: D = (T - 1) d.
1. Logits are V x, with rows v_1, ..., v_T. One vector added to all rows changes neither mask nor gates. So let v_T = 0.
   D parameters remain.
2. A mask is the set J of k experts with the largest sum_{j in J} v_j.x, ties to low indices.
3. Let f_0, f_1 shatter n points. Where a tie goes to f_1's mask, exchange f_0 and f_1. The sign, {>= 0} or {< 0}, of a
   linear form in the parameters decides which mask a router gives there, and all 2^n combinations of signs occur. But n
   linear forms in D parameters have at most sum_{i<=D} binom(n, i) combinations of signs (Sauer, Shelah), which is less
   than 2^n if n > D. So n <= D (Shalev-Shwartz & Ben-David, Theorem 29.7). At T = 2 these are all halfspaces through 0:
   d_N = d.
"linear", whole router, k = T >= 2: d exactly.
1. At d independent points x_i, some V gives any logits V x_i, so each point can have any gates.
2. At n > d points, sum_i alpha_i x_i = 0 with, say, alpha_1 not 0. Log ratios of gates log(a_j/a_T) = (v_j - v_T).x are
   linear in x, so the ratios at x_1 follow from the other points. But a shattering class has two routers that agree at
   all points except x_1.
"linear", whole router, k < T: D = (T - 1) d again.
1. Of n shattered points, let f_0, f_1 have the same mask at n_2 points, and different masks at the other n_1. At each
   of the n_2 points the log ratio of some two active experts, a linear form in the parameters, differs between f_0 and
   f_1. These forms are independent. Otherwise the others would determine one of them, but a shattering class has two
   routers that differ only at its point.
2. Routers that equal f_0 at these n_2 points have parameters in an affine space of dimension D - n_2. They still make
   all 2^{n_1} choices at the other n_1 points. Signs {>= 0, < 0} of n_1 affine forms in r parameters number at most
   sum_{i<=r} binom(n_1, i), the cells that n_1 hyperplanes cut, so n_1 <= D - n_2.
Let d >= 2 and 2 <= k <= T. Then routers shatter (T - k + 1) d points. So the bound (T - 1) d is exact at k = 2. Let k
- 1 experts be active in a half-space, and each other expert in a cone inside it. Small changes of the row v_j of a
cone's expert freely set the log ratios of this expert to those k - 1 at d independent points in the cone, and no gate
at points elsewhere.

Examples:
    >>> from moe_theory.generalization import complexity
    >>> round(complexity.constants(2), 6)
    0.5
    >>> complexity.natarajan("linear", num_experts=3, num_active=1, num_features=5)
    10.0
"""

import math

import numpy as np
from scipy import special

from moe_theory.core.constraints import Count, require, require_active
from moe_theory.core.errors import InvalidValueError, unknown_name
from moe_theory.generalization.model import READINGS
from moe_theory.generalization.theory import lemma_2

ROUTERS = ("fixed", "linear", "network", "free")  # one function, rows v_j, a ReLU network, or every function


def constants(num_samples: int) -> float:
    """Return R_m of the two constant functions {+1, -1}: E|S_m| / m for any sample, where S_m is a sum of m fair signs.

    One more sign changes |S_t| by 1 where S_t = 0 and by 0 on average elsewhere, so E|S_m| is the sum of P(S_t = 0)
    over t < m. It is 2n binom(2n, n) / 4^n = (2 / sqrt(pi)) Gamma(n + 1/2) / Gamma(n) with n = ceil(m/2), which is
    `half`, and R_m about sqrt(2 / (pi m)).

    Source: Definition 2. Raises: InvalidValueError unless m is whole and at least 1.
    """
    require(Count, num_samples=num_samples)
    half = math.ceil(num_samples / 2)
    if half < 100:
        gamma_ratio = float(special.gamma(half + 0.5) / special.gamma(half))
    else:  # Gamma would overflow, and a difference of log Gammas loses digits
        series = (1, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144)  # coefficients of powers of 1/half
        gamma_ratio = math.sqrt(half) * float(np.polynomial.polynomial.polyval(1 / half, series))
    return 2 / math.sqrt(math.pi) * gamma_ratio / num_samples


def natarajan(
    router: str,
    num_experts: int,
    num_active: int,
    num_features: int,
    reading: str = "mask-dimension",
    num_parameters: int | None = None,
) -> float:
    """Return an upper bound on d_N, a number of points, of a class of top-k routers, Eq. (5).

    A class with one function, or one mask, shatters nothing, so d_N is 0 for "fixed", and under "mask-dimension" for k
    = T. The module's docstring proves "linear". "network" is Lemma 2 with the constant 1 in its O(). "free" means any
    function of x, without a finite d_N for two or more labels.

    Args:
        router: "fixed", "linear", "network" or "free".
        reading: "mask-dimension" (Definition 4) or "router-dimension" (Theorem 1).
        num_parameters: p of Lemma 2, for "network".
    Source: d_N of Theorem 1 and Definition 4.
    Raises: InvalidValueError for sizes out of range or a class without a finite d_N, or UnknownNameError.
    """
    if router not in ROUTERS:
        raise unknown_name("router", router, ROUTERS)
    if reading not in READINGS:
        raise unknown_name("reading", reading, READINGS)
    are_labels_gates = reading == "router-dimension"  # else they are masks
    require_active(num_experts, num_active)
    require(Count, num_features=num_features)
    has_one_label = num_experts == 1 or (num_active == num_experts and not are_labels_gates)
    if router == "fixed" or has_one_label:
        return 0.0
    if router == "free":
        labels = "gates" if are_labels_gates else "masks"
        way_out = "" if are_labels_gates else ", or num_active = num_experts"
        raise InvalidValueError(
            f"with reading={reading!r} the d_N of router='free' is infinite: such a router can give any {labels} to "
            f"any number of inputs. Choose a smaller class of routers{way_out}.",
            argument="reading",
        )
    if router == "network":
        if num_parameters is None:
            raise InvalidValueError(
                "num_parameters must be set for router='network', because Lemma 2 depends on it. Pass a number.",
                argument="num_parameters",
            )
        require(Count, num_parameters=num_parameters)
        return float(lemma_2(num_parameters, num_experts))
    if num_active == num_experts:  # labels are gates here. For masks this returned 0 above
        return float(num_features)
    return float((num_experts - 1) * num_features)
