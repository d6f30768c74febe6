"""Fig. 4 of the edge-computing paper: generalization error of routing policies with networks as experts."""

import numpy as np

from moe_theory.deep.experiments import EDGE_MNIST, final
from moe_theory.deep.presets import server_cell
from moe_theory.runs import Run
from moe_theory.verify.claim import claim
from moe_theory.verify.components import Values, excess, named, over

WHERE = "edge, Sec. VI, Fig. 4, MNIST"
FEW, ENOUGH = 5, 10
EXISTING = ("nearest", "fastest")
SIGMA_0 = 0.1  # in the paper
_ERROR = final("generalization_error")


def _errors(num_experts: int, policies: tuple[str, ...]) -> Values:
    return over([server_cell(num_experts, policy) for policy in policies], _ERROR)


def _gains(num_experts: int, factor: float = 1.0) -> Values:
    others, adaptive = _errors(num_experts, EXISTING), _errors(num_experts, ("adaptive",))
    return lambda runs: factor * (others(runs) - adaptive(runs))


@claim("deep.edge-figure-4.gain", paper="deep", where=WHERE, kind="ordering")
class Gain:
    """With 10 servers the adaptive gate has a smaller final error than the nearest and the fastest server."""

    formula = r"\mathbb{E}[G_T \mid \text{adaptive}] < \mathbb{E}[G_T \mid \text{existing}], \quad M = 10"
    experiment = EDGE_MNIST
    labels = named(*EXISTING)
    observe = _errors(ENOUGH, ("adaptive",) * len(EXISTING))
    predict = _errors(ENOUGH, EXISTING)


@claim("deep.edge-figure-4.chance", paper="deep", where=f"beside {WHERE}", kind="ordering")
class Chance:
    """With 10 servers the adaptive gate also has a smaller final error than a random server."""

    formula = r"\mathbb{E}[G_T \mid \text{adaptive}] < \mathbb{E}[G_T \mid \text{uniform}], \quad M = 10"
    experiment = EDGE_MNIST
    labels = named("uniform")
    observe = _errors(ENOUGH, ("adaptive",))
    predict = _errors(ENOUGH, ("uniform",))


@claim("deep.edge-figure-4.too-few", paper="deep", where=WHERE, kind="ordering")
class TooFew:
    """With 5 servers the adaptive gate fails too: its gain is less than half of that with 10."""

    formula = r"\mathbb{E}[G_T^{\text{existing}} - G_T^{\text{adaptive}} \mid M = 5] < \frac{1}{2} "
    formula += r"\mathbb{E}[G_T^{\text{existing}} - G_T^{\text{adaptive}} \mid M = 10]"
    experiment = EDGE_MNIST
    labels = named(*EXISTING)
    observe = _gains(FEW)
    predict = _gains(ENOUGH, factor=0.5)


@claim("deep.edge-figure-4.large-error", paper="deep", where=WHERE, kind="ordering")
class LargeError:
    """The adaptive gate has a larger final error with 5 servers than with 10."""

    formula = r"\mathbb{E}[G_T \mid M = 10] < \mathbb{E}[G_T \mid M = 5]"
    experiment = EDGE_MNIST
    labels = named("adaptive")
    observe = _errors(ENOUGH, ("adaptive",))
    predict = _errors(FEW, ("adaptive",))


def _variance(run: Run) -> np.ndarray:
    return np.asarray(run.records.variance[-1], np.float64)


def _declare_sigma_0(id: str, words: str, power: float) -> None:
    @claim(id, paper="deep", where=WHERE, kind="equality", margin=0.2, replaced_by="deep.edge-figure-4.sigma-0-bound")
    class Sigma0:
        __doc__ = f"Across tasks an element of the normalised mean images has a {words} of 0.1, within 20 %."
        formula = r"\sigma_0 = 0.1"
        experiment = EDGE_MNIST
        labels = named(words)
        observe = over([server_cell(ENOUGH)], lambda run: _variance(run) ** power)
        predict = staticmethod(lambda runs: SIGMA_0)


_declare_sigma_0("deep.edge-figure-4.sigma-0", "variance", 1.0)
_declare_sigma_0("deep.edge-figure-4.sigma-0-deviation", "deviation", 0.5)


@claim("deep.edge-figure-4.sigma-0-bound", paper="deep", where=f"replaces {WHERE}", kind="identity", margin=1e-6)
class Sigma0Bound:
    """Images of norm 1 and p pixels have a mean variance of at most 1/p: a deviation of 0.1 needs p < 100."""

    formula = r"p \sigma_0^2 \le 1"
    experiment = EDGE_MNIST
    labels = named("sum of the elements' variances")
    observe = over([server_cell(ENOUGH)], lambda run: excess(np.asarray(run.records.total_variance[-1]), 1.0))
