"""The complexities of Theorem 1: Rademacher, of experts and of sparse MoE, and Natarajan dimensions of routers.

R_S(F) = E_sigma sup_f (1/m) sum_i sigma_i f(x_i) over independent fair signs sigma, given the inputs x_i; R_m(F) is its
mean over samples. It comes in closed form, by enumeration or by Monte Carlo; a `Complexity` says which.

Points are shattered by a class if it has two functions f_0, f_1 that differ at each of them, such that every choice of
"as f_0" or "as f_1" at each point is made by a member of the class (Definition 3). d_N is the most points shattered.
Under the reading "mask-dimension" labels are the masks of the active experts, under "router-dimension" the gates a(x).

Everything is float64 on the host.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from moe_theory.core.constraints import Count, NonNegative, Whole, require, require_active
from moe_theory.core.errors import InvalidParamsError, unknown_name
from moe_theory.core.fields import documented
from moe_theory.generalization.model import READINGS
from moe_theory.generalization.theory import lemma_2

MOST_ENUMERATED = 20  # most samples whose 2^m sign vectors are enumerated
ENUMERATED_BY_DEFAULT = 16  # most samples for which `fixed_router` enumerates them
BLOCK = 2**21  # signs in memory at a time
# How a complexity is known, in `Complexity.kind`.
EXACT, MONTE_CARLO = "exact", "Monte Carlo"

ROUTERS = ("fixed", "linear", "network", "free")  # one function; rows v_j; a ReLU network; every function there is
Row = tuple[int, ...]  # a function's labels of the points
Signs = Float[np.ndarray, "n m"]  # n sign vectors of m samples
Supremum = Callable[[np.ndarray], np.ndarray]  # signs (n, m) -> sup_f (1/m) sum_i sigma_i f(x_i) for each row (n,)


@documented
class Complexity(NamedTuple):
    """A complexity, and how it was obtained."""

    value: float
    error: float  # standard error of `value`; 0 where nothing is drawn
    kind: str  # EXACT or MONTE_CARLO
    draws: int  # sign vectors that `value` is a mean over; 0 for a closed form


def constants(num_samples: int) -> float:
    """R_m of the two constant functions {+1, -1}: E|S_m| / m, S_m a sum of m fair signs; exactly, for any sample.

    One sign more changes |S_t| by 1 where S_t = 0 and by 0 on average elsewhere, so that E|S_m| is the sum of
    P(S_t = 0) over t < m. That is 2n binom(2n, n) / 4^n = (2 / sqrt(pi)) Gamma(n + 1/2) / Gamma(n) with n = ceil(m/2),
    and R_m about sqrt(2 / (pi m)).

    Source: Definition 2. Raises: InvalidParamsError unless m is whole and at least 1.

    Examples:
        >>> from moe_theory.generalization import complexity
        >>> round(complexity.constants(2), 6)
        0.5
    """
    require(Count, num_samples=num_samples)
    return 2 / math.sqrt(math.pi) * _gamma_ratio(math.ceil(num_samples / 2)) / num_samples


def monte_carlo(supremum: Supremum, num_samples: int, num_draws: int, seed: int = 0) -> Complexity:
    """E sup over random signs by Monte Carlo, with its standard error; more draws extend fewer.

    Args:
        supremum: signs (n, m) -> sup_f (1/m) sum_i sigma_i f(x_i) for each row, (n,).
    Source: Definition 2. Raises: InvalidParamsError for fewer than 2 draws.

    Examples:
        >>> from moe_theory.generalization import complexity
        >>> complexity.monte_carlo(lambda signs: abs(signs.mean(axis=1)), num_samples=1, num_draws=10).value
        1.0
    """
    require(Count, num_samples=num_samples)
    require(Whole(2), num_draws=num_draws)
    blocks = _blocks_of_draws(num_samples, num_draws, seed)
    values = np.concatenate([supremum(signs) for signs in blocks])
    error = float(np.std(values, ddof=1) / math.sqrt(num_draws))
    return Complexity(float(np.mean(values)), error, MONTE_CARLO, num_draws)


def enumerated(supremum: Supremum, num_samples: int) -> Complexity:
    """E sup over random signs, exactly, over all 2^m sign vectors.

    Source: Definition 2.
    Raises: InvalidParamsError for more than 20 samples.

    Examples:
        >>> from moe_theory.generalization import complexity
        >>> complexity.enumerated(lambda signs: abs(signs.mean(axis=1)), num_samples=2).value
        0.5
    """
    require(Count, num_samples=num_samples)
    if num_samples > MOST_ENUMERATED:
        raise InvalidParamsError(
            f"num_samples={num_samples} must be at most {MOST_ENUMERATED}: 2^m sign vectors are enumerated. "
            "Use Monte Carlo."
        )
    total = sum(float(np.sum(supremum(signs))) for signs in _blocks_of_all(num_samples))
    return Complexity(total / 2**num_samples, 0.0, EXACT, 2**num_samples)


def fixed_router(
    gates: Float[np.ndarray, "m T"],
    features: Float[np.ndarray, "m d"],
    radius: float,
    num_draws: int = 1000,
    seed: int = 0,
) -> Complexity:
    """R_S of sum_j a_j(x) w_j.x over all |w_j| <= B, for a given router with these gates a_j(x_i).

    For given signs the supremum is (B/m) sum_j |sum_i sigma_i a_ij x_i|. All sign vectors are enumerated for m <= 16,
    else `num_draws` of them are drawn.

    Source: Eq. (29) for a fixed router, whose bound is `corrected.fixed_router_complexity`.
    Raises: InvalidParamsError for matrices of different numbers of rows.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.generalization import complexity
        >>> estimate = complexity.fixed_router(gates=np.eye(2), features=np.eye(2), radius=1.0)
        >>> estimate.value, estimate.kind
        (1.0, 'exact')
    """
    gates, features = _table("gates", gates), _table("features", features)
    require(NonNegative, radius=radius)
    if len(gates) != len(features):
        raise InvalidParamsError(
            f"gates has {len(gates)} rows and features {len(features)}: give one row of each for each sample."
        )
    supremum = _experts(gates, features, radius)
    if len(features) <= ENUMERATED_BY_DEFAULT:
        return enumerated(supremum, len(features))
    return monte_carlo(supremum, len(features), num_draws, seed)


def natarajan(
    router: str,
    num_experts: int,
    num_active: int,
    num_features: int,
    reading: str = "mask-dimension",
    num_parameters: int | None = None,
) -> float:
    """Upper bound on d_N of a class of top-k routers (5), a number of points; for "network" up to Lemma 2's constant.

    A class with one function, or one mask, shatters nothing: 0 for "fixed", and under "mask-dimension" for k = T.

    "linear", masks: D = (T - 1) d.
    1. Adding one vector to all rows v_j changes neither mask nor gates, so v_T = 0 loses no router: D parameters.
    2. A mask is the set J of k experts with the largest sum_{j in J} v_j.x, ties to the set that low indices favour.
    3. Let f_0, f_1 shatter n points, and name the two masks at each point so that a tie goes to f_0's. Which of them a
       router gives there is the sign, {>= 0} or {< 0}, of a linear form in the parameters, and all 2^n combinations of
       signs occur. But n linear forms in D parameters show at most sum_{i<=D} binom(n, i) of them (Sauer, Shelah), so
       that n <= D (Shalev-Shwartz & Ben-David, Theorem 29.7). At T = 2 these are all halfspaces through 0: d_N = d.
    "linear", whole router, k = T >= 2: d exactly.
    1. d independent points: any logits at each are V x_i for some V, so that each can have any gates.
    2. n > d points: sum_i alpha_i x_i = 0 with, say, alpha_1 not 0. Log ratios of gates log(a_j/a_T) = (v_j - v_T).x
       are linear in x, so that those at x_1 follow from those at the others. But a shattering class holds two routers
       that agree at all points but x_1.
    "linear", whole router, k < T: D = (T - 1) d again, though gates may differ where masks do not.
    1. Of n shattered points let f_0, f_1 have the same mask at n_2. At each of these the log ratio of some two active
       experts, a linear form in the parameters, differs between f_0 and f_1. The n_2 forms are independent: else one of
       them would follow from the rest, and two routers that agree at all the points but one would agree there too.
    2. Keep f_0 at these n_2: an affine space of D - n_2 parameters is left, whose routers still show all 2^{n_1}
       choices at the other n_1 points. Signs {>= 0, < 0} of n_1 affine forms in r parameters number at most
       sum_{i<=r} binom(n_1, i), the cells that n_1 hyperplanes cut, so that n_1 <= D - n_2.
    For d >= 2 and 2 <= k <= T routers shatter (T - k + 1) d points, so that at k = 2 this, too, is exact: let k - 1
    experts be active in a half-space and each of the others, there, in a cone; d independent points in each cone give
    log ratios of its expert to those k - 1 that small changes of its row set freely, and no other gate changes.
    "network": Lemma 2 with the constant 1 in its O().
    "free": any function of x. It has no finite d_N once two labels are possible.

    Args:
        router: "fixed", "linear", "network" or "free".
        reading: "mask-dimension" (Definition 4) or "router-dimension" (Theorem 1).
        num_parameters: p of Lemma 2; for "network" alone.
    Source: d_N of Theorem 1 and Definition 4; the derivation above.
    Raises: InvalidParamsError for sizes out of range, or a class without a finite d_N under this reading;
        UnknownNameError for another router or reading.

    Examples:
        >>> from moe_theory.generalization import complexity
        >>> complexity.natarajan("linear", num_experts=3, num_active=1, num_features=5)
        10.0
    """
    if router not in ROUTERS:
        raise unknown_name("router", router, ROUTERS)
    if reading not in READINGS:
        raise unknown_name("reading", reading, READINGS)
    whole = reading == "router-dimension"
    require_active(num_experts, num_active)
    require(Count, num_features=num_features)
    has_one_label = num_experts == 1 or (num_active == num_experts and not whole)
    if router == "fixed" or has_one_label:
        return 0.0
    if router == "free":
        labels, way_out = ("gates", "") if whole else ("masks", ", or num_active = num_experts")
        raise InvalidParamsError(
            f"reading={reading!r} gives router='free' no finite d_N: it can give any {labels} to any number of inputs. "
            f"Choose a smaller class of routers{way_out}."
        )
    if router == "network":
        if num_parameters is None:
            raise InvalidParamsError("num_parameters must be given for router='network': Lemma 2 is in p. Give it.")
        require(Count, num_parameters=num_parameters)
        return float(lemma_2(num_parameters, num_experts))
    return float(num_features if num_active == num_experts else (num_experts - 1) * num_features)


def natarajan_dimension(labelings: Int[np.ndarray, "F n"]) -> int:
    """Exact Natarajan dimension of a class of F functions on n points, by brute force.

    Points are shattered if f_0 and f_1 give the first of them labels a and b such that the others are shattered by what
    the functions with a there, and those with b there, have in common at those others.

    Args:
        labelings: the label of each function at each point.
    Source: Definition 3. Raises: InvalidParamsError for anything but a matrix of whole numbers with a row.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.generalization import complexity
        >>> complexity.natarajan_dimension(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))
        2
    """
    rows = set(_rows(labelings))
    num_points = len(next(iter(rows)))
    for size in range(1, num_points + 1):
        subsets = itertools.combinations(range(num_points), size)
        if not any(_are_shattered({tuple(row[place] for place in points) for row in rows}) for points in subsets):
            return size - 1
    return num_points


def growth(labelings: Int[np.ndarray, "F n"]) -> int:
    """Number of different labelings of the n points.

    Source: what Lemma 6, Eq. (33), bounds.
    Raises: InvalidParamsError for anything but a matrix of whole numbers with a row.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.generalization import complexity
        >>> complexity.growth(np.array([[0, 1], [1, 0], [0, 1]]))
        2
    """
    return len(set(_rows(labelings)))


def _experts(gates: np.ndarray, features: np.ndarray, radius: float) -> Supremum:
    shares = []  # of each expert: the samples it is active on, and a_ij x_i
    for column in gates.T:
        seen = np.flatnonzero(column)
        shares.append((seen, column[seen, None] * features[seen]))

    def supremum(signs: np.ndarray) -> np.ndarray:
        lengths = np.zeros(len(signs))
        for seen, weighted in shares:
            lengths += np.linalg.norm(signs[:, seen] @ weighted, axis=1)
        return radius / len(features) * lengths

    return supremum


def _blocks_of_draws(num_samples: int, num_draws: int, seed: int) -> Iterator[np.ndarray]:
    generator = np.random.default_rng(seed)
    size = max(1, BLOCK // num_samples)
    for start in range(0, num_draws, size):
        shape = (min(size, num_draws - start), num_samples)
        yield 2.0 * generator.integers(0, 2, shape, dtype=np.int8) - 1


def _blocks_of_all(num_samples: int) -> Iterator[np.ndarray]:
    size = max(1, BLOCK // num_samples)
    for start in range(0, 2**num_samples, size):
        numbers = np.arange(start, min(start + size, 2**num_samples))
        yield 2.0 * (numbers[:, None] >> np.arange(num_samples) & 1) - 1


def _gamma_ratio(argument: float) -> float:
    """Gamma(a + 1/2) / Gamma(a), accurate where a difference of log Gamma loses digits."""
    if argument < 100:
        return float(special.gamma(argument + 0.5) / special.gamma(argument))
    series = (1, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144)  # in powers of 1/a
    return math.sqrt(argument) * float(np.polynomial.polynomial.polyval(1 / argument, series))


def _table(name: str, values: np.ndarray) -> np.ndarray:
    table = np.asarray(values, float)
    if table.ndim != 2 or 0 in table.shape or not np.all(np.isfinite(table)):
        raise InvalidParamsError(
            f"{name} of shape {table.shape} must be a matrix of finite numbers, not empty. Change {name}."
        )
    return table


def _rows(labelings: np.ndarray) -> Iterable[Row]:
    table = np.asarray(labelings)
    if table.ndim != 2 or not len(table) or table.dtype.kind not in "biu":
        raise InvalidParamsError(
            f"labelings of shape {table.shape} and type {table.dtype} must be a matrix of whole numbers with a row for "
            "each function and a column for each point. Change labelings."
        )
    return map(tuple, table.tolist())


def _are_shattered(rows: set[Row]) -> bool:
    """Whether all the points of these labelings together are shattered."""
    num_points = len(next(iter(rows)))
    if len(rows) < 2**num_points or num_points == 0:
        return num_points == 0
    rest_by_label: dict[int, set[Row]] = {}
    for row in rows:
        rest_by_label.setdefault(row[0], set()).add(row[1:])
    pairs = itertools.combinations(rest_by_label.values(), 2)
    return any(common and _are_shattered(common) for common in (first & second for first, second in pairs))
