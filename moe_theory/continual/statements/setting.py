"""Hypotheses of the paper's statements, with sentences in `paper.toml`."""

import functools

import numpy as np

from moe_theory.continual.experiments import FREE, stage_rounds
from moe_theory.core.tasks import has_small_truths
from moe_theory.verification import statement as declarations

HOLDS = {
    "truth-scale-in-range": lambda dims, run: 0 < run.params.truth_scale < 1,
    "small-truths": has_small_truths,
    "bounded-features": lambda dims, run: run.params.noise_scale <= 1,  # signals are c w_n, or have unit length
    "full-rank": lambda dims, run: dims.num_samples == 1 or run.params.noise_scale > 0,
    "small-noise": lambda dims, run: run.params.noise_scale <= run.params.truth_scale,
    "constant-strength": lambda dims, run: run.params.min_strength == run.params.max_strength,
    "one-expert": lambda dims, run: run.params.num_experts == 1,
    "more-experts-than-tasks": lambda dims, run: run.params.num_experts > dims.num_tasks,
    "fewer-experts-than-tasks": lambda dims, run: run.params.num_experts < dims.num_tasks,
    "enough-experts-for-tasks": lambda dims, run: run.params.num_experts >= dims.num_tasks * np.log(dims.num_tasks),
    "enough-experts-for-clusters": lambda dims, run: (
        run.params.num_experts >= run.params.num_clusters * np.log(run.params.num_clusters)
    ),
    "past-exploration": lambda dims, run: run.rounds[-1] > stage_rounds(run.params),
    "no-termination": lambda dims, run: not run.params.terminate,
    "positive-perturbation": lambda dims, run: run.params.perturbation_scale > 0,
    "positive-threshold": lambda dims, run: run.params.termination_threshold > 0,
    "large-perturbation": lambda dims, run: run.params.perturbation_scale >= 100,  # this is far above gate outputs
    "norm-not-squared": lambda dims, run: run.params.locality_power == 1,
}
MORE_EXPERTS = ["more-experts-than-tasks"]
FEWER_EXPERTS = ["fewer-experts-than-tasks"]

statement = functools.partial(declarations.statement, holds=HOLDS, shared_free=FREE)
