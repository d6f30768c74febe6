"""The papers' own notation: whatever takes a parameter's name says what a symbol of the paper is called there.

Catches a symbol that is answered by "did you mean" with something else, or a place that takes names and knows none.
"""

import collections
import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core.errors import MoeTheoryError
from moe_theory.core.papers import all_papers
from moe_theory.plot.spec import resized
from moe_theory.verification.settings import with_settings

Counted = collections.namedtuple("Counted", "round")
# As the papers write them.
NOTATION = {
    "continual": {
        "M": "num_experts", "k": "num_active", "eta": "learning_rate", "alpha": "balance_weight",
        "lambda": "perturbation_scale", "Gamma": "termination_threshold", "sigma_0": "truth_scale",
        "C": "max_strength", "beta_t": "max_strength", "sigma_t": "noise_scale", "K": "num_clusters",
        "N": "num_tasks", "d": "num_features", "s": "num_samples", "T": "rounds", "c": "signal_scale",
    },
    "edge": {
        "M": "num_experts", "eta": "learning_rate", "lambda": "perturbation_scale", "sigma_0": "truth_scale",
        "C": "max_strength", "beta_t": "max_strength", "sigma_t": "noise_scale", "d_l^tr": "min_transfer_delay",
        "d_u^tr": "max_transfer_delay", "d_l^ex": "min_execution_delay", "d_u^ex": "max_execution_delay",
        "d_u": "max_delay", "N": "num_tasks", "p": "num_features", "s": "num_samples", "T": "rounds",
    },
    "generalization": {
        "T": "num_experts", "k": "num_active", "m": "num_samples", "B": "expert_norm", "delta": "delta",
        "d_N": "whole_router", "d": "num_features",
    },
    "merging": {
        "K": "num_experts", "B": "max_active", "nu_1": "smoothness", "rho": "smoothness_ratio", "C": "split_constant",
        "delta": "confidence", "gamma": "exploration", "gamma_t": "exploration", "lambda": "regularization",
        "eta": "learning_rate", "V": "num_tasks", "T": "max_rounds", "w": "width", "J": "num_steps",
    },
}  # fmt: skip
COUNTING = mt.System(
    lambda key, params: Counted(jnp.int32(0)), lambda key, state, params: (Counted(state.round + 1),) * 2
)
OWN = [name for name, paper in all_papers().items() if paper.citation]


def test_every_paper_s_notation_is_here():
    assert set(OWN) == NOTATION.keys()


def refusal(call, *arguments, **named) -> str:
    with pytest.raises(MoeTheoryError) as failure:
        call(*arguments, **named)
    assert "\n" not in str(failure.value)
    return str(failure.value)


@pytest.mark.parametrize(("paper", "symbol", "field"), [(p, *each) for p in NOTATION for each in NOTATION[p].items()])
def test_a_symbol_is_named_wherever_a_parameter_is(paper, symbol, field):
    reading = next(iter(all_papers()[paper].readings.values()))
    if symbol == field:
        return
    said = [
        refusal(reading.params, **{symbol: 1}),
        refusal(with_settings, reading, {symbol: "1"}),
        refusal(mt.Sweep, system=paper, rounds=2, replicates=2, axes={symbol: [1, 2]}),
        refusal(mt.Sweep, system=paper, rounds=2, replicates=2, params={symbol: 1}),
        refusal(mt.vary, COUNTING, reading.params(), 1, 1, **{symbol: [1]}),
    ]
    assert [message for message in said if field not in message or "Did you mean" in message] == []


@pytest.mark.parametrize("written", ["σ₀", "σ_0", "\\sigma_0", r"\sigma_{0}", "sigma0"])
def test_a_symbol_may_be_written_in_any_way(written):
    assert "truth_scale" in refusal(mt.continual.reading("unit-signal").params, **{written: 1})
    assert "termination_threshold" in refusal(mt.continual.reading("unit-signal").params, Γ=1)


def test_a_symbol_is_named_to_a_figure_in_an_exploration_and_over_the_cells_of_an_experiment():
    from moe_theory.continual.experiments import FIGURE_2
    from moe_theory.verification.explore import plan_search

    dims = mt.continual.Dims(4, num_tasks=6, num_features=10, num_samples=6)
    for message in (
        refusal(mt.figure, "continual.figure-2", settings={"eta": 1}),
        refusal(plan_search, "continual.lemma-4", ["eta=0.1..0.5"], None, 3, 1, None, 0, 0.01),
    ):
        assert "is called learning_rate" in message
    assert "is called num_features" in refusal(resized, dims, {"d": 3}, 4)
    assert "is called num_experts" in refusal(FIGURE_2.over, "M")


def test_axes_of_a_dataset_have_long_names():
    data = mt.vary(COUNTING, mt.continual.Params(), 2, 2, num_experts=[2, 3], truth_scale=[0.2, 0.4])
    assert data.num_experts.long_name == "number of experts, M"
    assert data.truth_scale.long_name == "truth scale, sigma_0 of N(0, sigma_0)"
    assert np.array_equal(data.num_experts, [2, 3])


def test_a_name_that_is_no_symbol_has_the_nearest_suggested():
    @dataclasses.dataclass
    class Dims:
        size: int

    assert "Did you mean 'learning_rate'?" in refusal(mt.continual.reading("unit-signal").params, learning_rat=1)
    assert "Did you mean 'size'" in refusal(resized, Dims(3), {"siez": 3}, 4)
