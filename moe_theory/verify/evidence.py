"""Evidence: what a claim's functions give for a batch of replicates, checked and put into one shape."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from moe_theory.core.errors import InvalidClaimError
from moe_theory.verify.claim import Claim, Runs


class Samples(NamedTuple):
    """One row a replicate, one column a component, in float64: all that a verdict is made from."""

    observed: Float[np.ndarray, "B V"]
    predicted: Float[np.ndarray, "B V"]  # of a rate (B, 1), its exponent
    allowed: Float[np.ndarray, "B V"]  # the margin in the difference's own unit
    trivial: Float[np.ndarray, "B V"] | None = None  # a bound that holds anyway

    @property
    def num_replicates(self) -> int:
        """How many replicates there are."""
        return len(self.observed)

    def first(self, count: int) -> "Samples":
        """The first `count` replicates."""
        return self._rows(slice(count))

    def from_place(self, place: int) -> "Samples":
        """All but the first `place` replicates."""
        return self._rows(slice(place, None))

    def _rows(self, rows: slice) -> "Samples":
        trivial = None if self.trivial is None else self.trivial[rows]
        return Samples(self.observed[rows], self.predicted[rows], self.allowed[rows], trivial)

    def after(self, earlier: "Samples | None") -> "Samples":
        """These replicates behind earlier ones.

        Raises: InvalidClaimError where the two have different components.
        """
        if earlier is None:
            return self
        if earlier.observed.shape[1] != self.observed.shape[1]:
            raise InvalidClaimError(
                f"observe gave {self.observed.shape[1]} components, and {earlier.observed.shape[1]} for the "
                "replicates before"
            )
        trivial = None
        if earlier.trivial is not None and self.trivial is not None:
            trivial = np.concatenate([earlier.trivial, self.trivial])
        return Samples(
            np.concatenate([earlier.observed, self.observed]),
            np.concatenate([earlier.predicted, self.predicted]),
            np.concatenate([earlier.allowed, self.allowed]),
            trivial,
        )


def failed_hypotheses(claim: Claim, runs: Runs) -> list[str]:
    """What the statement supposes and does not hold here."""
    stated = _call(claim.hypotheses, [], claim.experiment.dims, runs)
    return [text for text, holds in stated if not holds]


def collect(claim: Claim, runs: Runs, num_replicates: int) -> Samples:
    """The samples of a batch of replicates. Raises: InvalidClaimError for shapes or values that have no verdict."""
    observed = _observed(claim.observe(runs), num_replicates)
    if claim.kind == "identity":
        return Samples(observed, np.zeros_like(observed), np.full_like(observed, claim.margin))
    if claim.kind == "rate":
        places = np.asarray(claim.abscissa)
        if places.shape != observed.shape[1:]:
            raise InvalidClaimError(f"{places.size} grid points for {observed.shape[1]} components")
        exponent = _broadcast("predict", _call(claim.predict, None, runs), observed[:, :1])
        return Samples(observed, exponent, np.full_like(exponent, claim.margin))
    predicted = _broadcast("predict", _call(claim.predict, 0.0, runs), observed)
    if claim.kind in {"probability", "counterexample"}:
        if not np.all((observed == 0) | (observed == 1)):
            raise InvalidClaimError("observe gave values other than True and False, and an event happens or does not")
        always = _broadcast("trivial", _call(claim.trivial, float(claim.side != "at_least"), runs), observed)
        return Samples(observed, predicted, np.full_like(observed, claim.margin), always)
    scale = _broadcast("scale", _call(claim.scale, np.abs(predicted), runs), observed)
    trivial = None if claim.trivial is None else _broadcast("trivial", claim.trivial(runs), observed)
    return Samples(observed, predicted, scale * claim.margin, trivial)


def labels_of(claim: Claim, runs: Runs, rounds: np.ndarray, num_components: int) -> list[str]:
    """The components' names, after the recorded `rounds` if need be.

    Raises: InvalidClaimError where there are not as many.
    """
    labels = list(_call(claim.labels, _default_labels(claim, rounds, num_components), runs))
    if len(labels) != num_components:
        raise InvalidClaimError(f"{len(labels)} labels for {num_components} components")
    return labels


def _default_labels(claim: Claim, rounds: np.ndarray, count: int) -> list[str]:
    if claim.abscissa is not None and len(claim.abscissa) == count:
        return [f"x = {place:.3g}" for place in claim.abscissa]
    if len(rounds) == count:
        return [f"t = {time}" for time in rounds]
    return ["mean"] if count == 1 else [f"component {index + 1}" for index in range(count)]


def _call(function: Callable | None, default: Any, *arguments: Any) -> Any:
    return default if function is None else function(*arguments)


def _observed(values: Any, num_replicates: int) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != num_replicates:
        raise InvalidClaimError(
            f"observe gave shape {np.shape(values)}, not ({num_replicates},) or ({num_replicates}, components): "
            "one row a replicate"
        )
    return _finite("observe", array)


def _broadcast(name: str, values: Any, observed: np.ndarray) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if array.ndim == 1 and observed.shape[1] == 1 and len(array) == len(observed):
        array = array[:, None]
    try:
        array = np.broadcast_to(array, observed.shape)
    except ValueError:
        raise InvalidClaimError(
            f"{name} gave shape {np.shape(values)}, which does not broadcast to {observed.shape}"
        ) from None
    return _finite(name, array)


def _finite(name: str, array: np.ndarray) -> np.ndarray:
    if not np.all(np.isfinite(array)):
        raise InvalidClaimError(f"{name} gave {np.sum(~np.isfinite(array))} values that are not finite")
    return np.ascontiguousarray(array)  # so that sums over replicates run in one order, however samples came about
