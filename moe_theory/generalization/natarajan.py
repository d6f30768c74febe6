"""Natarajan dimensions: bounds for classes of routers under both readings of d_N, and brute force at small sizes.

Points are shattered by a class if there are two functions f_0, f_1 that differ at each of them, such that every choice
of "as f_0" or "as f_1" at each point is made by a member of the class (Definition 3). d_N is the most points shattered.
Under the reading "mask-dimension" labels are the masks of the active experts, under "router-dimension" the gates a(x).
"""

import itertools
from collections.abc import Iterable

import numpy as np
from jaxtyping import Int

from moe_theory.core.errors import InvalidParamsError, unknown_name
from moe_theory.generalization.arguments import check_sizes, require_whole
from moe_theory.generalization.readings import reading as reading_called
from moe_theory.generalization.theory import lemma_2

ROUTERS = ("fixed", "linear", "network", "free")  # one function; rows v_j; a ReLU network; every function there is
Row = tuple[int, ...]


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
    1. d independent points: any logits at each are V x_i for some V, so that any two gates can be had at each.
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
    log ratios of its expert to those k - 1 that small changes of its row set at will, and no other gate changes.
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
    whole = reading_called(reading).name == "router-dimension"
    check_sizes(num_experts, num_active, 1)
    require_whole("num_features", num_features)
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
        require_whole("num_parameters", num_parameters)
        return float(lemma_2(num_parameters, num_experts))
    return float(num_features if num_active == num_experts else (num_experts - 1) * num_features)


def natarajan_dimension(labelings: Int[np.ndarray, "F n"]) -> int:
    """Exact Natarajan dimension of a class of F functions on n points, from the label of each at each; brute force.

    Points are shattered if f_0 and f_1 give the first of them labels a and b such that the others are shattered by what
    the functions with a there, and those with b there, have in common at those others.

    Source: Definition 3. Raises: InvalidParamsError for anything but a table of whole numbers with a row.

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
    """How many different labelings of the n points there are.

    Source: what Lemma 6, Eq. (33), bounds.
    Raises: InvalidParamsError for anything but a table of whole numbers with a row.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.generalization import complexity
        >>> complexity.growth(np.array([[0, 1], [1, 0], [0, 1]]))
        2
    """
    return len(set(_rows(labelings)))


def _rows(labelings: np.ndarray) -> Iterable[Row]:
    table = np.asarray(labelings)
    if table.ndim != 2 or not len(table) or table.dtype.kind not in "biu":
        raise InvalidParamsError(
            f"labelings of shape {table.shape} and type {table.dtype} must be a table of whole numbers with a row for "
            "each function and a column for each point. Change labelings."
        )
    return map(tuple, table.tolist())


def _are_shattered(rows: set[Row]) -> bool:
    """Whether all the points of these labelings together are."""
    num_points = len(next(iter(rows)))
    if len(rows) < 2**num_points or num_points == 0:
        return num_points == 0
    rest_by_label: dict[int, set[Row]] = {}
    for row in rows:
        rest_by_label.setdefault(row[0], set()).add(row[1:])
    pairs = itertools.combinations(rest_by_label.values(), 2)
    return any(common and _are_shattered(common) for common in (first & second for first, second in pairs))
