"""Hypotheses of the paper's statements, with sentences in `paper.toml`."""

import functools

from moe_theory.verification import statement as declarations

HOLDS = {
    "active-experts": lambda dims, run: (
        1 <= int(run.params.num_active) <= int(run.params.num_experts) <= dims.max_experts
    ),
    # All losses, samples, routers and networks of the experiments satisfy these.
    **dict.fromkeys(
        ("bounded-loss", "iid-samples", "lipschitz-loss", "own-weights", "short-inputs", "softmax-gates"),
        lambda dims, run: True,
    ),
    "mask-dimension": lambda dims, run: not run.params.whole_router,
    "finite-dimension": lambda dims, run: not run.params.whole_router,
}
statement = functools.partial(declarations.statement, holds=HOLDS)
