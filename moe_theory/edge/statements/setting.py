"""Hypotheses of the paper's statements, with sentences in `paper.toml`."""

import functools

from moe_theory.core.tasks import PROPORTIONAL, has_small_truths
from moe_theory.edge.experiments import ENOUGH, FREE, SUFFICIENT, exploration_rounds, misrouted_share
from moe_theory.verification import statement as declarations

HOLDS = {
    "overparameterized": lambda dims, run: dims.num_samples < dims.num_features,
    "truth-scale-in-range": lambda dims, run: 0 < run.params.truth_scale < 1,
    "close-truths": lambda dims, run: run.params.cluster_spread <= run.params.truth_scale**2,
    "small-truths": has_small_truths,
    # The proof of (34) calls this the rotational symmetry of the features.
    "isotropic-features": lambda dims, run: int(run.params.signal_law) != PROPORTIONAL,
    "past-exploration": lambda dims, run: run.rounds[-1] >= exploration_rounds(run.params),
    "within-exploration": lambda dims, run: run.rounds[-1] <= exploration_rounds(run.params),
    "more-servers-than-clusters": lambda dims, run: run.params.num_experts > dims.num_tasks,
    "enough-servers": lambda dims, run: run.params.num_experts in SUFFICIENT.values(),
    "enough-servers-by-figure-3": lambda dims, run: run.params.num_experts >= ENOUGH[0],
    "noisy-samples": lambda dims, run: dims.num_samples >= 2 and run.params.noise_scale > 0,
    "independent-truths": lambda dims, run: True,  # `draw_pool` ensures it
    "alike-signals": lambda dims, run: True,  # `draw_pool` ensures it, also for the signals of a cluster
    "bounded-signals": lambda dims, run: True,  # except where an intervention removes it
    "independent-types": lambda dims, run: True,
    "small-rate": lambda dims, run: run.params.learning_rate <= 1.01 * run.params.truth_scale**0.5,  # 1 % for rounding
    "few-misrouted": lambda dims, run: misrouted_share(run).mean() <= 0.25,
    "short-delays": lambda dims, run: run.params.max_transfer_delay + run.params.max_execution_delay <= dims.max_delay,
}
statement = functools.partial(declarations.statement, holds=HOLDS, shared_free=FREE)
